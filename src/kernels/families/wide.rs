//! `linrec_wide.cu`: one block per sequence, tile by tile in 16-byte vectors.

use super::family::{Family, Parts, elements, number, truth, wholes};
use crate::Direction;
use crate::kernels::{ElementType, Geometry, Pass};

/// The options of `linrec_wide.cu`, written as `wide:2x128`, or `wide:4x256:a1:w` for a tile ahead
/// and whole vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WideConfig {
    /// The 16-byte vectors of each array that a thread holds.
    pub vectors: u32,
    /// The threads of a block: a multiple of 32 up to 1024.
    pub threads: u32,
    /// The number of tiles in flight, in shared memory, while one is computed.
    pub ahead: u32,
    /// True if all sequences consist of whole vectors and begin at multiples of 16 bytes.
    pub whole: bool,
}

impl WideConfig {
    /// A block of 128 threads with two vectors each, and sequences that may begin anywhere.
    pub const DEFAULT: WideConfig = WideConfig { vectors: 2, threads: 128, ahead: 0, whole: false };

    /// Returns the number of steps of a tile.
    pub fn tile(&self, element: ElementType) -> u64 {
        u64::from(self.threads) * elements(element, self.vectors)
    }
}

impl Default for WideConfig {
    fn default() -> Self {
        WideConfig::DEFAULT
    }
}

impl Family for WideConfig {
    fn name() -> &'static str {
        "wide"
    }

    fn parse(parts: &mut Parts) -> Option<Self> {
        let [vectors, threads] = parts.sizes([Self::DEFAULT.vectors, Self::DEFAULT.threads])?;
        let ahead = parts.lettered('a').unwrap_or(Self::DEFAULT.ahead);
        Some(WideConfig { vectors, threads, ahead, whole: parts.flag("w") })
    }

    fn from_arguments(_: Pass, arguments: &[&str]) -> Option<Self> {
        let [vectors, threads, ahead, whole] = arguments else { return None };
        let (vectors, threads, ahead) = (number(vectors)?, number(threads)?, number(ahead)?);
        Some(WideConfig { vectors, threads, ahead, whole: truth(whole)? })
    }

    fn candidates(element: ElementType) -> Vec<Self> {
        let mut configs = Vec::new();
        for threads in [32, 64, 128, 256, 512, 1024] {
            for vectors in [1, 2, 4, 8] {
                for ahead in [0, 1, 2] {
                    let bytes = threads * vectors * 16;
                    // Loading ahead pays for large tiles, until shared memory is full.
                    let is_sensible = match ahead {
                        0 => vectors <= 4 && bytes <= 32 << 10,
                        _ => threads >= 128 && vectors >= 2 && bytes <= 64 << 10,
                    };
                    for &whole in wholes(element).iter().filter(|_| is_sensible) {
                        configs.push(WideConfig { vectors, threads, ahead, whole });
                    }
                }
            }
        }
        configs
    }

    fn spelled(&self) -> String {
        let WideConfig { vectors, threads, ahead, whole } = self;
        let ahead = if *ahead == 0 { String::new() } else { format!(":a{ahead}") };
        format!("{vectors}x{threads}{ahead}{}", if *whole { ":w" } else { "" })
    }

    fn arguments(&self, _: Pass, _: Direction) -> Vec<String> {
        let WideConfig { vectors, threads, ahead, whole } = self;
        vec![vectors.to_string(), threads.to_string(), ahead.to_string(), whole.to_string()]
    }

    fn geometry(&self, _: ElementType, pass: Pass, num_seqs: u64, _: u64) -> Geometry {
        let WideConfig { vectors, threads, ahead, .. } = *self;
        // The arrays that are read.
        let arrays = match pass {
            Pass::Forward => 2,
            Pass::Backward => 3,
        };
        let shared_bytes =
            [vectors, threads, ahead, arrays].into_iter().fold(16, u32::saturating_mul);
        Geometry { blocks: num_seqs, threads, shared_bytes, shared_out: None }
    }

    fn multiple_of(&self, element: ElementType) -> u64 {
        if self.whole { elements(element, 1) } else { 1 }
    }

    fn tile(&self, element: ElementType) -> Option<u64> {
        Some(WideConfig::tile(self, element))
    }

    fn is_worth(&self, element: ElementType, seq_len: u64) -> bool {
        let tile = WideConfig::tile(self, element);
        let is_used = self.ahead == 0 || tile < seq_len;
        is_used && tile <= seq_len.saturating_mul(2) && seq_len.min(1 << 16) <= 32 * tile
    }
}
