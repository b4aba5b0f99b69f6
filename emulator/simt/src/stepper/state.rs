//! A moment of a launch: the blocks that run, the warp whose turn it is, and the counters.
//!
//! The turns follow the same rules as in [`Prepared::run`] and [`Prepared::run_together`], so that
//! a launch goes the same way here.

use crate::isa::Kernel;
use crate::launch::{Prepared, QUANTUM, SHORT_QUANTUM, stuck};
use crate::machine::block::Block;
use crate::machine::state::{IDLE_ROUNDS, Path, Run};
use crate::machine::warp::Warp;
use crate::memory::order::Order;
use crate::report::{Report, Tally};

#[derive(Debug, Clone)]
pub(super) struct State {
    /// The number of executed instructions.
    pub(super) position: usize,
    /// The blocks that run: one, or all that have not left if they run together.
    pub(super) blocks: Vec<Block>,
    /// The index in `blocks` of the block whose turn it is.
    pub(super) block: usize,
    /// The index in that block of the warp whose turn it is.
    pub(super) warp: usize,
    /// The number of instructions that the warp has executed in its turn.
    spent: u32,
    /// The number of blocks that have begun.
    begun: u64,
    /// The number of rounds in a row in which nothing happened that others can see.
    idle: u32,
    pub(super) tally: Tally,
    /// The order of accesses, if blocks run together.
    order: Option<Order>,
    progress: bool,
    together: bool,
}

impl State {
    /// Creates the state before the first instruction.
    pub(super) fn new(prepared: &Prepared<'_>, together: bool) -> Result<State, Report> {
        if together {
            prepared.warps_together(&(0..prepared.launch().blocks()))?;
        }
        Ok(State {
            position: 0,
            blocks: Vec::new(),
            block: 0,
            warp: 0,
            spent: 0,
            begun: 0,
            idle: 0,
            tally: Tally::new(prepared.launch().kernel),
            order: None,
            progress: false,
            together,
        })
    }

    /// Returns the bytes of host memory that the blocks take.
    pub(super) fn bytes(&self, prepared: &Prepared<'_>) -> u64 {
        let blocks = if self.together { prepared.launch().blocks() } else { 1 };
        let at_first = Block::bytes(prepared.launch(), prepared.grain).saturating_mul(blocks);
        // The stacks of calls may have grown.
        at_first.max(self.held())
    }

    /// Returns the bytes of host memory that a copy of the state takes.
    pub(super) fn held(&self) -> u64 {
        let order = self.order.as_ref().map_or(0, Order::held);
        self.blocks.iter().map(Block::held).sum::<u64>().saturating_add(order)
    }

    /// Moves the counters and the order of accesses to a run that continues from here.
    pub(super) fn pass(
        &mut self,
        prepared: &Prepared<'_>,
        run: &mut Run<'_>,
    ) -> Result<(), Report> {
        std::mem::swap(&mut self.tally, &mut run.tally);
        run.progress = self.progress;
        run.order = self.order.take();
        if self.together {
            run.workspace = prepared.workspace_address();
        }
        if self.together && self.position == 0 {
            let units = prepared.warps_together(&(0..prepared.launch().blocks()))?;
            let order = Order::new(&mut run.account, units as usize);
            run.order = Some(order.map_err(|fault| prepared.before(0, *fault))?);
        }
        Ok(())
    }

    /// Moves the counters and the order of accesses back from the run.
    pub(super) fn take(&mut self, run: &mut Run<'_>) {
        std::mem::swap(&mut self.tally, &mut run.tally);
        self.progress = run.progress;
        self.order = run.order.take();
    }

    /// Returns the instruction that is executed next, or `None` at the end. On the way there,
    /// barriers open, blocks begin and turns end.
    pub(super) fn next(
        &mut self,
        prepared: &Prepared<'_>,
        run: &mut Run<'_>,
    ) -> Result<Option<Step>, Report> {
        let kernel = prepared.launch().kernel;
        loop {
            let Some(block) = self.blocks.get_mut(self.block) else {
                if !self.round(prepared, run)? {
                    return Ok(None);
                }
                continue;
            };
            let index = block.index;
            let Some(warp) = block.warps.get_mut(self.warp) else {
                let left = block.end_turn(run).map_err(|report| *report)?;
                if left {
                    run.tally.blocks += 1;
                    self.blocks.remove(self.block);
                } else {
                    self.block += 1;
                }
                self.warp = 0;
                continue;
            };
            if self.spent == 0 {
                warp.spin = None;
            }
            if warp.spin.is_some() {
                // The warp spins on an mbarrier.
            } else if self.spent == if self.together { SHORT_QUANTUM } else { QUANTUM } {
                warp.end_turn(run);
                block.only_spins = false;
            } else if self.spent > 0 || warp.is_ready() {
                if let Some(path) = warp.next_path() {
                    return Ok(Some(ahead(warp, kernel, path, block.number)));
                }
                warp.stuck(kernel, index).map_or(Ok(()), |report| Err(*report))?;
                block.only_spins = false;
            }
            (self.warp, self.spent) = (self.warp + 1, 0);
        }
    }

    /// Begins the next round after each block had its turn. Returns false after the last round.
    fn round(&mut self, prepared: &Prepared<'_>, run: &mut Run<'_>) -> Result<bool, Report> {
        let all = prepared.launch().blocks();
        if self.blocks.is_empty() {
            let end = if self.together { all } else { all.min(self.begun + 1) };
            for number in self.begun..end {
                let mut block = Block::default();
                let first = if self.together { 0 } else { number };
                let begun = block.reset(run, number, first);
                begun.map_err(|fault| prepared.before(number, *fault))?;
                self.blocks.push(block);
            }
            if self.begun == end {
                return Ok(false);
            }
            self.begun = end;
        } else if self.together {
            self.idle = if run.progress { 0 } else { self.idle + 1 };
            if self.idle > IDLE_ROUNDS {
                let waiting = self.blocks.len();
                return Err(*stuck(run, &self.blocks[0], waiting));
            }
        }
        run.progress = false;
        self.block = 0;
        Ok(true)
    }

    /// Executes the instruction that [`State::next`] has returned.
    pub(super) fn execute(&mut self, run: &mut Run<'_>) -> Result<(), Report> {
        self.position += 1;
        self.spent += 1;
        let Some(block) = self.blocks.get_mut(self.block) else { return Ok(()) };
        block.step(run, self.warp).map_err(|report| *report)
    }
}

/// An executed instruction of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The block's number in the grid.
    pub block: u32,
    /// The warp's number in the block.
    pub warp: u32,
    /// The instruction's number in the kernel.
    pub pc: u32,
    /// The lanes at the instruction, one bit for each. (Lanes that have to wait for others come to
    /// the same instruction again.)
    pub lanes: u32,
    /// The lanes of `lanes` in which the instruction's guard holds.
    pub active: u32,
}

/// Returns the step that a path is about to execute, in block number `block`.
fn ahead(warp: &Warp, kernel: &Kernel, path: usize, block: u64) -> Step {
    let Path { pc, lanes, .. } = warp.paths[path];
    let holds = kernel.code[pc as usize].guard.map_or(lanes, |guard| warp.registers.guard(guard));
    Step { block: block as u32, warp: warp.index, pc, lanes, active: lanes & holds }
}
