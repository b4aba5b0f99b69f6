//! `linrec_waves.cu`: all blocks share each sequence, wave by wave.

use super::family::{Family, Parts, elements, number, truth, wholes};
use crate::Direction;
use crate::kernels::{ElementType, Geometry, Pass, SharedOut};

/// The options of `linrec_waves.cu`, written as `waves:4x288` or `waves:3x384:a4:f2:w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WavesConfig {
    /// The 16-byte vectors of each array that a thread has in the forward pass, at least 2. In the
    /// backward pass it has one less, since there are five arrays in place of three.
    pub vectors: u32,
    /// The threads of a block that compute: a multiple of 32 up to 992. One more warp carries the
    /// state.
    pub threads: u32,
    /// The number of waves ahead at which a tile is published, at least 2.
    pub ahead: u32,
    /// The number of further tiles in flight before that.
    pub in_flight: u32,
    /// True if all sequences consist of whole vectors and begin at multiples of 16 bytes.
    pub whole: bool,
}

impl WavesConfig {
    /// Four vectors in each of 288 threads, tiles published five waves ahead, and sequences that
    /// may begin anywhere.
    pub const DEFAULT: WavesConfig =
        WavesConfig { vectors: 4, threads: 288, ahead: 5, in_flight: 1, whole: false };

    /// Returns the number of vectors of each array that a thread has in a pass.
    pub fn vectors_of(&self, pass: Pass) -> u32 {
        match pass {
            Pass::Forward => self.vectors,
            Pass::Backward => self.vectors.saturating_sub(1),
        }
    }

    /// Returns the dynamic shared memory of a block, which is a ring of tiles, in bytes.
    fn shared_bytes(&self, pass: Pass) -> u32 {
        let ring = self.ahead.saturating_add(self.in_flight).saturating_mul(2);
        let tiles = match pass {
            Pass::Forward => ring,
            // The outputs are read late.
            Pass::Backward => ring.saturating_add(self.in_flight).saturating_add(1),
        };
        [self.vectors_of(pass), self.threads, tiles].into_iter().fold(16, u32::saturating_mul)
    }
}

impl Default for WavesConfig {
    fn default() -> Self {
        WavesConfig::DEFAULT
    }
}

/// The number of tiles that sequences are cut into, if that takes at least a warp per tile: about
/// two for each SM of the largest GPUs. It does not depend on the GPU, so results do not either.
const TILES: u64 = 256;

/// The number of tiles that are combined at a time: the kernels' kGroup.
pub(super) const GROUP: u64 = 128;

/// Cuts `num_seqs` sequences into about `wanted` tiles, and returns the cut and the number of
/// tiles. Tiles are of whole warps, at most `warps`, with `vectors` vectors per lane.
pub(super) fn shared_out(
    element: ElementType,
    (num_seqs, seq_len): (u64, u64),
    (vectors, warps): (u32, u32),
    whole: bool,
    wanted: u64,
) -> (SharedOut, u64) {
    let warp = 32 * u64::from(vectors.max(1));
    let per_vector = elements(element, 1);
    // A sequence that begins anywhere may reach into one more vector.
    let reach = seq_len.saturating_add(if whole { 0 } else { per_vector - 1 });
    let row = reach.div_ceil(per_vector);
    let even = row.saturating_mul(num_seqs).div_ceil(wanted).min(row).div_ceil(warp);
    let tile_vectors = even.clamp(1, u64::from(warps.max(1))) * warp;
    let tiles = if seq_len == 0 { 0 } else { reach.div_ceil(tile_vectors * per_vector) };
    // A transition has two numbers. Each of its words takes 4 bytes, and 4 more for the number of
    // the launch.
    let notice = 4 * element.accumulator().bytes() as u64;
    let notices = tiles.next_multiple_of(GROUP).saturating_mul(num_seqs);
    let workspace_bytes = notices.saturating_mul(notice).saturating_add(16);
    let tile_vectors = u32::try_from(tile_vectors).unwrap_or(u32::MAX);
    let shared_out = SharedOut { tile_vectors, workspace_bytes, one_tile: false };
    (shared_out, tiles.saturating_mul(num_seqs))
}

