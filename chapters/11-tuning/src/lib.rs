//! Chapter 11: Tuning and benchmarking.
//!
//! The tools that the page shows, `tour attrs`, `tour tune` and `tour bench`, are in the package
//! [`bench`](mod@bench).
//!
//! - [`occupancy`]: the number of blocks that an SM holds, computed by hand.
//! - [`record`]: the measurements of an H200.
//! - [`exercises`]: the solutions of the page's exercises.

#[cfg(feature = "record")]
pub mod exercises;
pub mod occupancy;
#[cfg(feature = "record")]
pub mod record;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

/// The chapter, as the tour runs it.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
