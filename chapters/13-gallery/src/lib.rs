//! Chapter 13: Gallery.
//!
//! - [`models`]: eleven things that the recurrence is, each in a few lines: what makes its inputs and its
//!   coefficients, how its outputs are read, and a formula that knows nothing of the recurrence.
//! - [`Problem`] is what each of them hands over, and [`Catalogue`](catalogue) the table of them all.
//! - [`sunspots`]: three centuries of a real series.
//! - [`newton`] evaluates a recurrence that is *not* linear, by linear ones.
//! - [`bytes`] counts operations and bytes.

pub mod bytes;
pub mod catalogue;
pub mod exercises;
pub mod models;
pub mod newton;
pub mod sunspots;

mod problem;
mod story;

use linrec::lesson::Chapter;

pub use problem::{Problem, expect};

/// This chapter.
pub const CHAPTER: Chapter =
    Chapter { number: 13, slug: "13-gallery", title: "Gallery", run: story::run };
