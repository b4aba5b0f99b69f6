//! What works across the lanes of a warp: shuffles, votes, reductions.

use super::fault::{Result, fault};
use super::registers::{ALL, Registers, Words};
use super::warp::Lanes as At;
use crate::counters::lanes as each;
use crate::program::{Shuffle, Slot};
use crate::report::{Lanes, ReportKind};

/// Whether the lanes that a warp-wide instruction names are together.
pub(super) enum Gathered {
    Yes,
    /// Some of them are elsewhere, and may come.
    NotYet,
}

/// Checks the masks of a warp-wide instruction. `active` lanes execute it, `path` are those at this place
/// (the rest of them skips it), `alive` have not left the kernel. Lanes that have left, or that the block never had, count
/// as being there, as they do on a GPU since Volta: a mask may name them.
pub(super) fn gather(masks: &Words, active: u32, path: u32, alive: u32) -> Result<Gathered> {
    // Nearly always: one mask, and all of its lanes are here.
    if active == ALL && masks.iter().all(|mask| *mask == ALL) {
        return Ok(Gathered::Yes);
    }
    let mut together = true;
    for lane in each(active) {
        let mask = masks[lane];
        if mask >> lane & 1 == 0 {
            let message =
                format!("executes with mask {mask:#010x}, which does not name lane {lane}");
            return fault(ReportKind::Shuffle, 1 << lane, message);
        }
        if mask & path & !active != 0 {
            let who = Lanes(mask & path & !active);
            let message = format!("names {who} in its mask {mask:#010x}, which skips it");
            return fault(ReportKind::Shuffle, active, message);
        }
        if let Some(other) = each(mask & active).find(|&other| (masks[other] ^ mask) & alive != 0) {
            let theirs = masks[other];
            let message = format!(
                "executes with mask {mask:#010x}, and lane {other} at the same time with {theirs:#010x}"
            );
            return fault(ReportKind::Shuffle, 1 << lane, message);
        }
        together &= mask & alive & !active == 0;
    }
    Ok(if together { Gathered::Yes } else { Gathered::NotYet })
}

/// What is to be said of a shuffle that names lanes which have left, if what follows shows that they are missing.
pub(super) fn suspicion(masks: &Words, active: u32, left: u32) -> Option<String> {
    let mask = each(active).map(|lane| masks[lane]).find(|mask| mask & left != 0)?;
    let who = Lanes(mask & left);
    Some(format!("names {who} in its mask {mask:#010x}, which left the kernel before"))
}

/// The slots of a shuffle: `b` chooses the source, `c` holds the segment.
pub(super) struct Operands {
    pub(super) d: Slot,
    pub(super) valid: Option<Slot>,
    pub(super) a: Slot,
    pub(super) b: Slot,
    pub(super) c: Slot,
    pub(super) mask: Slot,
}

/// What the lanes held, and from which lane they got what they hold now.
pub(super) struct Shuffled {
    pub(super) before: Words,
    pub(super) after: Words,
    pub(super) sources: [u8; 32],
}

/// `shfl.sync`, after the PTX ISA's definition (9.7.8.6). Returns what the lanes held before and after.
pub(super) fn shuffle(
    r: &mut Registers,
    op: Shuffle,
    operands: &Operands,
    at: At,
) -> Result<Shuffled> {
    let active = at.active;
    let Operands { d, valid, a, b, c, mask } = *operands;
    let (values, b, c) = (*r.words(a), *r.words(b), *r.words(c));
    let (mut result, mut sources, mut in_range) = (values, [0; 32], 0);
    for lane in 0..32_u32 {
        let (b, c) = (b[lane as usize] & 31, c[lane as usize]);
        let (clamp, segment) = (c & 31, c >> 8 & 31);
        let first = lane & segment;
        let last = first | clamp & !segment;
        let (source, holds) = match op {
            // For `up` the clamp is the lowest lane.
            Shuffle::Up => (lane.wrapping_sub(b), lane as i32 - b as i32 >= last as i32),
            Shuffle::Down => (lane + b, lane + b <= last),
            Shuffle::Butterfly => (lane ^ b, lane ^ b <= last),
            Shuffle::Index => {
                let source = first | b & !segment;
                (source, source <= last)
            }
        };
        let source = if holds { source } else { lane };
        if active >> lane & 1 == 1 {
            if active >> source & 1 == 0 {
                let mask = r.words(mask)[lane as usize];
                let message = if mask >> source & 1 == 0 {
                    format!("reads a value of lane {source}, which does not take part")
                } else {
                    let is_left = at.exists >> source & 1 == 1;
                    let why =
                        if is_left { "left the kernel before" } else { "the block does not have" };
                    format!(
                        "names lane {source} in its mask {mask:#010x}, which {why}, and reads its value"
                    )
                };
                return fault(ReportKind::Shuffle, 1 << lane, message);
            }
            result[lane as usize] = values[source as usize];
            sources[lane as usize] = source as u8;
            in_range |= u32::from(holds) << lane;
        }
    }
    r.set_words(d, active, |i| result[i]);
    if let Some(valid) = valid {
        r.set_predicate(valid, active, in_range);
    }
    Ok(Shuffled { before: values, after: result, sources })
}

pub(super) fn name(op: Shuffle) -> &'static str {
    match op {
        Shuffle::Up => "up",
        Shuffle::Down => "down",
        Shuffle::Butterfly => "bfly",
        Shuffle::Index => "idx",
    }
}
