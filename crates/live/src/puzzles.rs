//! Puzzles: a kernel with a hole, answers to choose from, and the verdict about the chosen answer
//! or about a reader's own PTX. The terminal and the notebooks have the same judge.

use std::collections::BTreeMap;

use linrec::device::Device;
use linrec::kernels::Ptx;
use puzzle::{Argument, Description, Part, Puzzle, Trial, Verdict, explain};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::scene::{Extents, Scene};

/// The puzzles that have been begun, by the names of their folders.
#[derive(Debug, Default)]
pub struct Puzzles {
    all: BTreeMap<String, Begun>,
}

#[derive(Debug)]
struct Begun {
    puzzle: Puzzle,
    last: Option<Tried>,
}

/// The last answer.
#[derive(Debug)]
struct Tried {
    /// The kernel with the answer in its hole; `None` for a reader's PTX.
    source: Option<String>,
    ptx: Ptx,
    state: State,
}

/// The state of an answer.
#[derive(Debug)]
enum State {
    Running(Trial),
    Over(Verdict),
}

/// A puzzle's folder, as a page delivers it.
#[derive(Debug, Deserialize)]
pub struct Delivered {
    folder: String,
    description: Description,
    kernel: String,
    modules: BTreeMap<String, String>,
}

/// A reader's answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// One of the puzzle's answers, by its name.
    Choice(String),
    /// A module that the reader compiled.
    Ptx(String),
}

impl Puzzles {
    /// Begins a puzzle, and returns its answers. Nothing reveals which of them is right.
    pub fn begin(&mut self, delivered: Delivered) -> Result<Value, String> {
        let Delivered { folder, description, kernel, modules } = delivered;
        let modules =
            modules.into_iter().map(|(name, text)| (name, Ptx::from_text(text))).collect();
        let puzzle = Puzzle::new(&folder, description, &kernel)?.with_modules(modules);
        let choices = puzzle.choices().into_iter().map(|candidate| {
            let source = puzzle.source(&candidate.hole);
            json!({ "name": candidate.name, "hole": candidate.hole, "source": source })
        });
        let begun = json!({
            "name": puzzle.name,
            "choices": choices.collect::<Vec<_>>(),
            "above": puzzle.lines_above(),
            "hints": puzzle.hints,
        });
        self.all.insert(folder, Begun { puzzle, last: None });
        Ok(begun)
    }

    /// Begins to run an answer. A page is blocked during a request, so it requests one case at a
    /// time.
    pub fn answer(&mut self, folder: &str, answer: Answer) -> Result<Value, String> {
        let begun = self.begun(folder)?;
        let puzzle = &begun.puzzle;
        let (source, ptx) = match answer {
            Answer::Choice(name) => {
                let candidate = puzzle.candidate(&name);
                let source = candidate.map(|candidate| puzzle.source(&candidate.hole));
                let ptx = puzzle.ptx(&name);
                (source, ptx.ok_or_else(|| format!("there is no answer `{name}`"))?)
            }
            Answer::Ptx(text) => (None, Ptx::from_text(text)),
        };
        let state = match Trial::begin(puzzle, &ptx, &Device::simt()) {
            Ok(trial) => State::Running(trial),
            Err(verdict) => State::Over(verdict),
        };
        Ok(begun.last.insert(Tried { source, ptx, state }).report(puzzle))
    }

    /// Runs the answer on one more case. Returns the progress, or the verdict at the end.
    pub fn advance(&mut self, folder: &str) -> Result<Value, String> {
        let Begun { puzzle, last } = self.begun(folder)?;
        let tried = last.as_mut().ok_or("nothing has been tried")?;
        if let State::Running(trial) = &mut tried.state
            && let Some(verdict) = trial.advance(puzzle)
        {
            tried.state = State::Over(verdict);
        }
        Ok(tried.report(puzzle))
    }

    /// Returns the launch that the last verdict is about.
    pub fn scene(&mut self, folder: &str) -> Result<Scene, String> {
        let Begun { puzzle, last } = self.begun(folder)?;
        let none = || "there is no verdict about a launch".to_owned();
        let Tried { source, ptx, state } = last.as_ref().ok_or_else(none)?;
        let State::Over(verdict) = state else { return Err(none()) };
        let staged = puzzle.staged(ptx, verdict).map_err(|error| error.to_string())?;
        let staged = staged.ok_or_else(none)?;
        let file = format!("puzzles/{folder}/puzzle.cu");
        Ok(Scene {
            ptx: ptx.text().to_owned(),
            symbol: staged.symbol,
            sources: source.iter().map(|source| (file.clone(), source.clone())).collect(),
            grid: Extents::One(staged.blocks.to_string()),
            block: Extents::One(puzzle.launch.threads.to_string()),
            dynamic_shared: None,
            cooperative: puzzle.launch.cooperative,
            sizes: BTreeMap::new(),
            arguments: staged
                .arguments
                .iter()
                .map(|(name, argument)| line(name, argument))
                .collect(),
        })
    }

    fn begun(&mut self, folder: &str) -> Result<&mut Begun, String> {
        let begun = self.all.get_mut(folder);
        begun.ok_or_else(|| format!("the puzzle {folder} has not been begun"))
    }
}

impl Tried {
    /// Returns the verdict with its explanation, or the progress.
    fn report(&self, puzzle: &Puzzle) -> Value {
        let Tried { source, ptx, state } = self;
        let verdict = match state {
            State::Running(trial) => {
                let (done, of) = trial.progress();
                return json!({ "running": { "done": done, "of": of } });
            }
            State::Over(verdict) => verdict,
        };
        let parts = explain(puzzle, source.as_deref().unwrap_or_default(), ptx, verdict);
        let parts = parts.iter().map(|part| match part {
            Part::Words(text) => json!({ "words": text }),
            Part::Code(text) => json!({ "code": text }),
        });
        let line = match (verdict, source) {
            (Verdict::Wrong { report: Some(report), .. }, Some(_)) => {
                report.source.as_ref().map(|(_, line)| *line)
            }
            _ => None,
        };
        json!({
            "reached": verdict.reached(),
            "says": verdict.to_string(),
            "parts": parts.collect::<Vec<_>>(),
            "because": if verdict.reached() { Some(&puzzle.because) } else { None },
            "line": line,
            "launched": puzzle.staged(ptx, verdict).is_ok_and(|staged| staged.is_some()),
        })
    }
}

/// Returns an argument as a line of a scene. A float is written so that it is read as the same
/// float.
fn line(name: &str, argument: &Argument<f32>) -> String {
    match argument {
        Argument::Given(values) => {
            let words: Vec<String> = values.iter().map(f32::to_string).collect();
            // An empty array has no contents.
            let filled =
                if words.is_empty() { String::new() } else { format!(" = {}", words.join(" ")) };
            format!("{name}: f32[{}]{filled}", values.len())
        }
        Argument::Wanted(count) | Argument::Scratch(count) => format!("{name}: f32[{count}]"),
        Argument::Flags(count) => format!("{name}: u32[{count}] = zeros"),
        Argument::Count(count) => format!("{name}: i64 = {count}"),
    }
}
