//! Chapter 02: Two threads, then many.
//!
//! - [`Part`]: one thread's part of a sequence, and its two loops [`Part::scan`] and
//!   [`Part::combine`].
//! - [`two_threads()`]: a sequence in two parts.
//! - [`Transition`]: the effect of a part on the state, and the associative operator on
//!   transitions; [`tree()`] combines the transitions of many parts in ⌈log2 T⌉ levels.
//! - [`many_threads()`]: a sequence in T parts, with its [`Steps`] counted.
//! - [`TwoThreads`] and [`ManyThreads`]: both as an [`Engine`](linrec::Engine).
//! - [`exercises`]: the solutions of the page's exercises.
//!
//! All of them need the products of a part's coefficients. If such a product overflows, the result
//! is infinite or NaN, even if the loop's result is not.

pub mod exercises;

mod engines;
mod many_threads;
mod part;
mod transition;
mod tree;
mod two_threads;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

pub use engines::{ManyThreads, TwoThreads};
pub use many_threads::{Steps, many_threads};
pub use part::Part;
pub use transition::Transition;
pub use tree::{merge_groups, tree};
pub use two_threads::two_threads;

/// The chapter, as the tour runs it.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
