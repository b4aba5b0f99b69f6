//! Chapter 05: The reference kernel.
//!
//! - [`by_hand`]: everything between two slices on the host and a kernel on a device: module,
//!   function, buffers, launch, and the kernel's instance for a type and a direction.
//! - [`fused`](mod@fused): chapter 1's loop with one rounding per step, which has the kernel's
//!   bits.
//! - [`patterns`]: the memory sectors that one load instruction of a warp requests.
//! - [`Suspect`]: a kernel with a planted mistake, as an engine for the test contract.
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

/// The chapter, as the tour runs it.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
