//! Chapter 09: Loads and stores.
//!
//! - [`banks`]: the cost in shared memory of threads that select their own elements.
//! - [`strides`]: the pipe kernel with the distance between elements in a variable or not.
//! - [`ahead`]: the pipe kernel that requests a whole tile before it waits.
//! - [`stored`]: the recurrence in numbers of 2 to 16 bytes, and its errors.
//! - [`record`]: the measurements of an H200 that the page shows.
//! - [`exercises`]: the solutions of the page's exercises.

pub mod ahead;
pub mod banks;
pub mod exercises;
pub mod record;
pub mod stored;
pub mod strides;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

/// The chapter, as the tour runs it.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
