//! Chapter 01: The sequential loop.
//!
//! - [`sequence`]: the recurrence along one sequence, on slices ([`linrec()`]) and on views with a
//!   given output array ([`linrec_into`]).
//! - [`rows`]: from one sequence to arrays of sequences, with direction, initial and final state.
//! - [`special_cases`]: sums, products, averages and restarts as recurrences with particular
//!   coefficients.
//! - [`Loop`]: the loop as an [`Engine`](linrec::Engine).
//! - [`side_by_side`](mod@side_by_side): many sequences in step, which shows what the loop waits
//!   for.
//! - [`exercises`]: the solutions of the page's exercises.
//!
//! ```
//! use ch01_sequential_loop::linrec;
//!
//! let outputs = linrec(&[1.0, 2.0, 3.0, 4.0], &[0.5, 0.5, 0.5, 0.5], 2.0);
//! assert_eq!(outputs, [2.0, 3.0, 4.5, 6.25]);
//! ```

pub mod exercises;
pub mod rows;
pub mod sequence;
pub mod side_by_side;
pub mod special_cases;

mod engine;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

pub use engine::Loop;
pub use sequence::{linrec, linrec_into};

/// The chapter, as the tour runs it.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
