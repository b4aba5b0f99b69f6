//! A launch through which a caller can step, one instruction at a time, forward and backward.
//!
//! The launch first runs once, in the same order as any other launch, and records which warp
//! executed what. On the way, moments of it are saved: copies of the blocks and of the memory. From
//! then on the stepper can go to any moment. It restores the last saved moment before it, and
//! executes the instructions in between again. When too many moments are saved, every other one is
//! dropped, so that their memory is bounded. Tested by `stepping.rs` in `tests/suite`, and below.

use std::ops::Range;

use super::state::{State, Step};
use crate::isa::Kernel;
use crate::launch::Prepared;
use crate::machine::state::{Launch, Run};
use crate::memory::global::{Image, Memory, Workspace};
use crate::report::{Bounds, Counters, Report, Trace, bytes_of};

/// The most moments that are saved, evenly spread. When there are more, every other one is dropped.
const MOST_KEPT: usize = 64;
/// The most bytes of the saved moments.
const MOST_BYTES: u64 = 64 << 20;
/// The saved moments also take at most one part in `SHARE` of the launch's host memory.
const SHARE: u64 = 4;
/// The least distance between two saved moments, in instructions.
const LEAST_DISTANCE: usize = 1024;

/// A launch, its memory, and a moment of it.
///
/// A moment is a number of instructions that the warps have executed: moment 0 is before the first
/// instruction, and moment [`Stepper::len`] is behind the last, which may be the subject of a
/// report.
#[derive(Debug)]
pub struct Stepper {
    setting: Setting,
    memory: Memory,
    first_tag: u32,
    workspace: Option<Workspace>,
    steps: Vec<Step>,
    result: Result<Counters, Report>,
    kept: Vec<Kept>,
    distance: usize,
    pub(super) now: State,
}

/// A saved moment, to which the stepper can return without the instructions before it.
#[derive(Debug)]
struct Kept {
    state: State,
    image: Image,
    bytes: u64,
}

