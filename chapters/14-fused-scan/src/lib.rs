//! Chapter 14: The fused scan.
//!
//! - [`problem`]: a selective scan, its results in double precision, and their error bounds in
//!   `f32`.
//! - [`ladder`]: the kernels of `kernels/fused` and the library's own, on any device.
//! - [`counts`]: their reads and instructions, from the emulator's counters and traces.
//! - [`roofs`]: the least time for memory, for special functions and for the issue of instructions.
//! - [`life`]: the life of a tile in the library's kernel, from a trace.
//! - [`backward`]: gradients and their bits.
//! - [`chunks`]: sequences that are cut.
//! - [`training`]: chapter 13's block with the fused scan inside.
//! - [`suspect`]: kernels with a planted mistake, and what is found.
//! - [`exercises`]: the solutions of the page's exercises.

pub mod backward;
pub mod chunks;
pub mod counts;
pub mod exercises;
pub mod ladder;
pub mod life;
pub mod problem;
pub mod roofs;
pub mod suspect;
pub mod training;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

/// This chapter.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
