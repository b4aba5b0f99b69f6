//! Instructions across the lanes of a warp: shuffles, votes, reductions, matches, and barriers of a
//! warp.
//!
//! Each of these instructions has a mask of lanes, and waits until the lanes in the mask have come.
//! A mask is reported if it leaves out a lane that executes the instruction, or names lanes that
//! skip it. Lanes that have left the kernel count as present, as on a GPU. The shuffle of a full
//! warp is the most frequent instruction here, so it has its own fast path. Tested by `warp.rs` in
//! `tests/suite`, and by `barriers.ptx`, `divergence.ptx` and `races.ptx` in `tests/cases`.

use super::arithmetic::integer;
use super::state::{ALL, BITS, Lanes as At, Next, Place, Registers, Run, Scratch, Suspect, Words};
use crate::isa::{Binary, Guard, Shuffle, Slot, Type, Vote};
use crate::report::{Lanes, ReportKind, Result, What, fault, lanes as each, uncounted};

/// Checks the masks of a warp-wide instruction. The `active` lanes execute it. The lanes of `path`
/// are at this instruction, and those that are not active skip it. The lanes of `alive` have not
/// left the kernel. A mask may name lanes that have left or that the block does not have: they
/// count as present, as on a GPU since Volta. Returns true if all lanes that the masks name execute
/// the instruction now, and false if some of them may still come.
pub(crate) fn gathered(masks: &Words, At { active, path, alive, .. }: At) -> Result<bool> {
    // The common case: one mask, and all of its lanes are here.
    if active == ALL && masks.iter().all(|mask| *mask == ALL) {
        return Ok(true);
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
    Ok(together)
}

/// Returns the message for a shuffle that names lanes which have left. It is reported only if a
/// later barrier shows that these lanes are missing.
pub(crate) fn suspicion(masks: &Words, active: u32, left: u32) -> Option<String> {
    let mask = each(active).map(|lane| masks[lane]).find(|mask| mask & left != 0)?;
    let who = Lanes(mask & left);
    Some(format!("names {who} in its mask {mask:#010x}, which left the kernel before"))
}

/// The slots of a shuffle: `b` chooses the source lane, `c` holds the clamp and the segment.
pub(crate) struct Operands {
    pub(crate) d: Slot,
    pub(crate) valid: Option<Slot>,
    pub(crate) a: Slot,
    pub(crate) b: Slot,
    pub(crate) c: Slot,
    pub(crate) mask: Slot,
}

/// Executes `shfl.sync` of a full warp whose lanes give the same operands and whose segment is the
/// whole warp, as nearly all shuffles do. Returns false, without effect, for any other shuffle.
pub(crate) fn shuffle_together(r: &mut Registers, op: Shuffle, operands: &Operands) -> bool {
    let Operands { d, valid, a, b, c, .. } = *operands;
    let (all_b, all_c) = (r.words(b), r.words(c));
    let (b, clamp) = (all_b[0] as usize & 31, all_c[0] as usize & 31);
    let differ = |all: &Words| all.iter().fold(0, |other, value| other | value ^ all[0]) != 0;
    if differ(all_b) || differ(all_c) || all_c[0] >> 8 & 31 != 0 {
        return false;
    }
    let values = *r.words(a);
    let mut result = values;
    let in_range = match op {
        Shuffle::Up => {
            let first = (b + clamp).min(32);
            result[first..].copy_from_slice(&values[first - b.min(first)..][..32 - first]);
            ALL.checked_shl(first as u32).unwrap_or(0)
        }
        Shuffle::Down => {
            let count = (clamp + 1).saturating_sub(b);
            result[..count].copy_from_slice(&values[b..][..count]);
            ALL.checked_shr(32 - count as u32).unwrap_or(0)
        }
        Shuffle::Butterfly if clamp == 31 => {
            for (lane, result) in result.iter_mut().enumerate() {
                *result = values[(lane ^ b) & 31];
            }
            ALL
        }
        Shuffle::Butterfly => return false,
        Shuffle::Index if b <= clamp => {
            result = [values[b]; 32];
            ALL
        }
        Shuffle::Index => 0,
    };
    r.set_words(d, ALL, |i| result[i]);
    if let Some(valid) = valid {
        r.set_predicate(valid, ALL, in_range);
    }
    true
}

/// Returns the lanes' values after a shuffle: each active lane takes the value of its source.
pub(crate) fn taken(before: &Words, sources: &[u8; 32], active: u32) -> Words {
    let value = |i: usize| before[usize::from(sources[i]) % 32];
    std::array::from_fn(|i| if active >> i & 1 == 1 { value(i) } else { before[i] })
}

/// Returns the lane that a shuffle reads from, by the definition of the PTX ISA (9.7.8.6); `None`
/// if it is out of range.
#[inline(always)]
pub(crate) fn source(op: Shuffle, lane: u32, b: u32, c: u32) -> Option<u32> {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let first = lane & segment;
    let last = first | clamp & !segment;
    let source = match op {
        // Below the first lane this is a large number.
        Shuffle::Up => lane.wrapping_sub(b),
        Shuffle::Down => lane + b,
        Shuffle::Butterfly => lane ^ b,
        Shuffle::Index => first | b & !segment,
    };
    // For `up` the clamp is the lowest lane.
    let is_in_range = match op {
        Shuffle::Up => source as i32 >= last as i32,
        _ => source <= last,
    };
    is_in_range.then_some(source)
}

/// Executes `shfl.sync`. Returns the source of each active lane, and 0 for the other lanes.
pub(crate) fn shuffle(
    r: &mut Registers,
    op: Shuffle,
    operands: &Operands,
    at: At,
) -> Result<[u8; 32]> {
    let active = at.active;
    let Operands { d, valid, a, b, c, mask } = *operands;
    let (b, c) = (r.words(b), r.words(c));
    let (mut sources, mut in_range) = ([0; 32], 0);
    for lane in 0..32 {
        let source = source(op, lane as u32, b[lane], c[lane]);
        sources[lane] = source.unwrap_or(lane as u32) as u8;
        in_range |= if source.is_some() { BITS[lane] } else { 0 };
    }
    if active != ALL {
        for (lane, source) in sources.iter_mut().enumerate() {
            if active >> lane & 1 == 0 {
                *source = 0;
            } else if active >> *source & 1 == 0 {
                return nothing_to_take(*source, r.words(mask)[lane], lane, at);
            }
        }
    }
    let values = *r.words(a);
    let result = taken(&values, &sources, active);
    r.set_words(d, active, |i| result[i]);
    if let Some(valid) = valid {
        r.set_predicate(valid, active, in_range);
    }
    Ok(sources)
}

/// Reports a lane that reads from a lane which has no value to give.
#[cold]
fn nothing_to_take<T>(source: u8, mask: u32, lane: usize, at: At) -> Result<T> {
    let message = if mask >> source & 1 == 0 {
        format!("reads a value of lane {source}, which does not take part")
    } else {
        let is_left = at.exists >> source & 1 == 1;
        let why = if is_left { "left the kernel before" } else { "the block does not have" };
        format!("names lane {source} in its mask {mask:#010x}, which {why}, and reads its value")
    };
    fault(ReportKind::Shuffle, 1 << lane, message)
}

pub(crate) fn name(op: Shuffle) -> &'static str {
    match op {
        Shuffle::Up => "up",
        Shuffle::Down => "down",
        Shuffle::Butterfly => "bfly",
        Shuffle::Index => "idx",
    }
}

