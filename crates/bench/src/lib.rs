//! All measurements of this project: code that times, counts for comparison, and records.
//!
//! - [`command`]: `tour bench`, on a GPU ([`race`]), on several ([`group`]) or on the processor
//!   ([`cpu`]).
//! - [`tune`]: `tour tune`, which finds the fastest configuration of a kernel; [`counted`] replaces
//!   it on the emulator.
//! - [`attrs`]: `tour attrs`, the resources that each compiled configuration uses.
//! - [`field`], [`turns`], [`median()`]: the arrays and the stopwatch, the order of runs, and the
//!   middle value; [`clock`]: the same for work on the processor.
//! - [`judge`]: checks a configuration's results before its speed is measured.
//! - [`row`], [`csv`], [`log`], [`destination`]: measurements as files.
//! - [`runs`], [`traffic`]: readers of records.
//! - [`rule`]: makes the rule by which the library chooses a kernel from measurements.
//! - [`ladder`], [`long`], [`graphs`], [`ncu`]: the steps on the way to a kernel, one long
//!   sequence, calls as graphs, and the output of Nsight Compute.
//!
//! Its users are the tour, the examples of this package and of some chapters, and the bundle for
//! machines with a GPU (`bundle/`, packed by `cargo xtask bundle`). It does not depend on any
//! chapter.

pub mod attrs;
pub mod clock;
pub mod command;
pub mod counted;
pub mod cpu;
pub mod csv;
pub mod destination;
pub mod draw;
pub mod field;
pub mod figure;
pub mod graphs;
pub mod group;
pub mod judge;
pub mod ladder;
pub mod log;
pub mod long;
pub mod ncu;
pub mod race;
pub mod row;
pub mod rule;
pub mod runs;
pub mod traffic;
pub mod tune;
pub mod turns;

mod device_choice;
mod excerpt;

use std::path::Path;

pub use device_choice::DeviceChoice;
pub use excerpt::Excerpt;
/// Reads the saved records of an H200, for example.
pub use lesson::recorded;
pub use row::{Peer, Row, bytes};
pub use runs::{Race, Run, Runs};
pub use turns::median;

/// The lengths of all measurements: the powers of two, and two other lengths.
pub const LENGTHS: [usize; 15] =
    [16, 32, 64, 128, 256, 512, 1000, 1024, 2048, 4093, 4096, 8192, 16_384, 32_768, 65_536];

fn folder(path: &Path) -> lesson::Result {
    std::fs::create_dir_all(path)
        .map_err(|error| format!("cannot make the folder {}: {error}", path.display()).into())
}

/// Writes a file completely or not at all.
///
/// # Errors
///
/// Returns an error that names the file.
pub fn write(path: &Path, text: &str) -> lesson::Result {
    lesson::files::write(path, text)
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// Reads a file.
///
/// # Errors
///
/// Returns an error that names the file.
pub fn read(path: &Path) -> lesson::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()).into())
}
