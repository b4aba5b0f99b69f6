//! The code that runs inside the book's pages: a debugger for kernels, and the chapters' widgets.
//!
//! A page sends a request and gets an answer, both in JSON, through the three functions of
//! `border`. A test does the same with [`Live::answer`], and both get the same text.
//!
//! - `scene`: a launch with a reader's sizes and data. `expression` and `values` read its texts.
//! - `widgets`: results of the chapters' own code, with controls and a drawing.
//! - `debugger`: a launch step by step, with the state of the machine at each step.
//! - `puzzles`: kernels with a hole, and the verdict about a reader's answer. It has a feature,
//!   because all other pages do not need it.

#[cfg(target_arch = "wasm32")]
mod border;
mod debugger;
mod expression;
mod number;
#[cfg(feature = "puzzles")]
mod puzzles;
mod scene;
mod values;
mod widgets;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use debugger::{Debugger, Go};
#[cfg(feature = "puzzles")]
use puzzles::{Answer, Delivered, Puzzles};
use scene::Scene;

/// Everything that a page has opened.
#[derive(Debug, Default)]
pub struct Live {
    debuggers: BTreeMap<u32, Debugger>,
    #[cfg(feature = "puzzles")]
    puzzles: Puzzles,
}

/// A request of a page. `id` is the page's number for a debugger.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
enum Request {
    /// Runs a scene, and goes to a step of it, by default the first.
    Open {
        id: u32,
        scene: Box<Scene>,
        #[serde(default)]
        sizes: BTreeMap<String, i64>,
        #[serde(default)]
        data: BTreeMap<String, String>,
        #[serde(default)]
        step: usize,
    },
    /// Goes to another step.
    Go {
        id: u32,
        #[serde(flatten)]
        go: Go,
    },
    /// Shows another warp at the same step.
    Look { id: u32, block: u32, warp: u32 },
    /// Shows a widget with these values of its controls.
    Widget {
        name: String,
        #[serde(default)]
        values: BTreeMap<String, String>,
    },
    /// Returns the contents of the arrays.
    Arrays { id: u32 },
    /// Returns the kernels of a module and their parameters.
    Kernels { ptx: String },
    /// Begins a puzzle, and returns its answers to choose from.
    #[cfg(feature = "puzzles")]
    Puzzle { puzzle: Box<Delivered> },
    /// Begins to run an answer to the puzzle of a folder.
    #[cfg(feature = "puzzles")]
    Try {
        puzzle: String,
        #[serde(flatten)]
        answer: Answer,
    },
    /// Runs the answer on one more case.
    #[cfg(feature = "puzzles")]
    TryOn { puzzle: String },
    /// Opens the launch of the last verdict about an answer, at its end.
    #[cfg(feature = "puzzles")]
    OpenTried { id: u32, puzzle: String },
}

impl Live {
    /// Answers a request with an object, which has only an `error` if the request failed.
    pub fn answer(&mut self, request: &str) -> String {
        let answer = serde_json::from_str(request)
            .map_err(|error| error.to_string())
            .and_then(|request| self.serve(request));
        answer.unwrap_or_else(|error| json!({ "error": error })).to_string()
    }

    fn serve(&mut self, request: Request) -> Result<Value, String> {
        match request {
            Request::Open { id, scene, sizes, data, step } => {
                let mut debugger = Debugger::open(*scene, &sizes, &data, step)?;
                let answer = debugger.opened();
                self.debuggers.insert(id, debugger);
                Ok(answer)
            }
            Request::Go { id, go } => Ok(self.debugger(id)?.go(&go)),
            Request::Look { id, block, warp } => Ok(self.debugger(id)?.look(block, warp)),
            Request::Widget { name, values } => widgets::show(&name, &values),
            Request::Kernels { ptx } => scene::kernels(&ptx),
            #[cfg(feature = "puzzles")]
            Request::Puzzle { puzzle } => self.puzzles.begin(*puzzle),
            #[cfg(feature = "puzzles")]
            Request::Try { puzzle, answer } => self.puzzles.answer(&puzzle, answer),
            #[cfg(feature = "puzzles")]
            Request::TryOn { puzzle } => self.puzzles.advance(&puzzle),
            #[cfg(feature = "puzzles")]
            Request::OpenTried { id, puzzle } => {
                let scene = self.puzzles.scene(&puzzle)?;
                let none = BTreeMap::new();
                let mut debugger = Debugger::open(scene, &BTreeMap::new(), &none, usize::MAX)?;
                let answer = debugger.opened();
                self.debuggers.insert(id, debugger);
                Ok(answer)
            }
            Request::Arrays { id } => Ok(self.debugger(id)?.arrays()),
        }
    }

    fn debugger(&mut self, id: u32) -> Result<&mut Debugger, String> {
        self.debuggers.get_mut(&id).ok_or_else(|| format!("nothing has been opened as {id}"))
    }
}
