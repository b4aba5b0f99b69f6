//! Chapter 05: The reference kernel.
//!
//! - [`by_hand`]: everything between two slices on the host and a kernel on a device: module,
//!   function, buffers, launch; and how a type and a direction choose an instance of the kernel.
//! - [`fused`](mod@fused): chapter 1's loop with one rounding a step, which has the kernel's bits.
//! - [`patterns`]: what one load instruction of a warp asks of the memory.
//! - [`Suspect`]: a kernel with a planted mistake, as an engine that the contract can try.
//! - [`exercises`]: the solutions of the page's exercises.

pub mod by_hand;
pub mod exercises;
pub mod fused;
pub mod patterns;

mod suspect;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

pub use suspect::Suspect;

/// This chapter.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
