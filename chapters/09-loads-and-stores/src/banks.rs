//! The cost in shared memory of threads that select their own elements, as counted by the emulator.

use ch08_reverse_and_backward::count::{Sum, sum};
use linrec::kernels;
use linrec::simt::{Access, Counters, Site};

/// Adds up the accesses in which threads read or write single elements: `read_strided` and
/// `write_strided` of `memio.cuh`.
pub fn of_threads(counters: &Counters, access: Access) -> Sum {
    let text = kernels::source("memio.cuh").unwrap_or_default();
    let line = |words: &str| text.lines().position(|line| line.contains(words)).unwrap_or(0) as u32;
    let lines = line("// ANCHOR: elements")..line("// ANCHOR_END: elements");
    let within = |site: &&Site| {
        let source = site.source.as_ref();
        let here = source
            .is_some_and(|(file, line)| file.ends_with("memio.cuh") && lines.contains(&(line - 1)));
        here && site.access == access
    };
    sum(counters.sites.iter().filter(within))
}

#[cfg(test)]
mod tests {
    use super::of_threads;
    use ch08_reverse_and_backward::{count::count, pipe};
    use linrec::kernels::{Memcode, Pass};
    use linrec::simt::Access;

    #[test]
    fn threads_meet_in_the_banks_by_their_common_divisor() {
        for steps in 1..=8 {
            let counters =
                count::<f32>(pipe(Memcode::Shared), Pass::Forward, (1, 32 * steps)).unwrap();
            for access in [Access::SharedLoad, Access::SharedStore] {
                let threads = of_threads(&counters, access);
                assert_eq!(threads.requests as usize % steps, 0);
                let expected = [1, 2, 1, 4, 1, 2, 1, 8][steps - 1];
                assert_eq!(threads.wavefronts, expected * threads.requests, "{steps} {access:?}");
            }
            let none = count::<f32>(pipe(Memcode::Direct), Pass::Forward, (1, 32 * steps)).unwrap();
            assert_eq!(of_threads(&none, Access::SharedLoad).requests, 0);
        }
    }
}
