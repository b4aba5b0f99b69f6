//! Solutions to the exercises that ask for code. Two of them are also CUDA kernels, in
//! `kernels/exercises/`.

use std::collections::BTreeSet;

use ch02_two_threads::Transition;
use linrec::Element;

use crate::layout::Share;
use crate::levels::{LANES, compose, scan_warp};

/// Performs level 2 of the recurrence in reverse, with the lanes in the order of the row. Every
/// lane combines its transition with the transitions of all lanes above it.
// ANCHOR: scan_warp_down
pub fn scan_warp_down<T: Element>(lanes: &mut [Transition<T>]) {
    let mut reach = 1;
    while reach < LANES {
        let before = lanes.to_vec();
        for lane in 0..lanes.len().saturating_sub(reach) {
            lanes[lane] = compose(before[lane + reach], before[lane]);
        }
        reach *= 2;
    }
}
// ANCHOR_END: scan_warp_down

/// Spreads the tail over the block: thread `t` begins at `t / threads` of the tile.
// ANCHOR: spread
pub fn spread(tile_len: usize, threads: usize) -> Vec<Share> {
    let begin = |thread: usize| thread * tile_len / threads;
    let share = |thread| Share { begin: begin(thread), count: begin(thread + 1) - begin(thread) };
    (0..threads).map(share).collect()
}
// ANCHOR_END: spread

/// Fills one thread after the other with `max_elems` steps until no steps are left.
// ANCHOR: filled
pub fn filled(tile_len: usize, threads: usize, max_elems: usize) -> Vec<Share> {
    let begin = |thread: usize| tile_len.min(thread * max_elems);
    let share = |thread| Share { begin: begin(thread), count: begin(thread + 1) - begin(thread) };
    (0..threads).map(share).collect()
}
// ANCHOR_END: filled

/// Returns the requests and sectors of one `f32` array that begins at a sector, if each thread
/// reads the steps of its share one by one.
// ANCHOR: sectors
pub fn requests_and_sectors(shares: &[Share], max_elems: usize) -> (usize, usize) {
    let (mut requests, mut sectors) = (0, 0);
    for warp in shares.chunks(LANES) {
        // Threads with a full share take another path through the kernel than threads with less.
        for full in [true, false] {
            for i in 0..max_elems {
                let asks = |share: &&Share| i < share.count && (share.count == max_elems) == full;
                let touched: BTreeSet<usize> =
                    warp.iter().filter(asks).map(|share| 4 * (share.begin + i) / 32).collect();
                requests += usize::from(!touched.is_empty());
                sectors += touched.len();
            }
        }
    }
    (requests, sectors)
}
// ANCHOR_END: sectors

/// Performs level 3 as the post does: one warp takes the transitions of all warps and scans them as
/// in level 2. Returns the state before each warp.
// ANCHOR: scan_block_by_shuffles
pub fn scan_block_by_shuffles<T: Element>(totals: &[Transition<T>], initial: T) -> Vec<T> {
    // A barrier: all totals are in shared memory, and the first warp reads one into each lane.
    let mut lanes = totals.to_vec();
    scan_warp(&mut lanes);
    // The warp writes its results, and a second barrier publishes them to the other warps.
    let before = lanes.iter().map(|before| initial.mul_add(before.coeff, before.state));
    [initial].into_iter().chain(before).take(totals.len()).collect()
}
// ANCHOR_END: scan_block_by_shuffles

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::shares;
    use crate::levels::{scan_block, scan_tile};
    use crate::stages::CHOICE;
    use approx::assert_abs_diff_eq;
    use linrec::simt::Access;

    fn some_transitions(count: usize) -> Vec<Transition<f64>> {
        let at = |l: usize| (l as f64 * 0.7).sin();
        (0..count)
            .map(|l| Transition { coeff: 1.0 - 0.1 * at(l).abs(), state: at(l + 3) })
            .collect()
    }

    #[test]
    fn a_scan_downwards_mirrors_a_scan_upwards() {
        for count in [1, 2, 5, 31, 32] {
            let lanes = some_transitions(count);
            let (mut up, mut down) = (lanes.clone(), lanes);
            up.reverse();
            scan_warp(&mut up);
            up.reverse();
            scan_warp_down(&mut down);
            assert_eq!(up, down, "{count}");
        }
    }

    #[test]
    fn other_shares_cover_the_tile_and_give_the_same_outputs() {
        for (tile_len, threads) in [(0, 32), (1, 32), (33, 32), (77, 32), (1001, 256), (1024, 256)]
        {
            let inputs: Vec<f64> = (0..tile_len).map(|l| (l % 7) as f64 - 3.0).collect();
            let coeffs: Vec<f64> = (0..tile_len).map(|l| [1.0, -1.0, 0.5][l % 3]).collect();
            // A coefficient of 1/2 at every third step: products stay exact for a warp, but not for
            // a block.
            let expected = scan_tile(&inputs, &coeffs, 0.0, &shares(tile_len, threads), 4);
            let spread = spread(tile_len, threads);
            let counts = || spread.iter().map(|share| share.count);
            assert!(counts().max() <= counts().min().map(|count| count + 1));
            for shares in [spread, filled(tile_len, threads, 4)] {
                assert_eq!(shares.iter().map(|share| share.count).sum::<usize>(), tile_len);
                let outputs = scan_tile(&inputs, &coeffs, 0.0, &shares, 4);
                assert_abs_diff_eq!(outputs[..], expected[..], epsilon = 1e-12);
            }
        }
    }

    #[test]
    fn sectors_are_counted_as_the_emulator_does() {
        for (tile_len, threads) in [(77, 32), (260, 96), (1000, 256), (1024, 256)] {
            let counters = crate::stages::counted(CHOICE, (1, tile_len)).unwrap();
            let counters = counters.counters().unwrap();
            let (requests, sectors) = requests_and_sectors(&shares(tile_len, threads), 4);
            for access in [Access::GlobalLoad, Access::GlobalStore] {
                let arrays = if access == Access::GlobalLoad { 2 } else { 1 };
                assert_eq!(counters.requests(access), arrays * requests as u64, "{tile_len}");
                assert_eq!(counters.sectors(access), arrays * sectors as u64, "{tile_len}");
            }
        }
    }

    #[test]
    fn a_warp_of_totals_gives_the_states_before_the_warps() {
        for warps in [1, 2, 7, 8, 32] {
            let totals = some_transitions(warps);
            let by_shuffles = scan_block_by_shuffles(&totals, 3.0);
            let one_by_one = scan_block(&totals, 3.0);
            assert_abs_diff_eq!(by_shuffles[..], one_by_one[..warps], epsilon = 1e-13);
        }
    }
}
