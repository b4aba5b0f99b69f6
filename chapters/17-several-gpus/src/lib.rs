//! Chapter 17: Several GPUs.
//!
//! - [`by_hand`]: a row cut over the ranks of a group, in a screen of code.
//! - [`called`]: the library's `GroupRecurrence` in a program.
//! - [`mailbox`]: ranks that reach each other's memory, and the kernel of
//!   `kernels/long/mailbox.cu`.
//! - [`scan`]: the fused selective scan, cut along its length.
//! - [`simulate`]: the time of a pass over any number of GPUs, event by event, from the times of
//!   links.
//! - [`quoted`]: measurements on several GPUs, by trial programs and by this library.
//! - [`suspect`]: three planted mistakes, and the report of each.
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
