//! Chapter 08: Reverse and backward.
//!
//! - [`watch`]: which thread loads and stores which element of a row, from the emulator's trace.
//! - [`count`]: what a launch of a kernel costs, counted by the emulator.
//! - [`strides`]: the pipe kernel with the distance between elements in a variable or not.
//! - [`ahead`]: the pipe kernel that asks for a whole tile before it waits.
//! - [`stored`]: the recurrence in numbers of 2 to 16 bytes, and its errors.
//! - [`record`]: the measurements of an H200 that the page shows.
//! - [`suspect`]: the backward kernel with a planted mistake, and what finds it.
//! - [`exercises`]: the solutions of the page's exercises.

pub mod ahead;
pub mod count;
pub mod exercises;
pub mod record;
pub mod stored;
pub mod strides;
pub mod suspect;
pub mod watch;

mod story;

use linrec::kernels::{Config, KernelChoice};
use linrec::lesson::Chapter;

/// The pipe kernel with one of the three ways between memory and registers: 8 elements for each of up to 64
/// threads.
pub fn pipe(memcode: u32) -> KernelChoice {
    KernelChoice::Pipe(Config { memcode, ..Config::default() })
}

/// Steps of its largest tile.
pub const TILE_LEN: usize = 8 * 64;

/// This chapter.
pub const CHAPTER: Chapter = Chapter {
    number: 8,
    slug: "08-reverse-and-backward",
    title: "Reverse and backward",
    run: story::run,
};
