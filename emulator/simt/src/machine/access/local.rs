//! Local memory, which belongs to one thread, and the kernel's parameters, which are only read.

use super::moved::{Moved, gathered, spread};
use crate::isa::Vector;
use crate::machine::state::{Place, Registers, Run, Scratch};
use crate::report::{Count, ReportKind, Result, fault, lanes as each};

/// Returns the index of an access's first word. The words of all lanes are interleaved.
pub(crate) fn local_word(
    scratch: &Scratch<'_>,
    offset: u64,
    lane: usize,
    bytes: u32,
    verb: &str,
) -> Result<usize> {
    let end = offset.checked_add(u64::from(bytes));
    let size = scratch.local.len() as u64 / 32 * 4;
    if end.is_none_or(|end| end > size) {
        let message = format!(
            "{verb} {} at offset {offset} of its local memory, which has {}",
            Count(bytes, "byte"),
            Count(size, "byte")
        );
        return fault(ReportKind::OutOfBounds, 1 << lane, message);
    }
    Ok((offset / 4) as usize * 32 + lane)
}

pub(crate) fn load_local(
    r: &mut Registers,
    scratch: &Scratch<'_>,
    shape: Vector,
    addresses: &[u64; 32],
    lanes: u32,
) -> Result<()> {
    let bytes = shape.bytes();
    let mut moved: Moved<4> = [[0; 4]; 32];
    for lane in each(lanes) {
        let first = local_word(scratch, addresses[lane], lane, bytes, "reads")?;
        for (i, word) in moved[lane].iter_mut().enumerate().take(bytes.div_ceil(4) as usize) {
            *word = scratch.local[first + 32 * i];
        }
        moved[lane][0] >>= 8 * (addresses[lane] % 4);
    }
    spread(r, &shape, lanes, &moved);
    Ok(())
}

pub(crate) fn store_local(
    r: &Registers,
    scratch: &mut Scratch<'_>,
    shape: Vector,
    addresses: &[u64; 32],
    lanes: u32,
) -> Result<()> {
    let bytes = shape.bytes();
    let moved: Moved<4> = gathered(r, &shape);
    for lane in each(lanes) {
        let first = local_word(scratch, addresses[lane], lane, bytes, "writes")?;
        let value = moved[lane];
        if bytes < 4 {
            let shift = 8 * (addresses[lane] % 4) as u32;
            let mask = if bytes == 1 { 0xff } else { 0xffff } << shift;
            let word = &mut scratch.local[first];
            *word = *word & !mask | value[0] << shift & mask;
        } else {
            for (i, word) in value.into_iter().enumerate().take((bytes / 4) as usize) {
                scratch.local[first + 32 * i] = word;
            }
        }
    }
    Ok(())
}

impl Run<'_> {
    /// Reads parameters, at the same offset in all lanes.
    pub(crate) fn load_parameter(
        &self,
        r: &mut Registers,
        _: &mut Scratch<'_>,
        _: &Place,
        shape: Vector,
        offset: u32,
        lanes: u32,
    ) -> Result<()> {
        let bytes = shape.bytes() as usize;
        let arguments = self.launch.arguments.get(offset as usize..).unwrap_or(&[]);
        let words = words_of(&arguments[..bytes.min(arguments.len())]);
        spread(r, &shape, lanes, &[words; 32]);
        Ok(())
    }

    /// Reads parameters, at an address for each lane.
    pub(crate) fn load_parameters(
        &self,
        r: &mut Registers,
        shape: Vector,
        addresses: &[u64; 32],
        lanes: u32,
    ) -> Result<()> {
        let (bytes, arguments) = (shape.bytes() as usize, self.launch.arguments);
        let mut moved: Moved<4> = [[0; 4]; 32];
        for lane in each(lanes) {
            let start = usize::try_from(addresses[lane]).unwrap_or(usize::MAX);
            let end = start.saturating_add(bytes);
            let Some(found) = arguments.get(start..end) else {
                let message = format!(
                    "reads {} at offset {} of the parameters, which have {}",
                    Count(shape.bytes(), "byte"),
                    addresses[lane],
                    Count(arguments.len() as u64, "byte")
                );
                return fault(ReportKind::OutOfBounds, 1 << lane, message);
            };
            moved[lane] = words_of(found);
        }
        spread(r, &shape, lanes, &moved);
        Ok(())
    }
}

/// Returns at most 16 bytes as words.
fn words_of(bytes: &[u8]) -> [u32; 4] {
    let mut all = [0; 16];
    all[..bytes.len()].copy_from_slice(bytes);
    let (words, _) = all.as_chunks();
    std::array::from_fn(|i| u32::from_le_bytes(words[i]))
}

/// Reports an access that updates or writes the parameters, which are only read.
#[cold]
pub(crate) fn no_parameter<T>(verb: &str, addresses: &[u64; 32], lanes: u32) -> Result<T> {
    let lane = lanes.trailing_zeros() as usize % 32;
    let message =
        format!("{verb} offset {} of the parameters, which kernels only read", addresses[lane]);
    fault(ReportKind::ReadOnly, lanes, message)
}
