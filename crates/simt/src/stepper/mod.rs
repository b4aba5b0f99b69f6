//! A launch that can be gone through, one instruction at a time, forward and backward.
//!
//! The launch runs once as any other does, in the same order, and leaves which warp executed what. From then on it can
//! be at any moment in between: what is behind is executed again, from the last moment before it that was kept.

mod state;
mod view;

use std::ops::Range;

use super::bounds::{Bounds, bytes_of};
use super::counters::Counters;
use super::global_memory::{Image, Memory};
use super::launch::{Launch, Prepared};
use super::machine::Run;
use super::program::Kernel;
use super::report::Report;
use super::trace::Trace;
use state::State;

pub use view::{Cell, Path, Register, Values, Waits, Warp};

/// So many moments are kept at most, evenly spread; then every other one is let go.
const MOST_KEPT: usize = 24;
/// The least distance between two of them, in instructions.
const LEAST_DISTANCE: usize = 1024;

/// A launch, its memory, and a moment of it.
///
/// A moment is a number of instructions that the warps have executed: 0 is before the first, and [`Stepper::len`]
/// behind the last, which may be the one that a report is about.
#[derive(Debug)]
pub struct Stepper {
    setting: Setting,
    memory: Memory,
    first_tag: u32,
    steps: Vec<Step>,
    result: Result<Counters, Report>,
    kept: Vec<(State, Image)>,
    distance: usize,
    now: State,
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
    /// The lanes that are there, and those of them in which its guard holds. (Lanes that have to wait for others come
    /// to the same instruction again.)
    pub lanes: u32,
    /// See `lanes`.
    pub active: u32,
}

/// What a launch says.
#[derive(Debug)]
struct Setting {
    kernel: Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    arguments: Vec<u8>,
    instructions: u64,
    host_bytes: u64,
    together: bool,
}

impl Setting {
    fn launch(&self) -> Launch<'_> {
        Launch {
            kernel: &self.kernel,
            grid: self.grid,
            block: self.block,
            dynamic_shared: self.dynamic_shared,
            arguments: &self.arguments,
            instructions: self.instructions,
            host_bytes: self.host_bytes,
            cancel: None,
        }
    }
}

impl Stepper {
    /// Runs all blocks of a launch on `memory`: together if `together`, else one after the other (see
    /// [`Kernel::communicates`]). What it keeps for going back counts as host memory of the launch. The moment is the end.
    ///
    /// # Errors
    ///
    /// If the launch cannot begin. What the kernel does wrong is no error: see [`Stepper::result`].
    pub fn new(launch: Launch<'_>, memory: Memory, together: bool) -> Result<Stepper, Report> {
        let prepared = launch.prepare(&memory)?;
        let first_tag = prepared.first_tag;
        let now = State::new(&prepared, together)?;
        drop(prepared);
        let setting = Setting {
            kernel: launch.kernel.clone(),
            grid: launch.grid,
            block: launch.block,
            dynamic_shared: launch.dynamic_shared,
            arguments: launch.arguments.to_vec(),
            instructions: launch.instructions,
            host_bytes: launch.host_bytes,
            together,
        };
        let mut stepper = Stepper {
            setting,
            memory,
            first_tag,
            steps: Vec::new(),
            result: Ok(Counters::default()),
            kept: Vec::new(),
            distance: LEAST_DISTANCE,
            now,
        };
        stepper.record();
        Ok(stepper)
    }

    /// The launch's end: its counters, or what the kernel does wrong.
    pub fn result(&self) -> &Result<Counters, Report> {
        &self.result
    }

    /// All that was executed, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How many instructions were executed in all.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The moment.
    pub fn position(&self) -> usize {
        self.now.position
    }

    /// The memory, as it is at the moment.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.setting.kernel
    }

    /// The counters up to the moment.
    pub fn counters(&self) -> Counters {
        self.now.tally.counters(&self.setting.kernel)
    }

    /// Goes to a moment, or to the end if there are not so many.
    pub fn seek(&mut self, position: usize) {
        let position = position.min(self.len());
        let last = self.kept.partition_point(|(state, _)| state.position <= position);
        if let Some((state, image)) = last.checked_sub(1).map(|last| &self.kept[last])
            && (position < self.now.position || self.now.position < state.position)
        {
            let slots = self.memory.snapshot();
            self.memory.restore(&slots, image);
            self.now = state.clone();
        }
        self.advance(position, None);
    }

    /// Goes to the end of a range of moments, and records what happens from its beginning on.
    pub fn trace(&mut self, range: Range<usize>, trace: &mut Trace) {
        self.seek(range.start);
        self.advance(range.end.min(self.len()), Some(trace));
    }

    /// Executes up to a moment that is ahead.
    fn advance(&mut self, position: usize, trace: Option<&mut Trace>) {
        // What is wrong was found when it was recorded.
        let _ = self.run(trace, |state, prepared, run| {
            while state.position < position && state.next(prepared, run)?.is_some() {
                state.execute(run)?;
            }
            // The moment belongs to whoever is next.
            state.next(prepared, run).map(drop)
        });
    }

    /// Executes everything, and keeps moments on the way.
    fn record(&mut self) {
        let mut steps = Vec::new();
        let result = loop {
            self.keep();
            let stop = self.now.position + self.distance;
            let ended = self.run(None, |state, prepared, run| {
                while state.position < stop {
                    let Some(step) = state.next(prepared, run)? else { return Ok(true) };
                    run.account
                        .room(&mut steps, "what was executed")
                        .map_err(|fault| fault.before(prepared.launch().kernel, [0; 3]))?;
                    steps.push(step);
                    state.execute(run)?;
                }
                Ok(false)
            });
            match ended {
                Ok(false) => {}
                Ok(true) => break Ok(self.counters()),
                Err(report) => break Err(report),
            }
        };
        self.steps = steps;
        self.result = result;
    }

    /// Keeps the moment. Blocks that run together know each other's accesses by what cannot be copied: of these only the beginning.
    fn keep(&mut self) {
        if self.setting.together && !self.kept.is_empty() {
            return;
        }
        if self.kept.len() == MOST_KEPT {
            let mut odd = false;
            self.kept.retain(|_| {
                odd = !odd;
                odd
            });
            self.distance *= 2;
        }
        let image = self.memory.image(&self.memory.snapshot());
        self.kept.push((self.now.clone(), image));
    }

    /// Lets the moment's state go on: with the launch as it was begun.
    fn run<R>(
        &mut self,
        trace: Option<&mut Trace>,
        go: impl FnOnce(&mut State, &Prepared<'_>, &mut Run<'_>) -> Result<R, Report>,
    ) -> Result<R, Report> {
        let Setting { instructions, host_bytes, .. } = self.setting;
        let bounds = Bounds::new(instructions, host_bytes, None).after(self.now.position as u64);
        let prepared = self.setting.launch().resume(&self.memory, bounds, self.first_tag);
        let steps = bytes_of::<Step>(self.now.position as u64);
        let bytes = self.now.bytes(&prepared).saturating_mul(1 + self.kept.len() as u64);
        let mut run = prepared.start(bytes.saturating_add(steps), trace, 0)?;
        self.now.give(&prepared, &mut run)?;
        let result = go(&mut self.now, &prepared, &mut run);
        self.now.take(&mut run);
        result
    }
}
