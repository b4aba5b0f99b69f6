//! One instruction of a warp.

use super::Run;
use super::access::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, Shape};
use super::atomic::Operation;
use super::convert::{self, Conversion};
use super::copy::Copy;
use super::fault::{Result, fault};
use super::lanes::{self, Gathered};
use super::mbarrier;
use super::registers::{ALL, Longs, Registers, Words, put};
use super::warp::{Lanes, Place, Scratch, Suspect, Vain};
use super::{carry, float, integer, ternary};
use crate::program::{Clock, Op, Scope, Slot, Space, Type, Vote};
use crate::report::ReportKind;
use crate::trace::{Event, What};

/// Where the lanes go after an instruction.
pub(super) enum Next {
    /// To the next one.
    Step,
    /// To `target`.
    Branch { target: u32 },
    /// To instructions of their own.
    Scatter(Box<[u32; 32]>),
    /// Out of the kernel.
    Exit,
    /// They wait for the other threads of the block.
    Barrier(u8),
    /// They wait here for lanes of their warp, and then execute it again.
    Gather,
    /// A barrier of the warp has been passed, or something handed over that what follows is behind.
    WarpBarrier,
    /// To the next one, with what the warp's clock says in a register.
    Clock { part: Clock, d: Slot },
    /// To the next one, when others have had their turn: it is waited for an mbarrier.
    Yield(Vain),
}

