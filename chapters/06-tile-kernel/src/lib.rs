//! Chapter 06: The tile kernel.
//!
//! - [`layout`]: which thread of a block holds which steps of a tile.
//! - [`levels`]: the three levels of the scan on the host, in the kernel's order and with its bits.
//! - [`stages`]: the kernel, stopped after each of its levels.
//! - [`watch`]: the values that the lanes of one block held, as recorded by the emulator.
//! - [`exercises`]: the solutions of the page's exercises.

pub mod exercises;
pub mod layout;
pub mod levels;
pub mod stages;
pub mod watch;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

/// The chapter, as the tour runs it.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
