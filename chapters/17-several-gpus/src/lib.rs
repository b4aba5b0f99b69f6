//! Chapter 17: Several GPUs.
//!
//! - [`by_hand`]: a row cut over the ranks of a group, in a screen of code.
//! - [`called`]: the library's `GroupRecurrence`, as a program calls it.
//! - [`mailbox`]: ranks that reach each other's memory, and the kernel of
//!   `kernels/long/mailbox.cu`.
//! - [`scan`]: the fused selective scan, cut along its length.
//! - [`simulate`]: what a pass takes over any number of GPUs, event by event, from what links take.
//! - [`quoted`]: what was measured on several H200s, by other programs.
//! - [`suspect`]: three planted mistakes, and what is said of each.
//! - [`exercises`]: the solutions of the page's exercises.

pub mod by_hand;
pub mod called;
pub mod exercises;
pub mod mailbox;
pub mod quoted;
pub mod scan;
pub mod simulate;
pub mod suspect;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

/// This chapter.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
