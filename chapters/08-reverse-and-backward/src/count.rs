//! What a launch costs, counted by the emulator.

use linrec::device::{BackwardOptions, Device, ForwardOptions, Recurrence, Storage};
use linrec::kernels::{self, KernelChoice, Pass};
use linrec::simt::{Access, Counters, Site};
use linrec::{Element, Error};

/// Runs a kernel over arrays of ones, and returns what the emulator counted.
///
/// # Errors
///
/// If the kernel is not shipped or does not take sequences of that length.
pub fn count<S: Storage>(
    choice: KernelChoice,
    pass: Pass,
    shape @ (num_seqs, seq_len): (usize, usize),
) -> Result<Counters, Error> {
    let device = Device::simt();
    let ones = device.upload(&vec![S::narrow(S::Accum::from_real(1.0)); num_seqs * seq_len])?;
    let (mut y, mut z) = (device.allocate(ones.len())?, device.allocate(ones.len())?);
    let recurrence = Recurrence::<S>::new(&device, choice)?;
    let launched = match pass {
        Pass::Forward => {
            recurrence.forward_into(&ones, &ones, &mut y, shape, ForwardOptions::default())
        }
        Pass::Backward => {
            let options = BackwardOptions::default();
            recurrence.backward_into(&ones, &ones, &ones, &mut y, &mut z, shape, options)
        }
    }?;
    Ok(launched.counters().cloned().unwrap_or_default())
}

/// Sums over the sites of some kinds of accesses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// Requests of warps.
    pub requests: u64,
    /// 32-byte sectors that they touched, in global memory.
    pub sectors: u64,
    /// Passes over the banks of shared memory.
    pub wavefronts: u64,
    /// Those of them that conflicts cost.
    pub conflicts: u64,
    /// Bytes that lanes asked for.
    pub bytes: u64,
}

/// Adds up the sites of a launch that are wanted.
pub fn sum<'a>(sites: impl IntoIterator<Item = &'a Site>) -> Sum {
    sites.into_iter().fold(Sum::default(), |sum, site| Sum {
        requests: sum.requests + site.requests,
        sectors: sum.sectors + site.sectors,
        wavefronts: sum.wavefronts + site.wavefronts,
        conflicts: sum.conflicts + site.conflicts,
        bytes: sum.bytes + site.bytes,
    })
}

/// The sites of one kind of access.
pub fn of(counters: &Counters, access: Access) -> Sum {
    sum(counters.sites.iter().filter(|site| site.access == access))
}

/// Where threads take single elements of theirs, or put them: `read_strided` and `write_strided` of
/// `memio.cuh`.
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
    use super::{count, of, of_threads};
    use crate::pipe;
    use linrec::kernels::Pass;
    use linrec::simt::Access;

    #[test]
    fn the_ways_differ_in_sectors_and_not_in_bytes() {
        let ways = [0, 1, 2].map(|memcode| {
            let counters = count::<f32>(pipe(memcode), Pass::Forward, (2, 1024)).unwrap();
            of(&counters, Access::GlobalLoad)
        });
        assert!(ways.iter().all(|way| way.bytes == 2 * 2 * 1024 * 4));
        let per_request = ways.map(|way| way.sectors as f64 / way.requests as f64);
        assert_eq!(per_request, [32.0, 4.0, 16.0]);
    }

    #[test]
    fn backward_reads_three_arrays_and_writes_two() {
        for memcode in 0..3 {
            let counters = count::<f32>(pipe(memcode), Pass::Backward, (3, 700)).unwrap();
            let elements = 3 * 700 * 4;
            // Nothing is loaded twice; one output of each row is not needed at all, and neither is its first
            // coefficient unless the gradient of the initial state is wanted.
            let loads = of(&counters, Access::GlobalLoad).bytes;
            assert_eq!(loads, 3 * elements - 2 * 3 * 4, "memcode {memcode}");
            assert_eq!(of(&counters, Access::GlobalStore).bytes, 2 * elements);
        }
    }

    #[test]
    fn threads_meet_in_the_banks_by_their_common_divisor() {
        for steps in 1..=8 {
            let counters = count::<f32>(pipe(1), Pass::Forward, (1, 32 * steps)).unwrap();
            for access in [Access::SharedLoad, Access::SharedStore] {
                let threads = of_threads(&counters, access);
                assert_eq!(threads.requests as usize % steps, 0);
                let expected = [1, 2, 1, 4, 1, 2, 1, 8][steps - 1];
                assert_eq!(threads.wavefronts, expected * threads.requests, "{steps} {access:?}");
            }
            let none = count::<f32>(pipe(0), Pass::Forward, (1, 32 * steps)).unwrap();
            assert_eq!(of_threads(&none, Access::SharedLoad).requests, 0);
        }
    }
}
