//! Puzzles: a kernel with a hole, answers to choose from, and what is said of the one that is
//! chosen, or of PTX that a reader brings. The judge is that of the terminal and the notebooks.

use std::collections::BTreeMap;

use linrec::device::Device;
use linrec::kernels::Ptx;
use puzzle::{Argument, Description, Part, Puzzle, Trial, Verdict, explain};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::scene::{Extents, Scene};

/// All that have been begun, by the names of their folders.
#[derive(Debug, Default)]
pub struct Puzzles {
    all: BTreeMap<String, Begun>,
}

#[derive(Debug)]
struct Begun {
    puzzle: Puzzle,
    last: Option<Tried>,
}

/// What was tried last.
#[derive(Debug)]
struct Tried {
    /// With the answer in the hole; none of PTX.
    source: Option<String>,
    ptx: Ptx,
    stands: Stands,
}

/// How it stands with what was tried.
#[derive(Debug)]
enum Stands {
    Running(Trial),
    Over(Verdict),
}

/// A puzzle's folder, as a page has it.
#[derive(Debug, Deserialize)]
pub struct Delivered {
    folder: String,
    description: Description,
    kernel: String,
    modules: BTreeMap<String, String>,
}

/// What a reader tries.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// One of those that there are, by its name.
    Choice(String),
    /// A module of the reader's own.
    Ptx(String),
}

impl Puzzles {
    /// What there is to read and to choose. Nothing in it tells which answer is right.
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

    /// Begins to try an answer. A page stands still while it waits for an answer, so it asks for
    /// one case at a time.
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
        let stands = match Trial::begin(puzzle, &ptx, &Device::simt()) {
            Ok(trial) => Stands::Running(trial),
            Err(verdict) => Stands::Over(verdict),
        };
        Ok(begun.last.insert(Tried { source, ptx, stands }).told(puzzle))
    }

    /// Tries it on one more case: how far it is, or whether it reaches the goal, and what is said
    /// of it.
    pub fn go_on(&mut self, folder: &str) -> Result<Value, String> {
        let Begun { puzzle, last } = self.begun(folder)?;
        let tried = last.as_mut().ok_or("nothing has been tried")?;
        if let Stands::Running(trial) = &mut tried.stands
            && let Some(verdict) = trial.go_on(puzzle)
        {
            tried.stands = Stands::Over(verdict);
        }
        Ok(tried.told(puzzle))
    }

    /// The launch that was told of when an answer was tried.
    pub fn scene(&mut self, folder: &str) -> Result<Scene, String> {
        let Begun { puzzle, last } = self.begun(folder)?;
        let none = || "no launch has been told of".to_owned();
        let Tried { source, ptx, stands } = last.as_ref().ok_or_else(none)?;
        let Stands::Over(verdict) = stands else { return Err(none()) };
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
    /// What is said of it, or which case is next.
    fn told(&self, puzzle: &Puzzle) -> Value {
        let Tried { source, ptx, stands } = self;
        let verdict = match stands {
            Stands::Running(trial) => {
                let (done, of) = trial.progress();
                return json!({ "running": { "done": done, "of": of } });
            }
            Stands::Over(verdict) => verdict,
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

/// An argument as a scene has it. What a float is written as is read as the same float.
fn line(name: &str, argument: &Argument<f32>) -> String {
    match argument {
        Argument::Given(values) => {
            let words: Vec<String> = values.iter().map(f32::to_string).collect();
            // An empty array has no values to be filled with.
            let filled =
                if words.is_empty() { String::new() } else { format!(" = {}", words.join(" ")) };
            format!("{name}: f32[{}]{filled}", values.len())
        }
        Argument::Wanted(count) | Argument::Room(count) => format!("{name}: f32[{count}]"),
        Argument::Flags(count) => format!("{name}: u32[{count}] = zeros"),
        Argument::Count(count) => format!("{name}: i64 = {count}"),
    }
}
