//! The puzzles: kernels with one hole each for the reader to fill in, and the judge of the answers.
//!
//! A puzzle is a folder in `puzzles/`, and [`all`] returns them in their order. `puzzle.cu` is the
//! kernel with its hole, and `puzzle.toml` describes everything else. An answer ([`Candidate`]) is
//! the text that is in the hole at first, the solution, or a wrong answer with a real fault. The
//! PTX of these answers is in `puzzles/ptx.zst`, so they can be chosen where there is no compiler.
//! NVRTC compiles all others.
//!
//! [`judge`] runs a kernel on cases of the contract and compares its outputs with the derived
//! bound. Then, on the emulator, it takes the counts of the puzzle's goal. [`Trial`] does the same
//! one case at a time. [`explain`] explains why a kernel is wrong, where that is known.
//!
//! ```
//! use linrec::device::Device;
//! use puzzle::judge;
//!
//! let guard = puzzle::find("guard").expect("it is the first one");
//! let ptx = guard.ptx("solution").expect("it is compiled");
//! let verdict = judge(guard, &ptx, &Device::simt());
//! assert!(verdict.reached(), "{verdict}");
//! ```

mod candidate;
mod cases;
mod count;
mod description;
mod explain;
mod judge;
#[cfg(feature = "notebook")]
pub mod notebook;
mod problem;
mod staged;

pub use candidate::{Candidate, Kind};
pub use count::{Count, Counted, Limit};
pub use description::{Description, Goal, Launch, Puzzle};
pub use explain::{Part, explain};
pub use judge::{Trial, Verdict, judge};
pub use staged::{Argument, Staged};

#[cfg(feature = "folders")]
use std::sync::LazyLock;

/// The files of a folder.
#[cfg(feature = "folders")]
struct Files {
    folder: &'static str,
    toml: &'static str,
    cu: &'static str,
}

#[cfg(feature = "folders")]
static FILES: &[Files] = include!(concat!(env!("OUT_DIR"), "/puzzles.rs"));
/// The PTX of all answers: `01-guard/solution`.
#[cfg(feature = "folders")]
static ANSWERS: &[u8] = include_bytes!("../../../puzzles/ptx.zst");

/// Returns all puzzles, in their order.
///
/// # Panics
///
/// Panics if a description in `puzzles/` has a mistake. The message names the folder. The tests
/// read all descriptions.
#[cfg(feature = "folders")]
pub fn all() -> &'static [Puzzle] {
    static ALL: LazyLock<Vec<Puzzle>> = LazyLock::new(|| {
        let answers = linrec::kernels::modules(ANSWERS).expect("the tests read it");
        let parsed = FILES.iter().map(|files| {
            let modules = answers.iter().filter_map(|(name, ptx)| {
                let name = name.strip_prefix(files.folder)?.strip_prefix('/')?;
                Some((name.to_owned(), ptx.clone()))
            });
            Puzzle::parse(files.folder, files.toml, files.cu)
                .map(|puzzle| puzzle.with_modules(modules.collect()))
                .unwrap_or_else(|error| panic!("puzzles/{}: {error}", files.folder))
        });
        parsed.collect()
    });
    &ALL
}

/// Returns the puzzle with this number (`3`), name (`shuffle`) or folder (`03-shuffle`).
#[cfg(feature = "folders")]
pub fn find(name: &str) -> Option<&'static Puzzle> {
    all().iter().find(|puzzle| {
        name.parse() == Ok(puzzle.number) || name == puzzle.name || name == puzzle.folder
    })
}
