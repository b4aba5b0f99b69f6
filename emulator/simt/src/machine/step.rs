//! One instruction of a warp.

use super::barrier::Meeting;
use super::compute::compute;
use super::lanes::Gathered;
use super::state::{ALL, Lanes, Longs, Next, Place, Registers, Run, Scratch, Suspect, Words};
use crate::isa::{Op, Order, Scope, Space, Vector, Vote};
use crate::machine::access::atomic::Operation;
use crate::machine::access::copy::Copy;
use crate::machine::access::mbarrier;
use crate::machine::arithmetic::integer;
use crate::machine::{lanes, matrix};
use crate::memory::global::workspace;
use crate::report::{Event, ReportKind, Result, What, fault, uncounted};

impl Run<'_> {
    /// Executes `op` in the lanes `at.active`.
    pub(crate) fn execute(
        &mut self,
        r: &mut Registers,
        scratch: &mut Scratch<'_>,
        place: &Place,
        at: Lanes,
        op: &Op,
    ) -> Result<Next> {
        let active = at.active;
        match *op {
            Op::Fma { .. }
            | Op::Arithmetic { .. }
            | Op::Binary { .. }
            | Op::Unary { .. }
            | Op::Ternary { .. }
            | Op::Carry { .. }
            | Op::MulWide { .. }
            | Op::MadWide { .. }
            | Op::BitExtract { .. }
            | Op::BitInsert { .. }
            | Op::Lop3 { .. }
            | Op::Select { .. }
            | Op::SetPredicate { .. }
            | Op::Test { .. }
            | Op::Predicate { .. }
            | Op::NotPredicate { .. }
            | Op::Convert { .. }
            | Op::ConvertPair { .. }
            | Op::Pack16 { .. }
            | Op::Pack32 { .. }
            | Op::Pack16x4 { .. }
            | Op::Unpack16 { .. }
            | Op::Unpack32 { .. }
            | Op::Unpack16x4 { .. }
            | Op::ConvertAddress { .. }
            | Op::ActiveMask { .. }
            | Op::Factors { .. }
            | Op::BulkTarget { .. }
            | Op::Nothing => {
                compute(r, op, active);
            }

            Op::Load { space, order, ty, count, wide, d, address } => {
                let shape = Vector { space, order, ty, count, wide, slots: d };
                self.load(r, scratch, place, shape, address, active)?;
            }
            Op::LoadParam { ty, count, wide, d, offset } => {
                let shape =
                    Vector { space: Space::Local, order: Order::Weak, ty, count, wide, slots: d };
                self.load_parameter(r, shape, offset, active);
            }
            Op::Store { space, order, ty, count, wide, a, address } => {
                let shape = Vector { space, order, ty, count, wide, slots: a };
                self.store(r, scratch, place, shape, address, active)?;
                if order == Order::Release && scratch.shared.follows() {
                    return self.behind(scratch, place, active);
                }
            }
            Op::Atomic { op, space, order, ty, d, address, b, c } => {
                let operation = Operation { op, space, order, ty, d, b, c };
                self.atomic(r, scratch, place, operation, address, active)?;
                let releases = matches!(order, Order::Release | Order::AcquireRelease);
                if releases && scratch.shared.follows() {
                    return self.behind(scratch, place, active);
                }
            }
            Op::Fence { scope } => {
                if scope == Scope::Device
                    && let Some(order) = &mut self.order
                {
                    order.fence(&mut self.account, place.unit)?;
                }
                if scratch.shared.follows() {
                    return self.fence_shared(scratch, place, active);
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
            Op::Elect { d, p, mask } => {
                if !gathered(r.words(mask), at)? {
                    return Ok(Next::Gather);
                }
                let leaders = r.words(mask).map(|mask| (mask & active).trailing_zeros());
                r.set_predicate(p, active, integer::mask(|i| leaders[i] == i as u32));
                if let Some(d) = d {
                    r.set_words(d, active, |i| leaders[i]);
                }
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
            // What is reduced is known when all have come: see `Block::release` and `Block::wake`.
            Op::Barrier { id, threads } | Op::BarrierReduce { id, threads, .. } => {
                let meeting = Meeting { id, threads, waits: true };
                return self.barrier(r, scratch, place, at, meeting);
            }
            Op::BarrierArrive { id, threads } => {
                let meeting = Meeting { id, threads: Some(threads), waits: false };
                return self.barrier(r, scratch, place, at, meeting);
            }

            Op::Multiply { .. }
            | Op::MatrixLoad { .. }
            | Op::MatrixStore { .. }
            | Op::RowsLoad { .. }
            | Op::RowsStore { .. }
            | Op::RowsTranspose { .. } => {
                if !matrix::together(at)? {
                    return Ok(Next::Gather);
                }
                self.matrix(r, scratch, place, op)?;
            }

            Op::Fetch { .. }
            | Op::SurfaceLoad { .. }
            | Op::SurfaceStore { .. }
            | Op::ObjectQuery { .. } => self.objects(r, place, op, active)?,

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
            Op::MbarrierExpect { d, address, bytes, arrives } => {
                let operation = mbarrier::Operation::Expect { d, bytes, arrives };
                self.mbarrier(r, scratch, place, operation, address, active)?;
                return Ok(Next::WarpBarrier);
            }
            Op::BulkIn { from, bytes } => {
                self.copy_in(r, scratch, place, (from, bytes), active)?;
                return Ok(Next::WarpBarrier);
            }
            Op::BulkOut { to, from, bytes } => {
                self.copy_out(r, scratch, place, (to, from, bytes), active)?;
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
                let is_switch = self.launch.kernel.opcodes[place.pc as usize].starts_with("brx");
                let message = match is_switch {
                    true => "branches by an index that is not among those of its list of labels",
                    false if self.workspace == 0 && self.launch.kernel.uses_workspace() => {
                        workspace::MISSING
                    }
                    false => "executes trap",
                };
                return fault(ReportKind::Trap, active, message.to_string());
            }
        }
        Ok(Next::Step)
    }

    /// Records an event that has room for so many values of all lanes beside it.
    pub(crate) fn trace_lanes(
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
