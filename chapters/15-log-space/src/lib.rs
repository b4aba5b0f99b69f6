//! Chapter 15: Log space.
//!
//! The recurrence as two prefix sums over logarithms:
//!
//! - [`heinsen()`]: the special case in which everything is positive.
//! - [`SignedLog`]: a number as a sign and the logarithm of its size. [`two_sums()`] is the general
//!   case with such numbers, and [`complex_two_sums`] the same with complex logarithms, for
//!   comparison.
//! - [`LogSpace`]: an [`Engine`](linrec::Engine) that restarts the sums at zeros, and wherever they
//!   have gone too far.
//! - [`bound`]: its error bound, derived from the logarithms of the given problem, by which the
//!   contract judges the engine.
//! - [`stored`]: the same formula with every array stored in 16 bits.
//! - [`min_gru`]: a recurrent network whose gates are logarithms from the start.
//! - [`atlas`]: the error of each method over length and coefficients, as maps.
//! - [`golden`]: results of other implementations; [`exercises`]: the solutions of the page's
//!   exercises.
//!
//! ```
//! use ch15_log_space::LogSpace;
//! use linrec::{Engine, Options};
//! use ndarray::array;
//!
//! // The third coefficient is a reset: its logarithm is -∞.
//! let (inputs, coeffs) = (array![[1.0, 2.0, 3.0, 4.0]], array![[0.5, -0.5, 0.0, 2.0]]);
//! let y = LogSpace::whole().forward(inputs.view(), coeffs.view(), &Options::default())?.outputs;
//! let exact = array![[1.0, 1.5, 3.0, 10.0]];
//! assert!((y - exact).iter().all(|error: &f64| error.abs() < 1e-14));
//! # Ok::<(), linrec::Error>(())
//! ```

pub mod atlas;
pub mod bound;
pub mod exercises;
pub mod golden;
pub mod min_gru;
pub mod stored;

mod complex_logs;
mod double_double;
mod engine;
mod heinsen;
mod order;
mod segments;
mod signed_log;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

pub use complex_logs::complex_two_sums;
pub use double_double::linrec_to_the_last_bit;
pub use engine::LogSpace;
pub use heinsen::{heinsen, log_add_exp, two_sums};
pub use order::Order;
pub use segments::segments;
pub use signed_log::{Real, SignedLog};

/// This chapter.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