/// The description of the launch.
#[derive(Debug)]
struct Setting {
    kernel: Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    arguments: Vec<u8>,
    instructions: u64,
    host_bytes: u64,
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
    /// Runs all blocks of a launch on `memory`: together if `together`, otherwise one after the
    /// other (see [`Kernel::communicates`]). The saved moments count as host memory of the launch.
    /// The stepper is then at the end.
    ///
    /// # Errors
    ///
    /// Returns a report if the launch cannot begin. For a mistake of the kernel see
    /// [`Stepper::result`].
    pub fn new(launch: Launch<'_>, memory: Memory, together: bool) -> Result<Stepper, Report> {
        let prepared = launch.prepare(&memory)?;
        let (first_tag, workspace) = (prepared.first_tag, prepared.workspace.clone());
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
        };
        let mut stepper = Stepper {
            setting,
            memory,
            first_tag,
            workspace,
            steps: Vec::new(),
            result: Ok(Counters::default()),
            kept: Vec::new(),
            distance: LEAST_DISTANCE,
            now,
        };
        stepper.record();
        Ok(stepper)
    }

    /// Returns the end of the launch: its counters, or the report of the kernel's mistake.
    pub fn result(&self) -> &Result<Counters, Report> {
        &self.result
    }

    /// Returns all executed instructions, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the number of executed instructions.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns whether no instruction was executed.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the current moment.
    pub fn position(&self) -> usize {
        self.now.position
    }

    /// Returns the memory at the current moment.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.setting.kernel
    }

    /// Returns the counters up to the current moment.
    pub fn counters(&self) -> Counters {
        self.now.tally.counters(&self.setting.kernel)
    }

    /// Goes to a moment, or to the end if there are fewer moments.
    pub fn seek(&mut self, position: usize) {
        let position = position.min(self.len());
        let last = self.kept.partition_point(|kept| kept.state.position <= position);
        if let Some(Kept { state, image, .. }) = last.checked_sub(1).map(|last| &self.kept[last])
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
        // A mistake has been found before, by `record`.
        let _ = self.run(trace, |state, prepared, run| {
            while state.position < position && state.next(prepared, run)?.is_some() {
                state.execute(run)?;
            }
            // The moment belongs to the warp that is next.
            state.next(prepared, run).map(drop)
        });
    }

    /// Executes everything, and saves moments on the way.
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

    /// Saves the current moment.
    fn keep(&mut self) {
        let state = self.now.clone();
        let image = self.memory.image(&self.memory.snapshot());
        let bytes = state.held().saturating_add(image.held());
        self.kept.push(Kept { state, image, bytes });
        let most = MOST_BYTES.min(self.setting.host_bytes / SHARE);
        while self.kept.len() > 1 && (self.kept.len() > MOST_KEPT || self.kept_bytes() > most) {
            let mut odd = false;
            self.kept.retain(|_| {
                odd = !odd;
                odd
            });
            self.distance *= 2;
        }
    }

    fn kept_bytes(&self) -> u64 {
        self.kept.iter().map(|kept| kept.bytes).fold(0, u64::saturating_add)
    }

    /// Continues from the current state, with the launch as it was begun.
    fn run<R>(
        &mut self,
        trace: Option<&mut Trace>,
        go: impl FnOnce(&mut State, &Prepared<'_>, &mut Run<'_>) -> Result<R, Report>,
    ) -> Result<R, Report> {
        let Setting { instructions, host_bytes, .. } = self.setting;
        let bounds = Bounds::new(instructions, host_bytes, None).after(self.now.position as u64);
        let launch = self.setting.launch();
        let prepared = launch.resume(&self.memory, bounds, self.first_tag, self.workspace.clone());
        let steps = bytes_of::<Step>(self.now.position as u64);
        let bytes = self.now.bytes(&prepared).saturating_add(self.kept_bytes());
        let mut run = prepared.start(bytes.saturating_add(steps), trace, 0)?;
        self.now.pass(&prepared, &mut run)?;
        let result = go(&mut self.now, &prepared, &mut run);
        self.now.take(&mut run);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Module;

    /// Creates a stepper whose warps write so long that not all moments can be saved.
    fn stepper(together: bool, host_bytes: u64) -> Stepper {
        let ptx = "
            .version 8.0
            .target sm_80
            .address_size 64
            .visible .entry k(.param .u64 a, .param .u32 n)
            {
                .reg .pred %p1;
                .reg .b32 %r<5>;
                .reg .b64 %a, %i;
                ld.param.u64 %a, [a];
                ld.param.u32 %r1, [n];
                mov.u32 %r2, %ctaid.x;
                mov.u32 %r3, %tid.x;
                mad.lo.u32 %r4, %r2, 64, %r3;
                mul.wide.u32 %i, %r4, 4;
                add.s64 %a, %a, %i;
            L:  st.global.u32 [%a], %r1;
                add.s64 %a, %a, 512;
                sub.u32 %r1, %r1, 1;
                setp.ne.u32 %p1, %r1, 0;
                @%p1 bra L;
                ret;
            }";
        let module = Module::parse_named(ptx).unwrap();
        let memory = Memory::new(1 << 30);
        let array = memory.allocate("a", 512 * 1024).unwrap();
        let arguments = [array.to_le_bytes(), 1024_u64.to_le_bytes()].concat();
        let arguments = &arguments[..module.kernel("k").unwrap().param_bytes() as usize];
        let mut launch = Launch::new(module.kernel("k").unwrap(), [2, 1, 1], [64, 1, 1], arguments);
        launch.host_bytes = host_bytes;
        Stepper::new(launch, memory, together).unwrap()
    }

    /// However blocks run, a step back from any moment, the end included, is a small part of the
    /// launch, and the saved moments are bounded.
    #[test]
    fn a_step_back_is_a_small_part_of_the_launch() {
        for together in [false, true] {
            let stepper = stepper(together, 1 << 30);
            assert!(stepper.len() > 20_000 && stepper.result().is_ok());
            let mut moments: Vec<usize> =
                stepper.kept.iter().map(|kept| kept.state.position).collect();
            assert_eq!(moments[0], 0);
            moments.push(stepper.len());
            let farthest = moments.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
            assert!(farthest <= stepper.len() / 8, "{farthest} of {}", stepper.len());
            assert!(moments.len() <= MOST_KEPT + 1 && stepper.kept_bytes() <= MOST_BYTES);
        }
    }

    /// With little host memory, fewer moments are saved, and the launch still runs.
    #[test]
    fn what_is_kept_leaves_room_for_the_launch() {
        let stepper = stepper(true, 24 << 20);
        assert!(stepper.result().is_ok(), "{:?}", stepper.result());
        assert!(
            (2..MOST_KEPT / 2).contains(&stepper.kept.len()) && stepper.kept_bytes() <= 6 << 20
        );
    }
}