/// Executes `vote.sync` over the active lanes that each mask names.
pub(crate) fn vote(r: &mut Registers, mask: Slot, op: Vote, d: Slot, a: Guard, active: u32) {
    let (holds, masks) = (r.guard(a), r.words(mask));
    let voted = integer::mask(|i| {
        let members = masks[i] & active;
        match op {
            Vote::All => holds & members == members,
            Vote::Any => holds & members != 0,
            Vote::Uniform => holds & members == members || holds & members == 0,
        }
    });
    r.set_predicate(d, active, voted);
}

pub(crate) fn ballot(r: &mut Registers, mask: Slot, d: Slot, a: Guard, active: u32) {
    let (holds, masks) = (r.guard(a), *r.words(mask));
    r.set_words(d, active, |i| holds & masks[i] & active);
}

/// Executes `elect.sync`.
pub(crate) fn elect(r: &mut Registers, mask: Slot, d: Option<Slot>, p: Slot, active: u32) {
    let leaders = r.words(mask).map(|mask| (mask & active).trailing_zeros());
    r.set_predicate(p, active, integer::mask(|i| leaders[i] == i as u32));
    if let Some(d) = d {
        r.set_words(d, active, |i| leaders[i]);
    }
}

/// Executes `redux.sync`.
pub(crate) fn reduce(
    r: &mut Registers,
    mask: Slot,
    op: Binary,
    ty: Type,
    d: Slot,
    a: Slot,
    active: u32,
) {
    let (values, masks) = (*r.words(a), *r.words(mask));
    r.set_words(d, active, |i| integer::reduce(op, ty, &values, masks[i] & active));
}

/// Executes `match.any.sync`, or `match.all.sync` if `all`.
pub(crate) fn match_values(
    r: &mut Registers,
    mask: Slot,
    (all, ty): (bool, Type),
    (d, valid): (Slot, Option<Slot>),
    a: Slot,
    active: u32,
) {
    let values = r.lanes(a, ty.is_wide());
    let masks = r.words(mask).map(|mask| mask & active);
    let same = |i: usize| masks[i] & integer::mask(|other| values[other] == values[i]);
    let alike = integer::mask(|i| same(i) == masks[i]);
    r.set_words(d, active, |i| if all && alike >> i & 1 == 0 { 0 } else { same(i) });
    if let Some(valid) = valid {
        r.set_predicate(valid, active, alike);
    }
}

impl Run<'_> {
    /// Executes `shfl.sync`.
    pub(crate) fn shuffle(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        at: At,
        op: Shuffle,
        operands: Operands,
    ) -> Result<Next> {
        let (active, masks) = (at.active, r.words(operands.mask));
        if !gathered(masks, at)? {
            return Ok(Next::Gather);
        }
        let left = at.exists & !at.alive;
        if left != 0
            && scratch.suspect.is_none()
            && let Some(message) = suspicion(masks, active, left)
        {
            *scratch.suspect = Some(Box::new(Suspect { pc: place.pc, lanes: active, message }));
        }
        if active == ALL && self.trace.is_none() && shuffle_together(r, op, &operands) {
            return Ok(Next::Step);
        }
        let before = *r.words(operands.a);
        let sources = shuffle(r, op, &operands, at)?;
        self.trace_lanes(place, active, 0, || {
            let after = taken(&before, &sources, active);
            What::Shuffle { mode: name(op), before, after, sources }
        })?;
        Ok(Next::Step)
    }

    /// Executes `bar.warp.sync`.
    pub(crate) fn warp_barrier(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        at: At,
        mask: Slot,
    ) -> Result<Next> {
        if !gathered(r.words(mask), at)? {
            return Ok(Next::Gather);
        }
        if place.warp_epoch == u32::MAX {
            return uncounted("barriers of a warp", at.active);
        }
        let masks = r.words(mask).map(|mask| mask & at.alive);
        let lanes = (at.active, at.alive);
        scratch.shared.warp_barrier(place.warp, place.warp_epoch, lanes, &masks);
        Ok(Next::WarpBarrier)
    }
}
