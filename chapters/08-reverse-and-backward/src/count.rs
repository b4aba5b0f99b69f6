//! The cost of a launch, as counted by the emulator.

use linrec::device::{BackwardOptions, Device, ForwardOptions, Recurrence, Storage};
use linrec::kernels::{KernelChoice, Pass};
use linrec::simt::{Access, Counters, Site};
use linrec::{Element, Error};

/// Runs a kernel over arrays of ones and returns the emulator's counters.
///
/// # Errors
///
/// Returns an error if the kernel is not shipped or does not support sequences of that length.
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

/// Sums over several kinds of accesses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// The number of warps' requests.
    pub requests: u64,
    /// The number of 32-byte sectors that they touched, in global memory.
    pub sectors: u64,
    /// The number of passes over the banks of shared memory.
    pub wavefronts: u64,
    /// The passes among them that conflicts caused.
    pub conflicts: u64,
    /// The number of bytes that lanes requested.
    pub bytes: u64,
}

/// Adds up these sites of a launch.
pub fn sum<'a>(sites: impl IntoIterator<Item = &'a Site>) -> Sum {
    sites.into_iter().fold(Sum::default(), |sum, site| Sum {
        requests: sum.requests + site.requests,
        sectors: sum.sectors + site.sectors,
        wavefronts: sum.wavefronts + site.wavefronts,
        conflicts: sum.conflicts + site.conflicts,
        bytes: sum.bytes + site.bytes,
    })
}

/// Adds up the sites of one kind of access.
pub fn of(counters: &Counters, access: Access) -> Sum {
    sum(counters.sites.iter().filter(|site| site.access == access))
}

#[cfg(test)]
mod tests {
    use super::{count, of};
    use crate::pipe;
    use linrec::kernels::{Memcode, Pass};
    use linrec::simt::Access;

    #[test]
    fn the_ways_differ_in_sectors_and_not_in_bytes() {
        let ways = Memcode::ALL.map(|memcode| {
            let counters = count::<f32>(pipe(memcode), Pass::Forward, (2, 1024)).unwrap();
            of(&counters, Access::GlobalLoad)
        });
        assert!(ways.iter().all(|way| way.bytes == 2 * 2 * 1024 * 4));
        let per_request = ways.map(|way| way.sectors as f64 / way.requests as f64);
        assert_eq!(per_request, [32.0, 4.0, 16.0]);
    }

    #[test]
    fn backward_reads_three_arrays_and_writes_two() {
        for memcode in Memcode::ALL {
            let counters = count::<f32>(pipe(memcode), Pass::Backward, (3, 700)).unwrap();
            let elements = 3 * 700 * 4;
            // Nothing is loaded twice. One output of each row is not needed at all, and its first
            // coefficient only for the gradient of the initial state.
            let loads = of(&counters, Access::GlobalLoad).bytes;
            assert_eq!(loads, 3 * elements - 2 * 3 * 4, "memcode {memcode}");
            assert_eq!(of(&counters, Access::GlobalStore).bytes, 2 * elements);
        }
    }
}
