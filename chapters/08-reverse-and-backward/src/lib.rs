//! Chapter 08: Reverse and backward.
//!
//! - [`watch`]: which thread loads and stores which element of a row, from the emulator's trace.
//! - [`count`]: the cost of a kernel's launch, as counted by the emulator.
//! - [`record`]: the measurements of an H200 that the page shows.
//! - [`suspect`]: the backward kernel with a planted mistake, and the tests that find it.
//! - [`exercises`]: the solutions of the page's exercises.

pub mod count;
pub mod exercises;
pub mod record;
pub mod suspect;
pub mod watch;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

use linrec::kernels::{KernelChoice, Memcode, PipeConfig};

/// Returns the pipe kernel with one of the three ways between memory and registers: 8 elements for
/// each of up to 64 threads.
pub fn pipe(memcode: Memcode) -> KernelChoice {
    KernelChoice::Pipe(PipeConfig { memcode, ..PipeConfig::DEFAULT })
}

/// The number of steps of its largest tile.
pub const TILE_LEN: usize = 8 * 64;

/// The chapter, as the tour runs it.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