impl Run<'_> {
    /// Executes `op` in the lanes `at.active`.
    pub(super) fn execute(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        at: Lanes,
        op: &Op,
    ) -> Result<Next> {
        let active = at.active;
        match *op {
            Op::Fma { ty, round, clamp, d, a, b, c } => {
                float::fma(r, ty, round, clamp, [d, a, b, c], active);
            }
            Op::Arithmetic { op, ty, round, clamp, d, a, b } => {
                float::arithmetic(r, op, ty, round, clamp, [d, a, b], active);
            }
            Op::Binary { op, ty, d, a, b } if ty.is_float() => {
                float::binary(r, op, ty, [d, a, b], active);
            }
            Op::Binary { op, ty, d, a, b } => integer::binary(r, op, ty, [d, a, b], active),
            Op::Unary { op, ty, d, a } if ty.is_float() => float::unary(r, op, ty, d, a, active),
            Op::Unary { op, ty, d, a } => integer::unary(r, op, ty, d, a, active),
            Op::Ternary { op, ty, d, a, b, c } => {
                ternary::ternary(r, op, ty, [d, a, b, c], active);
            }
            Op::Carry { op, ty, takes, gives, d, a, b, c } => {
                carry::carry(r, op, ty, [takes, gives], [d, a, b, c], active);
            }
            Op::MulWide { ty, d, a, b } => integer::wide(r, ty, [d, a, b], None, active),
            Op::MadWide { ty, d, a, b, c } => integer::wide(r, ty, [d, a, b], Some(c), active),
            Op::BitExtract { ty, d, a, b, c } => integer::extract(r, ty, [d, a, b, c], active),
            Op::BitInsert { ty, d, a, b, pos, len } => {
                integer::insert(r, ty, [d, a, b], [pos, len], active);
            }
            Op::Lop3 { table, d, a, b, c } => integer::lop3(r, table, [d, a, b, c], active),
            Op::Select { ty, d, a, b, predicate } => {
                select(r, ty, [d, a, b], predicate, active);
            }
            Op::SetPredicate { compare, or_unordered, ty, d, complement, combine, a, b } => {
                let [holds, opposite] = if ty.is_float() {
                    float::compare(r, compare, or_unordered, ty, a, b)
                } else {
                    let holds = integer::compare(r, compare, ty, a, b);
                    [holds, !holds]
                };
                let with = |r: &Registers, mask| match combine {
                    Some((op, guard)) => integer::logic(op, mask, r.guard(guard)),
                    None => mask,
                };
                let (yes, no) = (with(r, holds), with(r, opposite));
                r.set_predicate(d, active, yes);
                if let Some(complement) = complement {
                    r.set_predicate(complement, active, no);
                }
            }
            Op::Test { test, ty, d, a } => {
                r.set_predicate(d, active, float::test(r, test, ty, a));
            }
            Op::Predicate { op, d, a, b } => {
                let mask = integer::logic(op, r.predicate(a), r.predicate(b));
                r.set_predicate(d, active, mask);
            }
            Op::NotPredicate { d, a } => r.set_predicate(d, active, !r.predicate(a)),
            Op::Convert { to, from, round, integral, clamp, d, a } => {
                let conversion = Conversion { to, from, round, integral, clamp };
                convert::convert(r, conversion, d, a, active);
            }
            Op::ConvertPair { to, round, clamp, d, a, b } => {
                let (high, low) = (*r.words(a), *r.words(b));
                let half = |bits: u32| {
                    let value = convert::clamped(f32::from_bits(bits).into(), clamp);
                    convert::float_bits(to, value, round) as u32
                };
                r.set_words(d, active, |i| half(high[i]) << 16 | half(low[i]));
            }
            Op::Pack16 { d, parts: [a, b] } => {
                let (low, high) = (*r.words(a), *r.words(b));
                r.set_words(d, active, |i| high[i] << 16 | low[i] & 0xffff);
            }
            Op::Pack32 { d, parts: [a, b] } => {
                let (low, high) = (*r.words(a), *r.words(b));
                r.set_longs(d, active, |i| u64::from(high[i]) << 32 | u64::from(low[i]));
            }
            Op::Pack16x4 { d, parts } => {
                let parts = parts.map(|slot| *r.words(slot));
                r.set_longs(d, active, |i| {
                    (0..4).fold(0, |all, k| all | u64::from(parts[k][i] & 0xffff) << (16 * k))
                });
            }
            Op::Unpack16 { d, a } => {
                let a = *r.words(a);
                for (k, d) in d.into_iter().enumerate() {
                    if let Some(d) = d {
                        r.set_words(d, active, |i| a[i] >> (16 * k) & 0xffff);
                    }
                }
            }
            Op::Unpack32 { d, a } => {
                let a = *r.longs(a);
                for (k, d) in d.into_iter().enumerate() {
                    if let Some(d) = d {
                        r.set_words(d, active, |i| (a[i] >> (32 * k)) as u32);
                    }
                }
            }
            Op::Unpack16x4 { d, a } => {
                let a = *r.longs(a);
                for (k, d) in d.into_iter().enumerate() {
                    if let Some(d) = d {
                        r.set_words(d, active, |i| (a[i] >> (16 * k)) as u32 & 0xffff);
                    }
                }
            }
            Op::ConvertAddress { space, to, d, a } => {
                let window = match space {
                    Space::Shared => SHARED_WINDOW,
                    Space::Local => LOCAL_WINDOW,
                    Space::Parameter => PARAMETER_WINDOW,
                    Space::Global | Space::Constant | Space::Generic => 0,
                };
                let a = *r.longs(a);
                r.set_longs(d, active, |i| {
                    if to { a[i].wrapping_sub(window) } else { a[i].wrapping_add(window) }
                });
            }

            Op::Load { space, order, ty, count, wide, d, address } => {
                let shape = Shape { space, order, ty, count, wide, slots: d };
                self.load(r, scratch, place, shape, address, active)?;
            }
            Op::LoadParam { ty, count, wide, d, offset } => {
                let shape = Shape {
                    space: Space::Local,
                    order: crate::program::Order::Weak,
                    ty,
                    count,
                    wide,
                    slots: d,
                };
                self.load_parameter(r, shape, offset, active);
            }
            Op::Store { space, order, ty, count, wide, a, address } => {
                let shape = Shape { space, order, ty, count, wide, slots: a };
                self.store(r, scratch, place, shape, address, active)?;
            }
            Op::Atomic { op, space, order, ty, d, address, b, c } => {
                let operation = Operation { op, space, order, ty, d, b, c };
                self.atomic(r, scratch, place, operation, address, active)?;
            }
            Op::Fence { scope } => {
                if scope == Scope::Device
                    && let Some(order) = &mut self.order
                {
                    order.fence(&mut self.account, place.unit)?;
                }
            }
            Op::CopyAsync { to, from, bytes, source_bytes } => {
                let copy = Copy { to, from, bytes: bytes.into(), source_bytes };
                self.copy_async(r, scratch, place, copy, active)?;
            }
            Op::CommitGroup => scratch.commit(active),
            Op::WaitGroup { pending } => scratch.wait(place, pending, active),

            Op::Shuffle { op, d, valid, a, b, c, mask } => {
                if !gathered(r.words(mask), at)? {
                    return Ok(Next::Gather);
                }
                let left = at.exists & !at.alive;
                if left != 0
                    && scratch.suspect.is_none()
                    && let Some(message) = lanes::suspicion(r.words(mask), active, left)
                {
                    *scratch.suspect =
                        Some(Box::new(Suspect { pc: place.pc, lanes: active, message }));
                }
                let operands = lanes::Operands { d, valid, a, b, c, mask };
                if active == ALL
                    && self.trace.is_none()
                    && lanes::shuffle_together(r, op, &operands)
                {
                    return Ok(Next::Step);
                }
                let before = *r.words(a);
                let sources = lanes::shuffle(r, op, &operands, at)?;
                self.trace_lanes(place, active, 0, || {
                    let after = lanes::taken(&before, &sources, active);
                    What::Shuffle { mode: lanes::name(op), before, after, sources }
                })?;
            }
            Op::Vote { op, d, a, mask } => {
                if !gathered(r.words(mask), at)? {
                    return Ok(Next::Gather);
                }
                let holds = r.guard(a);
                r.set_predicate(d, active, vote(op, holds, r.words(mask), active));
            }
            Op::Ballot { d, a, mask } => {
                if !gathered(r.words(mask), at)? {
                    return Ok(Next::Gather);
                }
                let (holds, masks) = (r.guard(a), *r.words(mask));
                r.set_words(d, active, |i| holds & masks[i] & active);
            }
            Op::Reduce { op, ty, d, a, mask } => {
                if !gathered(r.words(mask), at)? {
                    return Ok(Next::Gather);
                }
                let (values, masks) = (*r.words(a), *r.words(mask));
                r.set_words(d, active, |i| integer::reduce(op, ty, &values, masks[i] & active));
            }
            Op::Match { all, ty, d, valid, a, mask } => {
                if !gathered(r.words(mask), at)? {
                    return Ok(Next::Gather);
                }
                let values: Longs = std::array::from_fn(|i| r.lane(a, ty.is_wide(), i));
                let masks = r.words(mask).map(|mask| mask & active);
                let same = |i: usize| masks[i] & integer::mask(|other| values[other] == values[i]);
                let alike = integer::mask(|i| same(i) == masks[i]);
                r.set_words(d, active, |i| match all {
                    true if alike >> i & 1 == 0 => 0,
                    _ => same(i),
                });
                if let Some(valid) = valid {
                    r.set_predicate(valid, active, alike);
                }
            }
            Op::WarpBarrier { mask } => {
                if !gathered(r.words(mask), at)? {
                    return Ok(Next::Gather);
                }
                if place.warp_epoch == u32::MAX {
                    return uncounted("barriers of a warp", active);
                }
                let lanes = (active, at.alive);
                let masks = r.words(mask).map(|mask| mask & at.alive);
                scratch.shared.warp_barrier(place.warp, place.warp_epoch, lanes, &masks);
                return Ok(Next::WarpBarrier);
            }
            Op::Clock { part, d } => return Ok(Next::Clock { part, d }),
            Op::ActiveMask { d } => r.set_words(d, active, |_| active),
            // What is reduced is known when all have come: see `Block::release`.
            Op::Barrier { id, threads } | Op::BarrierReduce { id, threads, .. } => {
                let all = self.launch.threads();
                let others = threads.and_then(|slot| {
                    crate::counters::lanes(active)
                        .map(|lane| r.words(slot)[lane])
                        .find(|&threads| threads != all)
                });
                if let Some(threads) = others {
                    let message = format!(
                        "waits at a barrier for {threads} threads of a block of {all}: one for a part of the block is not \
                         supported"
                    );
                    return fault(ReportKind::Barrier, active, message);
                }
                if place.epoch == u32::MAX {
                    return uncounted("barriers", active);
                }
                self.trace_lanes(place, active, 0, || What::Barrier)?;
                return Ok(Next::Barrier(id));
            }

            Op::MbarrierInit { address, count } => {
                let operation = mbarrier::Operation::Initialize { count };
                self.mbarrier(r, scratch, place, operation, address, active)?;
            }
            Op::MbarrierInvalidate { address } => {
                let operation = mbarrier::Operation::Invalidate;
                self.mbarrier(r, scratch, place, operation, address, active)?;
            }
            Op::MbarrierArrive { d, address, count } => {
                let operation = mbarrier::Operation::Arrive { d, count };
                self.mbarrier(r, scratch, place, operation, address, active)?;
                return Ok(Next::WarpBarrier);
            }
            Op::MbarrierTest { d, address, phase, parity } => {
                let operation = mbarrier::Operation::Test { d, phase, parity };
                let vain = self.mbarrier(r, scratch, place, operation, address, active)?;
                return Ok(vain.map_or(Next::Step, Next::Yield));
            }

            Op::Branch { target, .. } => {
                return Ok(Next::Branch { target });
            }
            Op::Call { site, target } => return self.call(r, scratch, place, at, (site, target)),
            Op::Return { function } => return Ok(self.come_back(r, scratch, function, active)),
            Op::Exit => return Ok(Next::Exit),
            Op::Trap => {
                return fault(ReportKind::Trap, active, "executes trap".to_string());
            }
            Op::Nothing => {}
        }
        Ok(Next::Step)
    }

    /// Records an event that has room for so many values of all lanes beside it.
    pub(super) fn trace_lanes(
        &mut self,
        place: &Place,
        lanes: u32,
        values: u8,
        what: impl FnOnce() -> What,
    ) -> Result<()> {
        let kernel = self.launch.kernel;
        let Some(trace) = &mut self.trace else { return Ok(()) };
        trace.push(&mut self.account, values, || Event {
            block: place.block,
            warp: place.warp,
            lanes,
            line: kernel.places[place.pc as usize].line,
            source: kernel.source_of(place.pc as usize),
            what: what(),
        })
    }
}