impl Family for WavesConfig {
    fn name() -> &'static str {
        "waves"
    }

    fn parse(parts: &mut Parts) -> Option<Self> {
        let usual = WavesConfig::DEFAULT;
        let [vectors, threads] = parts.sizes([usual.vectors, usual.threads])?;
        let ahead = parts.lettered('a').unwrap_or(usual.ahead);
        let in_flight = parts.lettered('f').unwrap_or(usual.in_flight);
        Some(WavesConfig { vectors, threads, ahead, in_flight, whole: parts.flag("w") })
    }

    fn from_arguments(pass: Pass, arguments: &[&str]) -> Option<Self> {
        let [vectors, threads, ahead, in_flight, whole, reverse] = arguments else { return None };
        truth(reverse)?;
        let fewer = WavesConfig::DEFAULT.vectors - WavesConfig::DEFAULT.vectors_of(pass);
        let vectors = number(vectors)?.checked_add(fewer)?;
        let (threads, ahead, in_flight) = (number(threads)?, number(ahead)?, number(in_flight)?);
        Some(WavesConfig { vectors, threads, ahead, in_flight, whole: truth(whole)? })
    }

    fn candidates(element: ElementType) -> Vec<Self> {
        let all = [
            ((4, 288), (5, 1)),
            ((4, 352), (4, 1)),
            ((4, 224), (7, 1)),
            ((2, 288), (5, 1)),
            ((5, 256), (4, 1)),
            ((5, 288), (4, 1)),
            ((4, 320), (5, 1)),
            ((3, 352), (5, 1)),
            ((4, 288), (4, 1)),
        ];
        // Types differ in the size of their elements alone, and the space for a tile is the same.
        let tried = if element == ElementType::F32 { &all[..] } else { &all[..4] };
        let config = |&((vectors, threads), (ahead, in_flight)): &((u32, u32), (u32, u32))| {
            let of = move |&whole| WavesConfig { vectors, threads, ahead, in_flight, whole };
            wholes(element).iter().map(of)
        };
        tried.iter().flat_map(config).collect()
    }

    fn spelled(&self) -> String {
        let WavesConfig { vectors, threads, ahead, in_flight, whole } = *self;
        let option = |letter, value, usual| {
            if value == usual { String::new() } else { format!(":{letter}{value}") }
        };
        let ahead = option('a', ahead, WavesConfig::DEFAULT.ahead);
        let in_flight = option('f', in_flight, WavesConfig::DEFAULT.in_flight);
        format!("{vectors}x{threads}{ahead}{in_flight}{}", if whole { ":w" } else { "" })
    }

    fn arguments(&self, pass: Pass, direction: Direction) -> Vec<String> {
        let WavesConfig { threads, ahead, in_flight, whole, .. } = *self;
        let sizes = [self.vectors_of(pass), threads, ahead, in_flight].map(|size| size.to_string());
        let truths = [whole, direction == Direction::Reverse].map(|truth| truth.to_string());
        sizes.into_iter().chain(truths).collect()
    }

    fn takes_direction(&self) -> bool {
        false
    }

    fn takes_mail(&self) -> bool {
        true
    }

    fn geometry(&self, element: ElementType, pass: Pass, num_seqs: u64, seq_len: u64) -> Geometry {
        let (vectors, warps) = (self.vectors_of(pass), self.threads / 32);
        let (shared_out, tiles) =
            shared_out(element, (num_seqs, seq_len), (vectors, warps), self.whole, TILES);
        // One block copies the states of sequences without elements.
        let blocks = if seq_len == 0 { num_seqs.min(1) } else { tiles };
        let (threads, shared_bytes) = (self.threads.saturating_add(32), self.shared_bytes(pass));
        Geometry { blocks, threads, shared_bytes, shared_out: Some(shared_out) }
    }

    fn multiple_of(&self, element: ElementType) -> u64 {
        if self.whole { elements(element, 1) } else { 1 }
    }

    fn tile(&self, element: ElementType) -> Option<u64> {
        Some(u64::from(self.threads).saturating_mul(elements(element, self.vectors)))
    }

    fn is_worth(&self, element: ElementType, seq_len: u64) -> bool {
        // A sequence of one tile has one block.
        Family::tile(self, element).is_some_and(|tile| tile < seq_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: ElementType = ElementType::F32;

    #[test]
    fn tiles_follow_the_shape_alone() {
        let tiles = |num_seqs, seq_len| {
            let geometry = WavesConfig::DEFAULT.geometry(F32, Pass::Forward, num_seqs, seq_len);
            (geometry.shared_out.unwrap().tile_vectors, geometry.blocks)
        };
        // A warp has 128 vectors of four elements, and a block nine warps.
        assert_eq!(tiles(1, 1), (128, 1));
        assert_eq!(tiles(1, 1 << 20), (1152, 228));
        assert_eq!(tiles(1, 1 << 18), (384, 171));
        assert_eq!(tiles(1, 1 << 16), (128, 129));
        assert_eq!(tiles(100, 1000), (128, 200));
        assert_eq!(tiles(1000, 10_000), (1152, 3000));
        assert_eq!((tiles(0, 100).1, tiles(3, 0).1, tiles(0, 0).1), (0, 1, 0));
        assert_eq!(tiles(u64::MAX, u64::MAX).1, u64::MAX);
    }

    #[test]
    fn a_workspace_has_a_notice_for_each_tile_in_whole_groups() {
        let bytes = |element, num_seqs, seq_len| {
            let geometry = WavesConfig::DEFAULT.geometry(element, Pass::Forward, num_seqs, seq_len);
            geometry.shared_out.unwrap().workspace_bytes
        };
        assert_eq!(bytes(F32, 1, 1000), 16 + 128 * 16);
        assert_eq!(bytes(F32, 2, 128 * 4608), 16 + 2 * 256 * 16);
        assert_eq!(bytes(ElementType::Bf16, 1, 1000), 16 + 128 * 16);
        assert_eq!(bytes(ElementType::Complex128, 1, 1000), 16 + 128 * 64);
    }
}
