//! Chapter 12: One long sequence.
//!
//! - [`kernel`]: three launches, the chained scan and decoupled look-back, from `kernels/long`.
//! - [`shared_out`]: the library's waves and once, in grids of any number of blocks.
//! - [`messages`]: the messages that blocks published, and how long others waited for them, from
//!   the emulator's trace.
//! - [`suspect`]: chained scans with a planted mistake, and what is found.
//! - [`exercises`]: the solutions of the page's exercises.

pub mod exercises;
pub mod kernel;
pub mod messages;
pub mod shared_out;
pub mod suspect;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

/// The chapter, as the tour runs it.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
