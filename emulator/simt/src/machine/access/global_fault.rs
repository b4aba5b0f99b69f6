//! What is wrong with accesses to global memory, in sentences.

use crate::machine::state::{Place, Run};
use crate::memory::global::{self, Buffer, Contents, Named, Wrong};
use crate::memory::order::Conflict;
use crate::report::{Count, Fault, ReportKind, Result, fault, lanes as each};

impl Run<'_> {
    #[cold]
    pub(crate) fn nowhere<T>(
        &self,
        address: u64,
        bytes: u32,
        lane: usize,
        verb: &str,
    ) -> Result<T> {
        let what = global::describe(self.slots, address);
        fault(
            ReportKind::OutOfBounds,
            1 << lane,
            format!("{verb} {} at {what}", Count(bytes, "byte")),
        )
    }

    #[cold]
    pub(crate) fn wrong<T>(
        &self,
        wrong: Wrong,
        writes: bool,
        (buffer, offset): (&Buffer, u64),
        bytes: u32,
        lane: usize,
    ) -> Result<T> {
        let verb = if writes { "writes" } else { "reads" };
        let what =
            format!("{verb} {} at offset {offset} of {}", Count(bytes, "byte"), Named(buffer));
        let (kind, message) = match wrong {
            Wrong::Unwritten => {
                (ReportKind::Uninitialized, format!("{what}, which nothing has written"))
            }
            Wrong::OtherBlock { block, wrote } => {
                let who = match block {
                    Some(block) => format!("block {block}"),
                    None => "several other blocks".to_string(),
                };
                let does = match (wrote, block) {
                    (true, _) => "writes",
                    (false, Some(_)) => "reads",
                    (false, None) => "read",
                };
                let message = format!(
                    "{what}, which {who} {does} in the same launch: nothing orders the two"
                );
                (ReportKind::Race, message)
            }
        };
        fault(kind, 1 << lane, message)
    }

    #[cold]
    pub(crate) fn unordered(
        &self,
        place: &Place,
        verb: &str,
        address: u64,
        lane: usize,
        buffer: &Buffer,
        conflict: Conflict,
    ) -> Result<()> {
        let warps = place.warps as usize;
        let (launch, unit) = self.beside.warp(conflict.unit);
        let (block, warp) = (unit / warps, unit % warps);
        let block = block as u64 + place.first_block;
        let launch = match launch == self.beside.number {
            true => String::new(),
            false => format!(" of launch {launch}"),
        };
        let kernel = self.launch.kernel;
        let message = format!(
            "{verb} offset {} of {}, which warp {warp} of block {block}{launch} {} at {}: nothing orders the two",
            global::offset_of(address),
            Named(buffer),
            if conflict.wrote { "writes" } else { "reads" },
            kernel.place_of(conflict.pc as usize),
        );
        fault(ReportKind::Race, 1 << lane, message)
    }

    /// Adds the lanes that make the same mistake to an access out of bounds.
    #[cold]
    pub(crate) fn with_alike(
        &mut self,
        mut fault: Box<Fault>,
        addresses: &[u64; 32],
        lanes: u32,
        bytes: u32,
    ) -> Box<Fault> {
        if fault.kind == ReportKind::OutOfBounds {
            for lane in each(lanes) {
                if self.locate(addresses[lane], bytes, lane, "").is_err() {
                    fault.lanes |= 1 << lane;
                }
            }
        }
        fault
    }
}

/// Refuses to write to constant memory.
#[inline(always)]
pub(crate) fn writable(
    (buffer, offset): (&Buffer, u64),
    bytes: u32,
    lane: usize,
    verb: &str,
) -> Result<()> {
    if buffer.contents != Contents::Constant {
        return Ok(());
    }
    let message = format!(
        "{verb} {} at offset {offset} of {}, which lies in constant memory",
        Count(bytes, "byte"),
        Named(buffer)
    );
    fault(ReportKind::ReadOnly, 1 << lane, message)
}
