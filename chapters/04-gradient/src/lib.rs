//! Chapter 04: The gradient.
//!
//! - [`ThroughForward`] gives any engine a backward pass, made of its forward pass and a
//!   [`shift`](shift::shift) by one position.
//! - [`differences`] measures slopes without any derivation.
//! - [`chain`] carries gradients on to the variables that coefficients are computed from.
//! - [`task`] and [`model`]: a memory with a gate, trained by these gradients alone.

pub mod chain;
pub mod differences;
pub mod exercises;
pub mod model;
pub mod shift;
pub mod task;

mod engine;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

pub use engine::ThroughForward;

/// The chapter, as the tour runs it.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
