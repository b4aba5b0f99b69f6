//! A debugger: a launch that a reader goes through step by step.

mod access;
mod names;
#[cfg(test)]
mod tests;
mod verdict;
mod view;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde::Deserialize;
use serde_json::{Value, json};
use simt::{Event, Stepper, Trace};

use crate::number;
use crate::scene::{Array, Scene};
use crate::values::Type;

/// The largest number of events that a step shows, and the largest number of instructions that are
/// searched for events.
const MOST_EVENTS: usize = 8;
const MOST_TRACED: usize = 512;

/// A launch, and the step that a reader looks at.
#[derive(Debug)]
pub struct Debugger {
    stepper: Stepper,
    arrays: Vec<Array>,
    sizes: BTreeMap<String, i64>,
    ptx: Vec<String>,
    /// The C++ names of the registers.
    names: HashMap<String, String>,
    /// A sentence about the outputs, and true if they are right.
    verdict: Option<(String, bool)>,
    /// The steps directly after a barrier, in order.
    barriers: Vec<usize>,
    /// The block and the warp whose registers are shown.
    looked_at: Option<(u32, u32)>,
    /// The steps that the reader's last command executed.
    last: Range<usize>,
}

/// A command to go to another step.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum Go {
    /// Goes to the next or the previous line of the source.
    Line { back: bool },
    /// Goes to the next or the previous instruction.
    Instruction { back: bool },
    /// Goes to the next or the previous barrier.
    Barrier { back: bool },
    /// Goes to a step of the launch, or to its end if it has fewer steps.
    Step { to: u64 },
}

impl Debugger {
    /// Runs a scene and goes to a step of it.
    pub fn open(
        scene: Scene,
        sizes: &BTreeMap<String, i64>,
        data: &BTreeMap<String, String>,
        step: usize,
    ) -> Result<Debugger, String> {
        let sizes = scene.sizes(sizes);
        let (stepper, arrays) = scene.launch(&sizes, data)?;
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let sources =
            scene.sources.iter().map(|(name, text)| (name.clone(), lines(text))).collect();
        let ptx = lines(&scene.ptx);
        let text: Vec<&str> = ptx.iter().map(String::as_str).collect();
        let names = names::of_registers(stepper.kernel(), &text, &sources, &scene.symbol);
        let verdict = verdict::of(stepper.memory(), &arrays, &sizes);
        let barriers = barriers(&stepper);
        let mut debugger = Debugger {
            stepper,
            arrays,
            sizes,
            ptx,
            names,
            verdict,
            barriers,
            looked_at: None,
            last: 0..0,
        };
        debugger.go_to(step);
        Ok(debugger)
    }

    /// Returns the properties of the launch (its length, its end, its sizes), and the view.
    pub fn opened(&mut self) -> Value {
        let end = match self.stepper.result() {
            Ok(_) => None,
            Err(report) => Some(report.to_string()),
        };
        let shared = self.stepper.kernel().shared_variables().iter().map(|variable| {
            json!({
                "name": names::unmangled(&variable.name),
                "offset": variable.offset,
                "bytes": variable.bytes,
            })
        });
        json!({
            "length": self.stepper.len(),
            "end": end,
            "sizes": self.sizes,
            "shared": shared.collect::<Vec<_>>(),
            "view": self.view(),
        })
    }

    /// Goes to another step, and returns the view there.
    pub fn go(&mut self, go: &Go) -> Value {
        let position = self.stepper.position();
        self.looked_at = None;
        match *go {
            Go::Step { to } => self.go_to(usize::try_from(to).unwrap_or(usize::MAX)),
            Go::Instruction { back: false } => self.step_over(position..position + 1),
            Go::Instruction { back: true } => self.go_to(position.saturating_sub(1)),
            Go::Line { back: false } => self.step_over(position..self.line(position).end),
            Go::Line { back: true } => self.go_to(self.line(position.saturating_sub(1)).start),
            Go::Barrier { back: false } => {
                let after = self.barriers.partition_point(|&barrier| barrier <= position);
                let to = self.barriers.get(after).copied().unwrap_or(self.stepper.len());
                self.step_over(position..to);
            }
            Go::Barrier { back: true } => {
                let before = self.barriers.partition_point(|&barrier| barrier < position);
                self.go_to(before.checked_sub(1).map_or(0, |before| self.barriers[before]));
            }
        }
        self.view()
    }

    /// Shows another warp, and returns the view.
    pub fn look(&mut self, block: u32, warp: u32) -> Value {
        self.looked_at = Some((block, warp));
        self.view()
    }

    /// Returns the first values of every array, and a hash of all its bytes.
    pub fn arrays(&self) -> Value {
        let arrays = self.arrays.iter().map(|array| {
            let mut bytes = vec![0; array.count * array.ty.bytes()];
            // The read cannot fail: an array is a buffer of this memory and has this size.
            let _ = self.stepper.memory().read(array.address, &mut bytes);
            let hash =
                |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, hash);
            let values: Vec<String> = bytes
                .chunks(array.ty.bytes())
                .take(64)
                .map(|bytes| show(array.ty, bytes))
                .collect();
            json!({
                "name": array.name,
                "count": array.count,
                "values": values,
                "hash": format!("{hash:016x}"),
            })
        });
        json!({ "arrays": arrays.collect::<Vec<_>>() })
    }

    /// Goes to a step. Its view shows the events of the previous instruction.
    fn go_to(&mut self, step: usize) {
        let step = step.min(self.stepper.len());
        self.last = step.saturating_sub(1)..step;
    }

    fn step_over(&mut self, steps: Range<usize>) {
        let end = steps.end.min(self.stepper.len());
        self.last = steps.start.min(end)..end;
    }

    /// Returns the steps around `step` during which the same warp stays in the same line.
    fn line(&self, step: usize) -> Range<usize> {
        let steps = self.stepper.steps();
        let place =
            |step: &simt::Step| (step.block, step.warp, self.stepper.kernel().source(step.pc));
        let Some(here) = steps.get(step).map(place) else { return step..step };
        let other = |one: &simt::Step| place(one) != here;
        let start = steps[..step].iter().rposition(other).map_or(0, |before| before + 1);
        let end = steps[step..].iter().position(other).map_or(steps.len(), |after| step + after);
        start..end
    }

    /// Goes to the end of the reader's last command, and returns the last events in it.
    fn arrive(&mut self) -> Vec<Event> {
        let Range { start, end } = self.last;
        let mut trace = Trace::new(MOST_TRACED);
        self.stepper.trace(start.max(end.saturating_sub(MOST_TRACED))..end, &mut trace);
        trace.events.split_off(trace.events.len().saturating_sub(MOST_EVENTS))
    }
}

/// Returns the steps at which the first warp of a block continues after a barrier.
fn barriers(stepper: &Stepper) -> Vec<usize> {
    let mut arrived: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut moments = Vec::new();
    for (moment, step) in stepper.steps().iter().enumerate() {
        let waiting = arrived.entry(step.block).or_default();
        if waiting.contains(&step.warp) {
            waiting.clear();
            moments.push(moment);
        }
        if stepper.kernel().is_barrier(step.pc) && step.active != 0 {
            waiting.push(step.warp);
        }
    }
    moments
}

/// Returns a value of an array as text.
fn show(ty: Type, bytes: &[u8]) -> String {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(all);
    match ty {
        Type::F32 => number::float(f32::from_bits(bits as u32).into()),
        Type::F64 => number::float(f64::from_bits(bits)),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => bits.to_string(),
        Type::I32 => (bits as i32).to_string(),
        Type::I64 => (bits as i64).to_string(),
    }
}