/// There were more of them than fit in 32 bits.
#[cold]
pub(crate) fn uncounted<T>(what: &str, lanes: u32) -> Result<T> {
    let message = format!("passes more than {} {what}, as many as the emulator counts", u32::MAX);
    fault(ReportKind::Instructions, lanes, message)
}

/// Whether all lanes that the masks name execute it now.
fn gathered(masks: &Words, at: Lanes) -> Result<bool> {
    let gathered = lanes::gather(masks, at.active, at.path, at.alive)?;
    Ok(matches!(gathered, Gathered::Yes))
}

/// What lanes vote of those that their masks name and that are there.
fn vote(op: Vote, holds: u32, masks: &Words, there: u32) -> u32 {
    integer::mask(|i| {
        let members = masks[i] & there;
        match op {
            Vote::All => holds & members == members,
            Vote::Any => holds & members != 0,
            Vote::Uniform => holds & members == members || holds & members == 0,
        }
    })
}

fn select(r: &mut Registers, ty: Type, [d, a, b]: [Slot; 3], predicate: Slot, lanes: u32) {
    let predicate = r.predicate(predicate);
    if ty.is_wide() {
        let mut chosen = *r.longs(b);
        put(&mut chosen, predicate, r.longs(a));
        r.set_longs(d, lanes, |i| chosen[i]);
    } else {
        let mut chosen = *r.words(b);
        put(&mut chosen, predicate, r.words(a));
        r.set_words(d, lanes, |i| chosen[i]);
    }
}
