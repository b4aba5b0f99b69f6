//! Runs a kernel on a puzzle's cases, and returns what is wrong or what was counted.
//!
//! The results of every case are compared with the reference, within the derived bound. A [`Trial`]
//! runs one case at a time, so that a page of the book can show progress, and [`judge`] runs a
//! trial to its end. The last case of a trial on the emulator may be the launch in which the goal's
//! counts are taken. `tests/suite.rs` runs every answer of every puzzle.

use std::fmt;

use bytemuck::Pod;
use linrec::contract::Case;
use linrec::device::{Buffer, Device, Function, Module};
use linrec::kernels::Ptx;
use linrec::simt::{Counters, Report, ReportKind, Trace};
use linrec::{Element, Error};
use num_complex::Complex;

use crate::cases::case;
use crate::count::Counted;
use crate::description::Puzzle;
use crate::problem::{self, Arrays, Computes};
use crate::staged::Argument;

/// The number of instructions that a launch may execute: a hundred times the most that a right
/// answer needs.
const INSTRUCTIONS: u64 = 4_000_000;
/// The number of recorded events, from which loads before a barrier are counted.
const EVENTS: usize = 4096;

/// The verdict about a kernel.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The kernel cannot be launched, computes wrong results, or was reported by the emulator.
    Wrong {
        /// A description of the case; `None` if the kernel was not launched.
        case: Option<String>,
        /// The fault, in words.
        what: String,
        /// The emulator's report, if it found the mistake.
        report: Option<Box<Report>>,
    },
    /// The kernel computes the right results.
    Right {
        /// The number of cases that it ran.
        cases: usize,
        /// The largest error, in units of its bound; `None` if a result is one rounding of its
        /// operands.
        worst: Option<f64>,
        /// The counts with their limits; empty on a GPU.
        counts: Vec<Counted>,
    },
}

impl Verdict {
    /// Returns true if the goal is reached.
    pub fn reached(&self) -> bool {
        match self {
            Verdict::Wrong { .. } => false,
            Verdict::Right { counts, .. } => counts.iter().all(Counted::reached),
        }
    }

    fn wrong(case: Option<String>, fault: Fault) -> Verdict {
        Verdict::Wrong { case, what: fault.what, report: fault.report }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Wrong { case: Some(case), what, .. } => {
                let end = if what.ends_with('?') { "" } else { "." };
                write!(f, "With {case}:\n  {what}{end}")
            }
            Verdict::Wrong { case: None, what, .. } => write!(f, "{what}."),
            Verdict::Right { cases, worst, counts } => {
                write!(f, "The outputs are right in all {cases} cases")?;
                if let Some(worst) = worst {
                    write!(
                        f,
                        " (the largest error is {worst:.2} times its bound, and up to 1 is right)"
                    )?;
                }
                f.write_str(".")?;
                counts.iter().try_for_each(|counted| {
                    let mark = if counted.reached() { "reached" } else { "not yet" };
                    write!(f, "\n  {mark}: {counted}.")
                })
            }
        }
    }
}

/// Runs a kernel on the puzzle's cases until a case fails. If all cases pass on the emulator, takes
/// the counts of the goal.
///
/// A GPU notices few mistakes, and the process cannot use the GPU after a mistake that it notices.
/// Therefore run a kernel on the emulator first.
pub fn judge(puzzle: &Puzzle, ptx: &Ptx, device: &Device) -> Verdict {
    let mut trial = match Trial::begin(puzzle, ptx, device) {
        Ok(trial) => trial,
        Err(verdict) => return verdict,
    };
    loop {
        if let Some(verdict) = trial.advance(puzzle) {
            return verdict;
        }
    }
}

/// A judgement in progress: [`judge`], one case at a time, for a program that must respond between
/// the cases.
#[derive(Debug)]
pub struct Trial {
    device: Device,
    function: Function,
    /// All cases. The last one is the launch that is counted, if `counts` is true.
    cases: Vec<Case>,
    counts: bool,
    done: usize,
    worst: f64,
}

impl Trial {
    /// Prepares a trial.
    ///
    /// # Errors
    ///
    /// Returns the verdict if the kernel cannot be launched.
    pub fn begin(puzzle: &Puzzle, ptx: &Ptx, device: &Device) -> Result<Trial, Verdict> {
        let function = device.module(ptx.text()).and_then(|module| function(puzzle, &module));
        let function = function.map_err(|error| Verdict::wrong(None, error.into()))?;
        let mut cases = puzzle.problem.cases();
        let counts = device.is_simt() && !puzzle.goal.counts.is_empty();
        cases.extend(counts.then(|| case(puzzle.goal.size)));
        Ok(Trial { device: device.clone(), function, cases, counts, done: 0, worst: 0.0 })
    }

    /// Returns the number of cases that have run, and the number of all cases.
    pub fn progress(&self) -> (usize, usize) {
        (self.done, self.cases.len())
    }

    /// Runs the next case. `puzzle` is the puzzle with which the trial began. Returns the verdict
    /// after the last case, or when a case fails.
    pub fn advance(&mut self, puzzle: &Puzzle) -> Option<Verdict> {
        let launched = Launched { puzzle, function: &self.function, device: &self.device };
        let mut counts = Vec::new();
        if let Some(case) = self.cases.get(self.done) {
            let counted = self.counts && self.done + 1 == self.cases.len();
            // A traced launch runs its blocks one after the other, and its counts are the same.
            let mut trace = counted.then(|| Trace::new(EVENTS));
            match launched.case(case, trace.as_mut()) {
                Ok((error, counters)) => {
                    self.worst = self.worst.max(error);
                    if let (Some(trace), Some(counters)) = (&trace, &counters) {
                        let goal = puzzle.goal.counts.iter();
                        counts.extend(goal.map(|limit| Counted {
                            limit: *limit,
                            value: limit.count.of(counters, trace),
                        }));
                    }
                }
                Err(fault) => return Some(Verdict::wrong(Some(puzzle.problem.words(case)), fault)),
            }
            self.done += 1;
        }
        let cases = self.cases.len();
        if self.done < cases {
            return None;
        }
        let worst = (puzzle.problem.computes != Computes::Sum).then_some(self.worst);
        Some(Verdict::Right { cases, worst, counts })
    }
}

