//! Chapter 10: The speed of memory.
//!
//! - [`rung`]: the steps of the ladder, from the pipe kernel to a kernel at the speed of an
//!   addition, with their sizes.
//! - [`kernel`]: a step loaded on a device, over buffers and as an engine.
//! - [`count`]: the cost of a step, as counted by the emulator.
//! - [`record`]: the measurements of an H200.
//! - [`exercises`]: the solutions of the page's exercises.

pub mod count;
pub mod exercises;
pub mod kernel;
pub mod record;
pub mod rung;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

/// The chapter, as the tour runs it.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
