//! Chapter 16: Gallery.
//!
//! - [`models`]: eleven models that are this recurrence, each in a few lines: how to make its
//!   inputs and its coefficients, how to read its outputs, and a formula without any recurrence.
//! - [`Problem`] is the common form of all models, and [`Catalogue`](catalogue) the table of them.
//! - [`sunspots`]: three centuries of a real series.
//! - [`newton`] evaluates a recurrence that is *not* linear by linear ones.
//! - [`cups`]: a game that shows what element-wise coefficients cannot do.
//! - [`bytes`] counts operations and bytes.

pub mod bytes;
pub mod catalogue;
pub mod cups;
pub mod exercises;
pub mod models;
pub mod newton;
pub mod sunspots;

mod problem;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

pub use problem::{Problem, expect};

/// This chapter.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
