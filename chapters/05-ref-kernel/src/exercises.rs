//! Solutions to the exercises that ask for code.

use std::collections::BTreeSet;

use linrec::Error;
use linrec::device::{Device, Launched};

use crate::by_hand::upload;

/// Returns the 32-byte sectors that a request touches, in which every lane loads `bytes` bytes at
/// its address.
// ANCHOR: sectors
pub fn sectors(addresses: &[u64], bytes: u64) -> usize {
    let mut sectors = BTreeSet::new();
    for start in addresses {
        let end = start.saturating_add(bytes);
        sectors.extend(start / 32..end.div_ceil(32));
    }
    sectors.len()
}
// ANCHOR_END: sectors

/// Returns the first sequence whose offset, for rows of `seq_len` elements, does not fit into a
/// signed 32-bit number.
// ANCHOR: first_wrong
pub fn first_wrong_sequence(seq_len: u64) -> Option<u64> {
    (seq_len > 0).then(|| (1_u64 << 31).div_ceil(seq_len))
}
// ANCHOR_END: first_wrong

/// A kernel that walks down the columns, as PTX.
const COLUMNS: &str = include_str!("columns.ptx");

/// Computes the recurrence down the columns of arrays `[seq_len, num_seqs]`, with one thread per
/// column.
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] if the slices do not have `num_seqs * seq_len` elements, or the
/// device's own error.
// ANCHOR: columns
pub fn columns(
    device: &Device,
    inputs: &[f32],
    coeffs: &[f32],
    (num_seqs, seq_len): (u32, u32),
) -> Result<(Vec<f32>, Launched), Error> {
    let elements = u64::from(num_seqs) * u64::from(seq_len);
    for (name, slice) in [("inputs", inputs), ("coeffs", coeffs)] {
        if slice.len() as u64 != elements {
            let shape = vec![seq_len as usize, num_seqs as usize];
            let arrays = vec![("shape", shape), (name, vec![slice.len()])];
            return Err(Error::ShapeMismatch { operation: "columns", arrays });
        }
    }
    let kernel = device.module(COLUMNS)?.function("columns")?;
    let mut outputs = device.allocate_named("outputs", inputs.len())?;
    let inputs = upload(device, "inputs", inputs)?;
    let coeffs = upload(device, "coeffs", coeffs)?;
    let launch = kernel.launch(num_seqs.div_ceil(128), 128);
    let launch = launch.arg(&inputs).arg(&coeffs).arg(&mut outputs).arg(num_seqs).arg(seq_len);
    let launched = launch.run(&device.stream())?;
    Ok((outputs.download()?, launched))
}
// ANCHOR_END: columns

#[cfg(test)]
mod tests {
    use super::{columns, first_wrong_sequence, sectors};
    use crate::by_hand;
    use crate::patterns::PATTERNS;
    use linrec::Error;
    use linrec::device::{Device, under_test};
    use linrec::simt::Access;

    #[test]
    fn sectors_are_counted_as_the_emulator_does() {
        for pattern in PATTERNS {
            let cost = pattern.cost().unwrap();
            let first = sectors(&cost.addresses, cost.bytes) as f64;
            assert_eq!(first, cost.sectors_per_request(Access::GlobalLoad), "{pattern}");
        }
        assert_eq!(sectors(&[30], 4), 2);
    }

    #[test]
    fn offsets_wrap_at_two_to_the_31() {
        assert_eq!(first_wrong_sequence(64), Some(1 << 25));
        assert_eq!(first_wrong_sequence(65536), Some(32768));
        assert_eq!(first_wrong_sequence(1000), Some(2_147_484));
        assert_eq!(first_wrong_sequence(0), None);
    }

    #[test]
    fn columns_give_the_bits_of_rows() {
        let (num_seqs, seq_len) = (37, 19);
        let at = |seq: u32, l: u32| f64::from(seq * 31 + l * 7).sin() as f32;
        let by_rows = |f: fn(f32) -> f32| -> Vec<f32> {
            (0..num_seqs).flat_map(|seq| (0..seq_len).map(move |l| f(at(seq, l)))).collect()
        };
        let by_columns = |f: fn(f32) -> f32| -> Vec<f32> {
            (0..seq_len).flat_map(|l| (0..num_seqs).map(move |seq| f(at(seq, l)))).collect()
        };
        let (input, coeff) = (|x| x, |x: f32| 1.0 - x.abs() / 16.0);
        for device in under_test() {
            let shape = (num_seqs, seq_len);
            let rows =
                by_hand::forward(&device, &by_rows(input), &by_rows(coeff), shape).unwrap().0;
            let columns =
                columns(&device, &by_columns(input), &by_columns(coeff), shape).unwrap().0;
            for seq in 0..num_seqs {
                for l in 0..seq_len {
                    let one = rows[(seq * seq_len + l) as usize];
                    let other = columns[(l * num_seqs + seq) as usize];
                    assert_eq!(one.to_bits(), other.to_bits(), "sequence {seq}, position {l}");
                }
            }
        }
    }

    #[test]
    fn columns_take_four_sectors_and_empty_arrays_are_refused() {
        let device = Device::simt();
        let ones = vec![1.0; 128 * 10];
        let (_, launched) = columns(&device, &ones, &ones, (128, 10)).unwrap();
        let counters = launched.counters().unwrap();
        for access in [Access::GlobalLoad, Access::GlobalStore] {
            assert_eq!(counters.sectors(access), 4 * counters.requests(access));
        }
        let error = columns(&device, &ones, &ones[1..], (128, 10)).unwrap_err();
        assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
    }
}
