//! A warp: its 32 lanes, where each of them is, and the loop that executes its instructions.
//!
//! Lanes at the same instruction form a *path*. A branch may split a path, and paths that meet
//! become one again. The path with the lowest instruction runs first, so that the paths ahead of it
//! wait where the code joins; these rules are in `paths`. Instructions that change only registers
//! run in a short loop, `compute`. All others go through `step`, which also follows unwritten
//! values and makes the reports. Tested by `divergence.ptx` in `tests/cases`.

use super::state::{
    Copies, Identity, Lanes, Next, Path, Place, Registers, Run, Scratch, Spin, Stack, Suspect,
    Unwritten,
};
use super::step::compute;
use crate::isa::{Kernel, Op};
use crate::memory::shared::{FirstRead, Shared};
use crate::report::{Fault, Report, ReportKind, bytes_of, fault, refill};

#[derive(Debug, Clone, Default)]
pub(crate) struct Warp {
    pub(crate) index: u32,
    pub(crate) exists: u32,
    pub(crate) alive: u32,
    pub(crate) paths: Vec<Path>,
    /// The lanes that were the first to leave, and the instruction at which they left.
    pub(crate) left: Option<(u32, u32)>,
    /// The instruction before the exit of the lanes that left last.
    pub(crate) before_exit: u32,
    /// The last branch, and its target.
    pub(super) jumped: (u32, u32),
    /// The first shuffle whose mask named lanes that had left the kernel.
    pub(crate) suspect: Option<Box<Suspect>>,
    /// The values that come from shared memory that nothing has written.
    pub(super) unwritten: Option<Box<Unwritten>>,
    /// The spin on an mbarrier that ended the last turn.
    pub(crate) spin: Option<Spin>,
    pub(crate) registers: Registers,
    pub(super) local: Vec<u32>,
    pub(super) stack: Stack,
    pub(super) copies: Copies,
    pub(super) epoch: u32,
    /// The number of instructions that the warp has executed.
    pub(super) clock: u64,
    /// The number of paths, from the lowest on, that stand back. Otherwise lanes that wait for
    /// other lanes of their own warp would wait forever.
    pub(super) skip: usize,
}

impl Warp {
    /// Returns the host memory in bytes that a warp of a kernel takes, itself included.
    pub(crate) fn bytes(kernel: &Kernel) -> u64 {
        // There are at most as many paths as lanes, and `next_path` sorts their numbers.
        let paths = bytes_of::<Path>(32) + bytes_of::<usize>(32);
        let local = bytes_of::<[u32; 32]>(kernel.local_bytes.div_ceil(4).into());
        bytes_of::<Warp>(1) + paths + local + Registers::bytes(kernel)
    }

    pub(crate) fn reset(
        &mut self,
        kernel: &Kernel,
        identity: &Identity<'_>,
        threads: u32,
    ) -> fault::Result<()> {
        self.index = identity.warp;
        let here = threads.saturating_sub(32 * identity.warp).min(32);
        self.exists = if here == 32 { u32::MAX } else { (1 << here) - 1 };
        self.alive = self.exists;
        self.paths.clear();
        self.paths.push(Path { pc: kernel.entry, lanes: self.exists, waiting: None });
        (self.left, self.before_exit, self.jumped) = (None, 0, (0, 0));
        (self.suspect, self.unwritten, self.spin) = (None, None, None);
        (self.epoch, self.clock, self.skip) = (0, 0, 0);
        self.registers.reset(kernel, identity)?;
        let words = kernel.local_bytes.div_ceil(4) as usize * 32;
        refill(&mut self.local, words, 0, "local memory")?;
        self.stack.reset();
        self.copies.reset();
        Ok(())
    }

    /// Frees what a warp allocated as it grew, after its block has run.
    pub(crate) fn retire(&mut self) {
        if !self.stack.is_empty() {
            // Calls may have made the local memory grow.
            (self.local, self.stack) = (Vec::new(), Stack::default());
        }
        self.copies = Copies::default();
        self.unwritten = None;
    }

    /// Returns the host memory in bytes that the warp holds, itself included.
    pub(crate) fn held(&self) -> u64 {
        bytes_of::<Warp>(1)
            + bytes_of::<Path>(self.paths.capacity() as u64)
            + bytes_of::<u32>(self.local.capacity() as u64)
            + self.stack.held()
            + self.registers.held()
    }

    /// Returns whether some path can go on.
    pub(crate) fn is_ready(&self) -> bool {
        self.paths.iter().any(|path| path.waiting.is_none())
    }

