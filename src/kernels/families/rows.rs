//! `linrec_rows.cu`: some lanes of a warp for each sequence, which must fit into their registers.

use super::family::{Family, Parts, elements, number, truth, wholes};
use crate::Direction;
use crate::kernels::{ElementType, Geometry, Pass};

/// The options of `linrec_rows.cu`, written as `rows:16x2x32`, or `rows:16x2x32:w` for whole
/// vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowsConfig {
    /// The lanes of a warp that share a sequence: 1, 2, 4, 8, 16 or 32.
    pub lanes: u32,
    /// The 16-byte vectors of each array that a lane holds, blocked: consecutive in memory.
    pub vectors: u32,
    /// The threads of a block: a multiple of 32 up to 1024.
    pub threads: u32,
    /// True if all sequences consist of whole vectors and begin at multiples of 16 bytes.
    pub whole: bool,
}

impl RowsConfig {
    /// 16 lanes with two vectors each: sequences of up to 128 f32, which may begin anywhere.
    pub const DEFAULT: RowsConfig = RowsConfig { lanes: 16, vectors: 2, threads: 32, whole: false };

    /// Returns the length of the longest sequence.
    pub fn max_len(&self, element: ElementType) -> u64 {
        u64::from(self.lanes) * elements(element, self.vectors)
    }
}

impl Default for RowsConfig {
    fn default() -> Self {
        RowsConfig::DEFAULT
    }
}

impl Family for RowsConfig {
    fn name() -> &'static str {
        "rows"
    }

    fn parse(parts: &mut Parts) -> Option<Self> {
        let RowsConfig { lanes, vectors, threads, .. } = RowsConfig::DEFAULT;
        let [lanes, vectors, threads] = parts.sizes([lanes, vectors, threads])?;
        Some(RowsConfig { lanes, vectors, threads, whole: parts.flag("w") })
    }

    fn from_arguments(_: Pass, arguments: &[&str]) -> Option<Self> {
        let [lanes, vectors, threads, reverse, whole] = arguments else { return None };
        truth(reverse)?;
        let (lanes, vectors, threads) = (number(lanes)?, number(vectors)?, number(threads)?);
        Some(RowsConfig { lanes, vectors, threads, whole: truth(whole)? })
    }

    fn candidates(element: ElementType) -> Vec<Self> {
        let mut configs = Vec::new();
        for lanes in [1, 2, 4, 8, 16, 32] {
            for vectors in [1, 2, 4] {
                for threads in [32, 64, 128] {
                    for &whole in wholes(element) {
                        configs.push(RowsConfig { lanes, vectors, threads, whole });
                    }
                }
            }
        }
        // Configurations for less than the shortest sequences of the tables are left out.
        configs.retain(|config| config.max_len(element) >= 16);
        configs
    }

    fn spelled(&self) -> String {
        let RowsConfig { lanes, vectors, threads, whole } = self;
        format!("{lanes}x{vectors}x{threads}{}", if *whole { ":w" } else { "" })
    }

    fn arguments(&self, _: Pass, direction: Direction) -> Vec<String> {
        let RowsConfig { lanes, vectors, threads, whole } = self;
        let reverse = direction == Direction::Reverse;
        let sizes = [lanes, vectors, threads].map(ToString::to_string);
        sizes.into_iter().chain([reverse, *whole].map(|truth| truth.to_string())).collect()
    }

    fn takes_direction(&self) -> bool {
        false
    }

    fn geometry(&self, _: ElementType, _: Pass, num_seqs: u64, _: u64) -> Geometry {
        let RowsConfig { lanes, threads, .. } = *self;
        let rows = u64::from((threads / lanes.max(1)).max(1));
        Geometry { blocks: num_seqs.div_ceil(rows), threads, shared_bytes: 0, shared_out: None }
    }

    fn max_len(&self, element: ElementType) -> Option<u64> {
        Some(RowsConfig::max_len(self, element))
    }

    fn multiple_of(&self, element: ElementType) -> u64 {
        if self.whole { elements(element, 1) } else { 1 }
    }

    fn tile(&self, element: ElementType) -> Option<u64> {
        Some(RowsConfig::max_len(self, element))
    }

    fn is_worth(&self, element: ElementType, seq_len: u64) -> bool {
        // If it is more than a few times too large, most lanes have nothing to do.
        RowsConfig::max_len(self, element) < seq_len.saturating_mul(4)
    }
}
