//! Chapter 14: The fused scan.
//!
//! - [`problem`]: a selective scan to compute, its results in double precision, and how far
//!   arithmetic of `f32` may be off.
//! - [`ladder`]: the kernels of `kernels/fused` and the library's own, on any device.
//! - [`counts`]: what they read, and what they execute, from the emulator's counters and traces.
//! - [`roofs`]: how long memory, special functions and the issue of instructions take at least.
//! - [`life`]: who does what with which tile, from a trace.
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
