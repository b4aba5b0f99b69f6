//! `linrec_once.cu`: a block for each tile of a sequence, all of which run at once.

use super::family::{Family, Parts, elements, number, truth, wholes};
use super::waves;
use crate::Direction;
use crate::kernels::{ElementType, Geometry, Pass, SharedOut};

/// The options of `linrec_once.cu`, written as `once:4x512`, or `once:4x512:w` for whole vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OnceConfig {
    /// The 16-byte vectors of each array that a thread holds.
    pub vectors: u32,
    /// The threads of a block: a multiple of 32 up to 1024.
    pub threads: u32,
    /// True if all sequences consist of whole vectors and begin at multiples of 16 bytes.
    pub whole: bool,
}

impl OnceConfig {
    /// Four vectors in each of 512 threads, and sequences that may begin anywhere.
    pub const DEFAULT: OnceConfig = OnceConfig { vectors: 4, threads: 512, whole: false };
}

impl Default for OnceConfig {
    fn default() -> Self {
        OnceConfig::DEFAULT
    }
}

/// The number of tiles that sequences are cut into, if that takes at least a warp per tile: about
/// one for each SM of the largest GPUs.
const TILES: u64 = 128;

impl Family for OnceConfig {
    fn name() -> &'static str {
        "once"
    }

    fn parse(parts: &mut Parts) -> Option<Self> {
        let [vectors, threads] = parts.sizes([Self::DEFAULT.vectors, Self::DEFAULT.threads])?;
        Some(OnceConfig { vectors, threads, whole: parts.flag("w") })
    }

    fn from_arguments(_: Pass, arguments: &[&str]) -> Option<Self> {
        let [vectors, threads, whole, reverse] = arguments else { return None };
        truth(reverse)?;
        let (vectors, threads) = (number(vectors)?, number(threads)?);
        Some(OnceConfig { vectors, threads, whole: truth(whole)? })
    }

    fn candidates(element: ElementType) -> Vec<Self> {
        let all = [(4, 512), (2, 512), (4, 256), (2, 1024)];
        let sizes = if element == ElementType::F32 { &all[..] } else { &all[..2] };
        let config = |&(vectors, threads): &(u32, u32)| {
            wholes(element).iter().map(move |&whole| OnceConfig { vectors, threads, whole })
        };
        sizes.iter().flat_map(config).collect()
    }

    fn spelled(&self) -> String {
        let OnceConfig { vectors, threads, whole } = self;
        format!("{vectors}x{threads}{}", if *whole { ":w" } else { "" })
    }

    fn arguments(&self, _: Pass, direction: Direction) -> Vec<String> {
        let OnceConfig { vectors, threads, whole } = self;
        let reverse = direction == Direction::Reverse;
        let truths = [*whole, reverse].map(|truth| truth.to_string());
        [vectors, threads].map(ToString::to_string).into_iter().chain(truths).collect()
    }

    fn takes_direction(&self) -> bool {
        false
    }

    fn geometry(&self, element: ElementType, _: Pass, num_seqs: u64, seq_len: u64) -> Geometry {
        let warps = (self.vectors, self.threads / 32);
        let (shared_out, tiles) =
            waves::shared_out(element, (num_seqs, seq_len), warps, self.whole, TILES);
        let blocks = if seq_len == 0 { num_seqs } else { tiles };
        let shared_out = Some(SharedOut { one_tile: true, ..shared_out });
        Geometry { blocks, threads: self.threads, shared_bytes: 0, shared_out }
    }

    /// A warp reads one group of tiles, so a block has a group for each of its warps.
    fn max_len(&self, element: ElementType) -> Option<u64> {
        let tiles = waves::GROUP * u64::from(self.threads / 32);
        let tile = u64::from(self.threads).saturating_mul(elements(element, self.vectors));
        // A sequence that begins anywhere may reach into one more vector.
        let skew = if self.whole { 0 } else { elements(element, 1) - 1 };
        Some(tiles.saturating_mul(tile).saturating_sub(skew))
    }

    fn multiple_of(&self, element: ElementType) -> u64 {
        if self.whole { elements(element, 1) } else { 1 }
    }

    fn tile(&self, element: ElementType) -> Option<u64> {
        Some(u64::from(self.threads).saturating_mul(elements(element, self.vectors)))
    }

    fn is_worth(&self, element: ElementType, seq_len: u64) -> bool {
        // A shorter sequence fits into one warp.
        32 * elements(element, self.vectors) < seq_len
    }
}
