//! The cost of a step, as counted by the emulator.

use bench::counted::PerElement;
use linrec::Error;
use linrec::device::Device;
use linrec::simt::{Access, Counters};

use crate::kernel::Kernel;
use crate::rung::Rung;

/// Runs a step on the emulator over arrays of ones and returns the counters.
///
/// # Errors
///
/// Returns an error if the step is not shipped, or does not support such rows.
pub fn count(rung: Rung, shape: (usize, usize)) -> Result<Counters, Error> {
    let device = Device::simt();
    let ones = device.upload(&vec![1.0_f32; shape.0 * shape.1])?;
    let mut outputs = device.allocate(ones.len())?;
    let (kernel, options) = (Kernel::new(&device, rung)?, Default::default());
    let launched = kernel.launch(&ones, &ones, &mut outputs, shape.into(), options)?;
    Ok(launched.counters().cloned().unwrap_or_default())
}

/// Runs a step on the emulator over arrays of ones, and divides the counters by the number of
/// elements.
///
/// # Errors
///
/// Returns an error if the step is not shipped, or does not support such rows.
pub fn per_element(rung: Rung, shape: (usize, usize)) -> Result<PerElement, Error> {
    Ok(PerElement::new(&count(rung, shape)?, shape.0 * shape.1))
}

/// Returns the average number of 32-byte sectors that a request of a warp touches, for loads and
/// for stores.
pub fn sectors_per_request(counters: &Counters) -> [f64; 2] {
    let each = |accesses: &[Access]| {
        let sum = |of: fn(&Counters, Access) -> u64| {
            accesses.iter().map(|&access| of(counters, access)).sum::<u64>() as f64
        };
        sum(Counters::sectors) / sum(Counters::requests).max(1.0)
    };
    [each(&[Access::GlobalLoad, Access::CopyAsync]), each(&[Access::GlobalStore])]
}

#[cfg(test)]
mod tests {
    use super::{count, sectors_per_request};
    use crate::rung::{Idea, Rung};
    use linrec::simt::Access;

    #[test]
    fn every_step_moves_each_byte_once() {
        let (num_seqs, seq_len) = (3, 2092);
        for idea in Idea::ALL {
            let counters = count(Rung::shipped(idea), (num_seqs, seq_len)).unwrap();
            let bytes = |access: Access| -> u64 {
                counters.sites.iter().filter(|site| site.access == access).map(|s| s.bytes).sum()
            };
            let array = (4 * num_seqs * seq_len) as u64;
            let loaded = bytes(Access::GlobalLoad) + bytes(Access::CopyAsync);
            assert_eq!([loaded, bytes(Access::GlobalStore)], [2 * array, array], "{idea:?}");
        }
    }

    #[test]
    fn consecutive_vectors_fill_their_requests() {
        for idea in Idea::ALL {
            let counters = count(Rung::shipped(idea), (2, 2048)).unwrap();
            // 512 bytes in 16 sectors; or vectors 32 bytes apart, where another request touches the
            // other halves of the sectors.
            let expected = if idea == Idea::Blocked { 32.0 } else { 16.0 };
            assert_eq!(sectors_per_request(&counters), [expected; 2], "{idea:?}");
        }
    }
}
