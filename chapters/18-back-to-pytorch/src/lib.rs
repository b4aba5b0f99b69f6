//! Chapter 18: Back to PyTorch.
//!
//! The package itself is `python/`. This crate shows the parts that need no Python:
//!
//! - [`layout`]: the layout of somebody else's array, and the check for shared elements.
//! - [`double`]: the gradients of the gradients, which are the recurrence again.
//!
//! The story also reads what was measured and trained with the package: `results/h200` and
//! `results/python`.

pub mod double;
pub mod exercises;
pub mod layout;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

/// This chapter.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
