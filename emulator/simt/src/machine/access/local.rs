//! Local memory, which is the thread's own.

use super::moved::{Moved, gathered, spread};
use crate::isa::Vector;
use crate::machine::state::{Registers, Scratch};
use crate::report::{Count, ReportKind, Result, fault, lanes as each};

/// The word that a lane's access begins in. Word by word, one lane's lies beside the next lane's.
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
