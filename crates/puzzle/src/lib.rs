//! The puzzles: kernels with one hole each for the reader to fill in, and the judge of what is put
//! there.
//!
//! A puzzle is a folder of `puzzles/` ([`all`] has them in their order): `puzzle.cu` is the kernel
//! with its hole, `puzzle.toml` says everything else, and `ptx/` holds the PTX of what may be put
//! there ([`Candidate`]): the text that stands there at first, the solution, and wrong answers,
//! each a real fault. So an answer can be chosen where there is no compiler; any other is compiled
//! by NVRTC.
//!
//! [`judge`] runs a kernel on cases of the contract and compares its outputs with the derived
//! bound. Then it counts, on the emulator, what the goal of the puzzle is about. [`Trial`] does the
//! same case by case. [`explain`] says why a kernel is wrong, where that is known.
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

/// What a folder holds.
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

/// All puzzles, in their order.
///
/// # Panics
///
/// If a description in `puzzles/` has a mistake, with where: the tests read them all.
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

/// The puzzle with this number (`3`), name (`shuffle`) or folder (`03-shuffle`).
#[cfg(feature = "folders")]
pub fn find(name: &str) -> Option<&'static Puzzle> {
    all().iter().find(|puzzle| {
        name.parse() == Ok(puzzle.number) || name == puzzle.name || name == puzzle.folder
    })
}