    /// Executes up to `quantum` instructions at `place`, the place of the block and of this warp.
    /// The turn ends earlier if all lanes wait or have left, or if lanes spin on an mbarrier.
    pub(crate) fn advance(
        &mut self,
        run: &mut Run<'_>,
        mut place: Place,
        index: [u32; 3],
        (shared, shared_bytes): (&mut Shared, u32),
        quantum: u32,
    ) -> Result<(), Box<Report>> {
        self.spin = None;
        let mut left = quantum;
        loop {
            let Some(current) = self.next_path() else {
                return self.stuck(run.launch.kernel, index).map_or(Ok(()), Err);
            };
            let computed = self.compute(run, index, current, left)?;
            left -= computed;
            if left == 0 {
                break;
            }
            if computed > 0 && self.paths.len() > 1 {
                // The path may have come to the instruction of another path.
                continue;
            }
            left -= 1;
            if self.step(run, &mut place, index, (&mut *shared, shared_bytes), current)? {
                return Ok(());
            }
        }
        self.end_turn(run);
        Ok(())
    }

    /// Executes up to `most` instructions of the next path, as [`Warp::step`] would, as long as
    /// only registers change and no other path's turn comes. Most instructions of most kernels are
    /// of this kind, and they do not need their place. Returns the number of executed instructions.
    #[inline(always)]
    fn compute(
        &mut self,
        run: &mut Run<'_>,
        index: [u32; 3],
        current: usize,
        most: u32,
    ) -> Result<u32, Box<Report>> {
        // `step` follows unwritten values, one instruction at a time.
        if self.unwritten.is_some() {
            return Ok(0);
        }
        let kernel = run.launch.kernel;
        let Path { mut pc, lanes, .. } = self.paths[current];
        let alone = self.alone(current);
        let mut executed = 0;
        while executed < most && alone.contains(&pc) {
            let instruction = &kernel.code[pc as usize];
            let active = match instruction.guard {
                None => lanes,
                Some(guard) => lanes & self.registers.guard(guard),
            };
            let next = match instruction.op {
                _ if active == 0 => pc + 1,
                Op::Branch { target, .. } if active == lanes => {
                    self.jumped = (pc, target);
                    target
                }
                ref op if compute(&mut self.registers, op, active) => pc + 1,
                _ => break,
            };
            if let Err(mut fault) = run.account.instruction() {
                fault.lanes = lanes;
                return Err(fault.at(kernel, index, self.index, pc));
            }
            run.tally.executed[pc as usize].by(active);
            executed += 1;
            pc = next;
        }
        self.paths[current].pc = pc;
        self.clock += u64::from(executed);
        Ok(executed)
    }

    /// Executes one instruction in the lanes of a path. Returns whether it ends the warp's turn.
    #[inline(always)]
    pub(crate) fn step(
        &mut self,
        run: &mut Run<'_>,
        place: &mut Place,
        index: [u32; 3],
        (shared, shared_bytes): (&mut Shared, u32),
        current: usize,
    ) -> Result<bool, Box<Report>> {
        let kernel = run.launch.kernel;
        let Path { pc, lanes, .. } = self.paths[current];
        let instruction = &kernel.code[pc as usize];
        let active = match instruction.guard {
            None => lanes,
            Some(guard) => lanes & self.registers.guard(guard),
        };
        if let Err(mut fault) = run.account.instruction() {
            fault.lanes = lanes;
            return Err(fault.at(kernel, index, self.index, pc));
        }
        self.clock += 1;
        run.tally.executed[pc as usize].by(active);
        if active == 0 {
            self.paths[current].pc += 1;
            return Ok(false);
        }
        place.pc = pc;
        place.warp_epoch = self.epoch;
        let at = Lanes { active, path: lanes, alive: self.alive, exists: self.exists };
        let flow = match &mut self.unwritten {
            None => None,
            Some(unwritten) => match unwritten.flow(&self.registers, at, instruction) {
                // Boxed, because a flow is rare and is dropped after every instruction.
                Ok(flow) => Some(Box::new(flow)),
                Err(read) => {
                    let FirstRead { warp, lanes, pc, message } = &*read;
                    let (kind, message) = (ReportKind::Uninitialized, message.clone());
                    let fault = Fault { kind, lanes: *lanes, message };
                    return Err(fault.at(kernel, index, *warp, *pc));
                }
            },
        };
        let mut scratch = Scratch {
            shared,
            shared_bytes,
            local: &mut self.local,
            stack: &mut self.stack,
            suspect: &mut self.suspect,
            unwritten: &mut self.unwritten,
            copies: &mut self.copies,
        };
        let next = run.execute(&mut self.registers, &mut scratch, place, at, &instruction.op);
        if scratch.unwritten.is_some() && !matches!(next, Ok(Next::Gather) | Err(_)) {
            run.follow(&self.registers, &mut scratch, flow, instruction);
        }
        match next {
            Ok(Next::Step) => self.paths[current].pc += 1,
            Ok(Next::Yield(spin)) => {
                self.paths[current].pc += 1;
                self.spin = Some(spin);
                // The lanes may wait for another path of the warp.
                self.skip = if self.paths.len() > 1 { self.skip + 1 } else { 0 };
                return Ok(true);
            }
            Ok(Next::Scatter(targets)) => self.scatter(run, current, active, &targets),
            Ok(next) => self.go(run, current, active, next),
            Err(mut fault) => {
                if fault.lanes == 0 {
                    fault.lanes = active;
                }
                return Err(fault.at(kernel, index, self.index, pc));
            }
        }
        Ok(false)
    }
}
