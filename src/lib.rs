//! The linear recurrence `y_l = y_{l-1} * c_l + x_l`, at the speed of memory.
//!
//! Given inputs `x` and coefficients `c` of shape `[num_seqs, seq_len]`, [`forward`] computes the
//! outputs `y` of every row, and [`backward`] the gradients of a loss. With coefficients of one it
//! is a cumulative sum, with one shared coefficient a moving average, and with coefficients that
//! depend on the data the core of Mamba and its relatives.
//!
//! ```
//! use linrec::Options;
//! use ndarray::array;
//!
//! let inputs = array![[1.0, 2.0, 3.0, 4.0]];
//! let coeffs = array![[0.0, 1.0, 0.5, 0.5]];
//! let result = linrec::forward(inputs.view(), coeffs.view(), &Options::default())?;
//! assert_eq!(result.outputs, array![[1.0, 3.0, 4.5, 6.25]]);
//! assert_eq!(result.final_state, array![6.25]);
//!
//! let d_outputs = array![[0.0, 0.0, 0.0, 1.0]];
//! let gradients = linrec::backward(
//!     d_outputs.view(), coeffs.view(), result.outputs.view(), &Options::default())?;
//! assert_eq!(gradients.d_inputs, array![[0.25, 0.25, 0.5, 1.0]]);
//! assert_eq!(gradients.d_coeffs, array![[0.0, 0.25, 1.5, 4.5]]);
//! # Ok::<(), linrec::Error>(())
//! ```
//!
//! # A tour
//!
//! - [`Options`] chooses the [`Direction`], the initial state, and coefficients given as logarithms.
//! - [`Element`] is implemented for `f32`, `f64` and their complex numbers.
//! - [`Engine`] is the interface that every way of computing the recurrence shares;
//!   [`cpu::Cpu`] is the one behind [`forward`] and [`backward`].
//! - [`mod@reference`] holds the loop in double precision and the error bound that every engine is
//!   held to, `contract` (a feature) the table of cases that checks it.
//! - [`device`] runs CUDA kernels on an NVIDIA GPU or on an emulator of one ([`simt`]), [`kernels`] is
//!   the catalogue of the project's own.
//! - `lesson` (a feature) is what the tutorial's chapters share, `notebook` (a feature) what shows
//!   arrays, results and reports in a Jupyter notebook.

pub mod cpu;
pub mod device;
pub mod kernels;
pub mod reference;
pub mod simt;
pub mod validate;

#[cfg(feature = "contract")]
pub mod contract;
#[cfg(feature = "lesson")]
pub mod lesson;
#[cfg(feature = "notebook")]
pub mod notebook;

mod element;
mod engine;
mod error;
mod options;

use ndarray::ArrayView2;

pub use crate::element::Element;
pub use crate::engine::{Engine, Gradients, Outputs};
pub use crate::error::Error;
pub use crate::options::{Direction, Options};

/// Computes the recurrence on this machine's CPU, with [`cpu::Cpu`].
///
/// Shapes: `inputs` and `coeffs` `[num_seqs, seq_len]`, the initial state `[num_seqs]`.
///
/// # Errors
///
/// If the shapes do not match; see [`Engine::forward`].
pub fn forward<T: Element>(
    inputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    options: &Options<T>,
) -> Result<Outputs<T>, Error> {
    cpu::Cpu::default().forward(inputs, coeffs, options)
}

/// Computes the gradients on this machine's CPU, with [`cpu::Cpu`].
///
/// `outputs` are those of [`forward`] with the same `coeffs` and `options`.
///
/// # Errors
///
/// If the shapes do not match; see [`Engine::backward`].
pub fn backward<T: Element>(
    d_outputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    outputs: ArrayView2<T>,
    options: &Options<T>,
) -> Result<Gradients<T>, Error> {
    cpu::Cpu::default().backward(d_outputs, coeffs, outputs, options)
}

/// The code of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
