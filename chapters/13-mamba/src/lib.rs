//! Chapter 13: Mamba.
//!
//! - [`dissection`] is the selective scan of the blog post on whole arrays; [`direct`](direct()) is
//!   its definition step by step.
//! - [`selective_scan`] has all options of Mamba's own function, channel by channel and on all
//!   cores; [`selective_scan_backward`] computes its gradients; [`golden`] holds Mamba's numbers.
//! - `on_device`, behind the feature `device`, runs the dissection and its gradients on a GPU or on
//!   the emulator.
//! - [`step`](step()) advances by one position; [`block::Memory`] does the same for a whole block.
//! - [`rounding`] and [`bounds`] bound the errors of results in single precision.
//! - [`post`] draws the post's problem; [`competitors`] are other ways to solve it, for timing.
//! - [`block`], [`task`] and [`training`]: a small Mamba block that learns what a fixed one cannot.
//!   [`writer`] teaches one to write, token by token.
//!
//! ```
//! use ch13_mamba::{Arguments, selective_scan};
//! use linrec::cpu::Cpu;
//! use ndarray::{Array4, array};
//!
//! // One channel with one state: it follows the input where Δ is large and holds where Δ is zero.
//! let (u, delta) = (array![[[5.0, 7.0, 9.0]]], array![[[40.0, 0.0, 40.0]]]);
//! let (b, c) = (Array4::from_elem((1, 1, 1, 3), 1.0 / 40.0), Array4::ones((1, 1, 1, 3)));
//! let a = array![[-1.0]];
//! let arguments = Arguments {
//!     u: u.view(),
//!     delta: delta.view(),
//!     a: a.view(),
//!     b: b.view().into(),
//!     c: c.view().into(),
//!     d: None,
//!     z: None,
//!     delta_bias: None,
//!     delta_softplus: false,
//!     initial: None,
//! };
//! let output = selective_scan(&Cpu::new(), &arguments)?;
//! assert_eq!(output.y, array![[[5.0, 5.0, 9.0]]]);
//! # Ok::<(), linrec::Error>(())
//! ```

pub mod activation;
pub mod block;
pub mod bounds;
pub mod channel;
pub mod competitors;
pub mod dissection;
pub mod exercises;
pub mod golden;
#[cfg(feature = "device")]
pub mod on_device;
pub mod post;
pub mod rounding;
pub mod task;
pub mod training;
pub mod writer;

mod arguments;
mod direct;
mod gradients;
mod real;
mod scan;
mod step;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

pub use arguments::{Arguments, Mixing, MixingArray, MixingView, Sizes, interleaved};
pub use direct::direct;
pub use gradients::{Gradients, selective_scan_backward};
pub use real::{Real, State};
pub use scan::{Output, selective_scan, selective_scan_by};
pub use step::{step, step_by_step};

/// This chapter.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
