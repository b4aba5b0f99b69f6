//! A moment of a launch: the blocks in being, whose turn it is, and what has been counted.
//!
//! Whose turn it is follows from the same rules as in [`Prepared::run`] and
//! [`Prepared::run_together`], so that a launch goes the same way here.

use crate::isa::Kernel;
use crate::launch::{Prepared, QUANTUM, SHORT_QUANTUM, stuck};
use crate::machine::block::Block;
use crate::machine::state::{IDLE_ROUNDS, Path, Run};
use crate::machine::warp::Warp;
use crate::memory::order::Order;
use crate::report::{Report, Tally};

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// Instructions that have been executed.
    pub(super) position: usize,
    /// The blocks that run: one, or all that have not left if they run together.
    pub(super) blocks: Vec<Block>,
    /// Whose turn it is, and how many instructions of it have been executed.
    pub(super) block: usize,
    pub(super) warp: usize,
    spent: u32,
    /// How many blocks have begun.
    begun: u64,
    /// Rounds in which nothing happened that others can see.
    idle: u32,
    pub(super) tally: Tally,
    /// The order of accesses, of blocks that run together.
    order: Option<Order>,
    progress: bool,
    together: bool,
}

impl State {
    /// Before the first instruction.
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

    /// What its blocks take of the host.
    pub(super) fn bytes(&self, prepared: &Prepared<'_>) -> u64 {
        let blocks = if self.together { prepared.launch().blocks() } else { 1 };
        let at_first = Block::bytes(prepared.launch(), prepared.grain).saturating_mul(blocks);
        // The stacks of calls grow.
        at_first.max(self.held())
    }

    /// What it takes of the host now: what a copy of it takes.
    pub(super) fn held(&self) -> u64 {
        let order = self.order.as_ref().map_or(0, Order::held);
        self.blocks.iter().map(Block::held).sum::<u64>().saturating_add(order)
    }

    /// Gives what it has counted to a run that goes on from here.
    pub(super) fn give(
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

    /// Takes it back.
    pub(super) fn take(&mut self, run: &mut Run<'_>) {
        std::mem::swap(&mut self.tally, &mut run.tally);
        self.progress = run.progress;
        self.order = run.order.take();
    }

    /// Who executes what next; `None` at the end. Barriers open, blocks begin and turns end on the
    /// way there.
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
                warp.vain = None;
            }
            if warp.vain.is_some() {
                // It waits for an mbarrier.
            } else if self.spent == if self.together { SHORT_QUANTUM } else { QUANTUM } {
                warp.end_turn(run);
                block.in_vain = false;
            } else if self.spent > 0 || warp.is_ready() {
                if let Some(path) = warp.next_path() {
                    return Ok(Some(ahead(warp, kernel, path, block.number)));
                }
                warp.stuck(kernel, index).map_or(Ok(()), |report| Err(*report))?;
                block.in_vain = false;
            }
            (self.warp, self.spent) = (self.warp + 1, 0);
        }
    }

    /// Each block had its turn: the next round, if there is one.
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

    /// Executes what [`State::next`] has found.
    pub(super) fn execute(&mut self, run: &mut Run<'_>) -> Result<(), Report> {
        self.position += 1;
        self.spent += 1;
        let Some(block) = self.blocks.get_mut(self.block) else { return Ok(()) };
        block.step(run, self.warp).map_err(|report| *report)
    }
}

/// An instruction that a warp executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The block's number in the grid.
    pub block: u32,
    /// The warp's number in the block.
    pub warp: u32,
    /// The instruction's number in the kernel.
    pub pc: u32,
    /// The lanes that are there, and those of them in which its guard holds. (Lanes that have to
    /// wait for others come to the same instruction again.)
    pub lanes: u32,
    /// See `lanes`.
    pub active: u32,
}

/// What the lanes of a path are about to execute, in block number `block`.
fn ahead(warp: &Warp, kernel: &Kernel, path: usize, block: u64) -> Step {
    let Path { pc, lanes, .. } = warp.paths[path];
    let holds = kernel.code[pc as usize].guard.map_or(lanes, |guard| warp.registers.guard(guard));
    Step { block: block as u32, warp: warp.index, pc, lanes, active: lanes & holds }
}
