//! Solutions to the exercises that ask for code.

/// Returns the number of passes of a warp over the banks of shared memory if lane `l` reads bank
/// word `l * steps`, and `free` bank words are left free after every 32 bank words of the tile.
// ANCHOR: passes
pub fn passes(steps: usize, free: usize) -> usize {
    let mut words_of_bank = [0; 32];
    for lane in 0..32 {
        let word = lane * steps;
        words_of_bank[(word + word / 32 * free) % 32] += 1;
    }
    words_of_bank.into_iter().max().unwrap_or(0)
}
// ANCHOR_END: passes

/// Returns how many of the `count` elements from `position` on memcode 2 copies one by one, in
/// vectors of `per_vector`, and one by one again. Vectors begin at positions that `per_vector`
/// divides.
// ANCHOR: vectors
pub fn vectors(position: usize, count: usize, per_vector: usize) -> [usize; 3] {
    let skew = position % per_vector;
    let before = ((per_vector - skew) % per_vector).min(count);
    let vectors = (count - before) / per_vector;
    [before, vectors, count - before - vectors * per_vector]
}
// ANCHOR_END: vectors

#[cfg(test)]
mod tests {
    use super::{passes, vectors};
    use crate::banks::of_threads;
    use ch08_reverse_and_backward::count::{count, of};
    use ch08_reverse_and_backward::pipe;
    use linrec::kernels::{Memcode, Pass};
    use linrec::simt::Access;

    #[test]
    fn banks_are_counted_as_the_emulator_counts_them() {
        for steps in 1..=8 {
            let counters =
                count::<f32>(pipe(Memcode::SharedVectors), Pass::Forward, (1, 32 * steps)).unwrap();
            let threads = of_threads(&counters, Access::SharedLoad);
            assert_eq!(threads.wavefronts, passes(steps, 0) as u64 * threads.requests, "{steps}");
        }
        // Free words after every 32 bank words remove the conflicts of powers of two.
        assert!([2, 4, 8, 16, 32].iter().all(|&steps| passes(steps, 1) == 1));
        assert_eq!((passes(8, 0), passes(8, 4)), (8, 4));
    }

    #[test]
    fn vectors_equal_the_kernels_copies() {
        for (num_seqs, seq_len) in [(5, 509), (8, 77), (4, 512), (6, 3)] {
            let counters =
                count::<f32>(pipe(Memcode::SharedVectors), Pass::Forward, (num_seqs, seq_len))
                    .unwrap();
            let loads = counters.sites.iter().filter(|site| site.access == Access::GlobalLoad);
            let in_vectors: u64 =
                loads.filter(|site| site.opcode.contains(".v4")).map(|site| site.bytes).sum();
            let copied = (0..num_seqs).map(|row| vectors(row * seq_len, seq_len, 4));
            let (mut expected, mut all) = (0, 0);
            for [before, vectors, after] in copied {
                expected += 16 * vectors as u64;
                all += before + 4 * vectors + after;
                assert!(before < 4 && after < 4);
            }
            // Two arrays.
            assert_eq!(in_vectors, 2 * expected, "{num_seqs} rows of {seq_len}");
            assert_eq!(of(&counters, Access::GlobalLoad).bytes, 2 * 4 * all as u64);
        }
        assert_eq!(vectors(1, 2, 4), [2, 0, 0]);
        assert_eq!(vectors(3, 0, 8), [0, 0, 0]);
    }
}
