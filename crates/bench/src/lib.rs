//! How this project measures: the one place of all that is timed, counted for comparison, and
//! recorded.
//!
//! - [`command`]: `tour bench`, on a GPU ([`race`]), on several ([`group`]) or on the processor
//!   ([`cpu`]).
//! - [`tune`]: which configuration of a kernel is the fastest: `tour tune`; [`counted`] is what the
//!   emulator can say.
//! - [`attrs`]: what a compiled kernel takes, for every configuration: `tour attrs`.
//! - [`field`], [`turns`], [`median()`]: the arrays and the stopwatch, taking turns, the value in
//!   the middle; [`clock`]: the same for work on the processor.
//! - [`judge`]: whether a configuration is right, before anybody asks how fast it is.
//! - [`row`], [`csv`], [`log`], [`destination`]: what was measured, as files.
//! - [`runs`], [`peers`], [`traffic`]: records that are read again.
//! - [`rule`]: from measurements to the rule by which the library picks a kernel.
//! - [`ladder`], [`long`], [`graphs`], [`ncu`]: the steps on the way to a kernel, ways to one long
//!   sequence, calls as graphs, what Nsight Compute wrote.
//!
//! The programs that use it are the tour, the examples of this package and of some chapters, and
//! the bundle for machines with a GPU (`bundle/`, packed by `cargo xtask bundle`). It knows no
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
pub mod peers;
pub mod race;
pub mod row;
pub mod rule;
pub mod runs;
pub mod traffic;
pub mod tune;
pub mod turns;

mod device_choice;
mod excerpt;
mod median;

use std::path::Path;

pub use device_choice::DeviceChoice;
pub use excerpt::Excerpt;
/// What the chapters keep of an H200, say, is read by this.
pub use lesson::recorded;
pub use median::median;
pub use peers::Peer;
pub use row::{Row, bytes};
pub use runs::{Race, Run, Runs};

/// The lengths that everything is measured at: the powers of two, and two lengths that are none.
pub const LENGTHS: [usize; 15] =
    [16, 32, 64, 128, 256, 512, 1000, 1024, 2048, 4093, 4096, 8192, 16_384, 32_768, 65_536];

/// A folder that can be written to, made if it is not there.
fn folder(path: &Path) -> lesson::Result {
    std::fs::create_dir_all(path)
        .map_err(|error| format!("cannot make the folder {}: {error}", path.display()).into())
}

/// Writes a file, as a whole or not at all.
///
/// # Errors
///
/// A sentence with the file's name.
pub fn write(path: &Path, text: &str) -> lesson::Result {
    lesson::files::write(path, text)
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// Reads a file.
///
/// # Errors
///
/// A sentence with the file's name.
pub fn read(path: &Path) -> lesson::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()).into())
}
