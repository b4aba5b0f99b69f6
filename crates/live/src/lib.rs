//! What runs inside the book's pages: kernels under a debugger, and the chapters' widgets.
//!
//! A page sends a request and gets an answer, both JSON, through the three functions of `border`; a
//! test does the same with [`Live::answer`], and both get the same words.
//!
//! - `scene`: a launch with a reader's sizes and data. `expression` and `values` are what it is
//!   written with.
//! - `widgets`: what the chapters' own code computes, with controls and a drawing.
//! - `debugger`: a launch gone through step by step, and what there is to see at each.
//! - `puzzles`: kernels with a hole, and what is said of what a reader puts there; in a module of
//!   its own, as all other pages do without.

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

/// All that a page has opened.
#[derive(Debug, Default)]
pub struct Live {
    debuggers: BTreeMap<u32, Debugger>,
    #[cfg(feature = "puzzles")]
    puzzles: Puzzles,
}

/// What a page asks for. `id` is the page's own number of a debugger.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
enum Request {
    /// Runs a scene, and goes to its beginning or to a step.
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
    /// Goes elsewhere.
    Go {
        id: u32,
        #[serde(flatten)]
        go: Go,
    },
    /// Looks at another warp, at the same moment.
    Look { id: u32, block: u32, warp: u32 },
    /// What a widget shows for the values of its controls.
    Widget {
        name: String,
        #[serde(default)]
        values: BTreeMap<String, String>,
    },
    /// What the arrays hold.
    Arrays { id: u32 },
    /// Which kernels a module has, and what they take.
    Kernels { ptx: String },
    /// Begins a puzzle: what there is to read and to choose.
    #[cfg(feature = "puzzles")]
    Puzzle { puzzle: Box<Delivered> },
    /// Begins to try an answer to the puzzle of a folder.
    #[cfg(feature = "puzzles")]
    Try {
        puzzle: String,
        #[serde(flatten)]
        answer: Answer,
    },
    /// Tries it on one more case.
    #[cfg(feature = "puzzles")]
    TryOn { puzzle: String },
    /// Opens the launch that was told of when an answer was tried, at its end.
    #[cfg(feature = "puzzles")]
    OpenTried { id: u32, puzzle: String },
}

impl Live {
    /// The answer to a request: an object, whose `error` says why there is no other.
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
            Request::TryOn { puzzle } => self.puzzles.go_on(&puzzle),
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