/// Returns the puzzle's kernel in a module, by its name or by the name that a C++ compiler mangles
/// it to.
pub(crate) fn function(puzzle: &Puzzle, module: &Module) -> Result<Function, Error> {
    let entry = puzzle.entry();
    let mangled = format!("_Z{}{entry}", entry.len());
    module.function(&entry).or_else(|error| {
        module.functions().find(|function| function.name().starts_with(&mangled)).ok_or(error)
    })
}

/// A mistake, with the emulator's report if it found it.
struct Fault {
    what: String,
    report: Option<Box<Report>>,
}

/// Adds a question if a launch exceeded its number of instructions.
impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        let what = error.to_string();
        match error {
            Error::Kernel(report) if report.kind == ReportKind::Instructions => {
                Fault { what: what + ". Does each of its loops end?", report: Some(report) }
            }
            Error::Kernel(report) => Fault { what, report: Some(report) },
            _ => Fault { what, report: None },
        }
    }
}

impl From<String> for Fault {
    fn from(what: String) -> Fault {
        Fault { what, report: None }
    }
}

/// A kernel on a device.
struct Launched<'a> {
    puzzle: &'a Puzzle,
    function: &'a Function,
    device: &'a Device,
}

impl Launched<'_> {
    /// Runs a case. Returns the largest error in units of its bound and the counters.
    fn case(
        &self,
        case: &Case,
        trace: Option<&mut Trace>,
    ) -> Result<(f64, Option<Counters>), Fault> {
        let computes = self.puzzle.problem.computes;
        match computes {
            Computes::ComplexGradients => {
                let arrays = problem::gradients::<Complex<f32>>(case)?;
                self.run(case, &arrays, trace)
            }
            _ => self.run(case, &problem::real(computes, case)?, trace),
        }
    }

    fn run<T: Element + Pod>(
        &self,
        case: &Case,
        arrays: &Arrays<T>,
        trace: Option<&mut Trace>,
    ) -> Result<(f64, Option<Counters>), Fault> {
        let mut held = self.held(case, arrays)?;
        let counters = self.launch(&mut held, self.puzzle.blocks(case), trace)?;
        let printed = counters.as_ref().map(printed).unwrap_or_default();
        let mut worst = 0.0_f64;
        for wanted in &arrays.wanted {
            for (name, held) in self.names().zip(&held) {
                if let Held::Numbers(buffer) = held
                    && name == wanted.name
                {
                    let got = buffer.download()?;
                    worst = worst.max(wanted.judge(&got).map_err(|what| what + &printed)?);
                }
            }
        }
        Ok((worst, counters))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.puzzle.problem.arguments.iter().map(String::as_str)
    }

    /// Makes the arguments. Arrays for results are filled with NaN.
    fn held<T: Element + Pod>(
        &self,
        case: &Case,
        arrays: &Arrays<T>,
    ) -> Result<Vec<Held<T>>, Error> {
        let held = self.puzzle.arguments(case, arrays).map(|(name, argument)| match argument {
            Argument::Given(values) => {
                let mut buffer = self.device.allocate_named(name, values.len())?;
                buffer.upload(&values)?;
                Ok(Held::Numbers(buffer))
            }
            Argument::Wanted(count) => {
                let mut buffer = self.device.allocate_named(name, count)?;
                buffer.poison()?;
                Ok(Held::Numbers(buffer))
            }
            Argument::Scratch(count) => self.device.allocate_named(name, count).map(Held::Numbers),
            Argument::Flags(count) => {
                let mut flags = self.device.allocate_named(name, count)?;
                flags.zero()?;
                Ok(Held::Flags(flags))
            }
            Argument::Count(count) => Ok(Held::Count(count)),
        });
        held.collect()
    }

    fn launch<T: Pod>(
        &self,
        held: &mut [Held<T>],
        blocks: usize,
        trace: Option<&mut Trace>,
    ) -> Result<Option<Counters>, Error> {
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        let mut launch = self.function.launch(blocks, self.puzzle.launch.threads);
        for held in held {
            launch = match held {
                Held::Numbers(buffer) => launch.arg(buffer),
                Held::Flags(buffer) => launch.arg(buffer),
                Held::Count(count) => launch.arg(*count),
            };
        }
        if self.puzzle.launch.cooperative {
            launch = launch.cooperative();
        }
        if self.device.is_simt() {
            launch = launch.instructions(INSTRUCTIONS);
        }
        if let Some(trace) = trace {
            launch = launch.traced(trace);
        }
        Ok(launch.run(&self.device.stream())?.counters().cloned())
    }
}

/// Returns the output of the first threads, as lines that follow the description of a mistake.
fn printed(counters: &Counters) -> String {
    /// More lines would hide the mistake.
    const MOST: usize = 8;
    let lines = counters.printed.iter().take(MOST);
    let mut lines: String =
        lines.map(|printed| format!("\n  printed: {}", printed.text.trim_end())).collect();
    if counters.printed.len() > MOST {
        lines += &format!("\n  and {} more times", counters.printed.len() - MOST);
    }
    lines
}

/// An argument on the device.
enum Held<T> {
    Numbers(Buffer<T>),
    Flags(Buffer<u32>),
    Count(i64),
}
