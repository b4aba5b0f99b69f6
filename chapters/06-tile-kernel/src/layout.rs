//! The layout of a tile: which thread of a block holds which steps.

use std::ops::Range;

/// A thread's part of a tile: `count` steps from `begin` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The first step.
    pub begin: usize,
    /// The number of steps.
    pub count: usize,
}

impl Share {
    /// Returns the range of steps.
    pub fn steps(self) -> Range<usize> {
        self.begin..self.begin + self.count
    }
}

/// Returns the part of each of `threads` threads, as the kernel computes it. The parts are as equal
/// as possible, and the shorter ones come last.
///
/// The result is empty if `threads` is 0.
// ANCHOR: shares
pub fn shares(tile_len: usize, threads: usize) -> Vec<Share> {
    if threads == 0 {
        return Vec::new();
    }
    let most = tile_len.div_ceil(threads);
    let first_of_tail = threads - (most * threads - tile_len);
    let share = |thread: usize| match thread.checked_sub(first_of_tail) {
        None => Share { begin: thread * most, count: most },
        Some(in_tail) => Share { begin: thread * most - in_tail, count: most - 1 },
    };
    (0..threads).map(share).collect()
}
// ANCHOR_END: shares

#[cfg(test)]
mod tests {
    use super::{Share, shares};

    #[test]
    fn every_step_has_one_thread_and_shares_differ_by_one_at_most() {
        for threads in [1, 2, 31, 32, 64, 1024] {
            for tile_len in [0, 1, threads - 1, threads, threads + 1, 77, 1000, 4 * threads] {
                let shares = shares(tile_len, threads);
                let steps: Vec<usize> = shares.iter().flat_map(|share| share.steps()).collect();
                assert!(steps.iter().copied().eq(0..tile_len), "{tile_len} on {threads}");
                let counts = || shares.iter().map(|share| share.count);
                assert!(counts().max() <= counts().min().map(|count| count + 1));
                assert!(shares.is_sorted_by_key(|share| std::cmp::Reverse(share.count)));
            }
        }
        assert_eq!(shares(5, 0), []);
    }

    #[test]
    fn the_tail_has_one_step_less() {
        let shares = shares(77, 32);
        assert_eq!(shares[12], Share { begin: 36, count: 3 });
        assert_eq!(shares[13], Share { begin: 39, count: 2 });
        assert_eq!(shares[31], Share { begin: 75, count: 2 });
    }
}
