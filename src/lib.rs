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
//! - [`Options`] has the [`Direction`], the initial state, and whether coefficients are given as
//!   logarithms.
//! - [`Element`] is implemented for `f32`, `f64` and their complex numbers.
//! - [`Engine`] is the interface that all engines share; [`cpu::Cpu`] is the engine behind
//!   [`forward`] and [`backward`].
//! - [`mod@reference`] has the loop in double precision and the error bound that every engine must
//!   keep, `contract` (a feature) the table of cases that checks it.
//! - [`device`] runs CUDA kernels on an NVIDIA GPU or on an emulator of one ([`simt`]), [`kernels`]
//!   is the catalogue of the project's own.
//!
//! # Ways to use it
//!
//! - On the CPU: [`forward`] and [`backward`], above; [`forward_along`] along any axis; Mamba's
//!   scan by [`cpu::Cpu::selective_scan`] and [`cpu::Cpu::selective_scan_backward`].
//! - On a device: [`device::Recurrence`] with gradients and streams, below; [`device::Graph`] for
//!   launches that are replayed; [`device::SelectiveScan`] with its gradients; [`device::Group`]
//!   over several GPUs; [`device::OverBuffers`] for a kernel of yours.
//! - In place of both: an [`Engine`] of yours.
//!
//! On a device the data stays there, and a call returns before the work is done. This is the
//! example above, on a further stream. It runs on the first GPU, or on the emulator where there
//! is none:
//!
//! ```
//! # #[cfg(feature = "simt")] {
//! use linrec::device::{BackwardOptions, Choice, Device, ForwardOptions, Recurrence};
//!
//! let device = Device::auto()?;
//! let recurrence = Recurrence::<f32>::new(&device, Choice::Fastest)?;
//! let shape = (1, 4); // sequences, steps
//! let inputs = device.upload(&[1.0_f32, 2.0, 3.0, 4.0])?;
//! let coeffs = device.upload(&[0.0_f32, 1.0, 0.5, 0.5])?;
//! let (mut outputs, mut final_state) = (device.allocate(4)?, device.allocate(1)?);
//!
//! // Work on other streams may run at the same time; work on the same buffers keeps its order.
//! let stream = device.new_stream()?;
//! let options = ForwardOptions {
//!     final_state: Some(&mut final_state),
//!     stream: Some(&stream),
//!     ..Default::default()
//! };
//! recurrence.forward_into(&inputs, &coeffs, &mut outputs, shape, options)?;
//!
//! let d_outputs = device.upload(&[0.0_f32, 0.0, 0.0, 1.0])?;
//! let (mut d_inputs, mut d_coeffs) = (device.allocate(4)?, device.allocate(4)?);
//! let options = BackwardOptions { stream: Some(&stream), ..Default::default() };
//! recurrence.backward_into(
//!     &d_outputs, &coeffs, &outputs, &mut d_inputs, &mut d_coeffs, shape, options)?;
//!
//! // A download waits for the work on its buffer.
//! assert_eq!(final_state.download()?, [6.25]);
//! assert_eq!(d_inputs.download()?, [0.25, 0.25, 0.5, 1.0]);
//! assert_eq!(d_coeffs.download()?, [0.0, 0.25, 1.5, 4.5]);
//! # }
//! # Ok::<(), linrec::Error>(())
//! ```
//!
//! # Features
//!
//! The first two are on by default. [`device`], [`kernels`] and [`simt`] exist with either of them;
//! without both, a user of the CPU compiles neither the interface to NVIDIA's driver, nor the
//! emulator, nor any PTX.
//!
//! - `cuda`: NVIDIA GPUs, and the compiler NVRTC. The libraries are found at run time. With this
//!   feature alone there is no emulated device, so that [`device::Device::auto`] takes a GPU or
//!   fails.
//! - `simt`: the emulated device. With this feature alone [`device::Device::cuda`] is always an
//!   error, and all kernels are shipped ones.
//! - `contract`: the table of cases that every engine must pass, and the golden data.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod cpu;
pub mod reference;
pub mod validate;

#[cfg(feature = "contract")]
pub mod contract;

#[cfg(any(feature = "cuda", feature = "simt"))]
pub mod device;
#[cfg(any(feature = "cuda", feature = "simt"))]
pub mod kernels;
#[cfg(any(feature = "cuda", feature = "simt"))]
pub use simt;

mod along;
mod element;
mod engine;
mod error;
mod options;

use ndarray::{Array1, ArrayView2, ArrayViewMut2};

pub use crate::along::{backward_along, backward_along_into, forward_along, forward_along_into};
pub use crate::element::Element;
pub use crate::engine::{Engine, Gradients, Outputs};
pub use crate::error::Error;
pub use crate::options::{Direction, Options};

/// Computes the recurrence on this machine's CPU, with [`cpu::Cpu`].
///
/// Shapes: `inputs` and `coeffs` `[num_seqs, seq_len]`, the initial state `[num_seqs]`. For other
/// axes and more dimensions there is [`forward_along`].
///
/// # Large coefficients
///
/// The steps of a sequence are not taken one after the other: coefficients of consecutive steps are
/// multiplied before they meet a state. If such a product overflows, results can be infinite or NaN
/// where a loop's are finite: for `c = [1e200, 1e200, 1, 1]` in `f64` and inputs of zero, say,
/// where the loop gives 0, `inf * 0` may give NaN. What is finite is within the bound of
/// [`mod@reference`]. Recurrences of models have coefficients of at most 1, and no such products;
/// for others [`cpu::Cpu::in_order`] takes the steps in their order, in both passes.
///
/// # Threads
///
/// Large arrays are computed by the threads of the current rayon pool. A process that `fork` made
/// (without `exec`) has the pool but none of its threads, and a call in it never returns: fork
/// first, or use [`cpu::Cpu::single_threaded`] there.
///
/// # Errors
///
/// If the shapes do not match, or [`Error::OutOfMemory`]; see [`Engine::forward`].
pub fn forward<T: Element>(
    inputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    options: &Options<T>,
) -> Result<Outputs<T>, Error> {
    cpu::Cpu::default().forward(inputs, coeffs, options)
}

/// Computes the outputs into an array of the caller, of any strides, and returns the final state
/// `[num_seqs]`.
///
/// Every element of `outputs` is written, and none is read. Everything else is as in [`forward`].
///
/// # Errors
///
/// As for [`forward`], and if `outputs` differ from `inputs` in shape.
pub fn forward_into<T: Element>(
    inputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    options: &Options<T>,
    outputs: ArrayViewMut2<T>,
) -> Result<Array1<T>, Error> {
    cpu::Cpu::default().forward_into(inputs, coeffs, options, outputs)
}

/// Computes the gradients on this machine's CPU, with [`cpu::Cpu`].
///
/// `outputs` are the outputs of [`forward`] with the same `coeffs` and `options`. Its remarks about
/// large coefficients and threads also apply here. For other axes and more dimensions there is
/// [`backward_along`].
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

/// Computes the gradients into arrays of the caller, of any strides, and returns the gradient of
/// the initial state `[num_seqs]`.
///
/// Every element of `d_inputs` and `d_coeffs` is written, and none is read. Everything else is as
/// in [`backward`].
///
/// # Errors
///
/// As for [`backward`], and if `d_inputs` or `d_coeffs` differ from `d_outputs` in shape.
pub fn backward_into<T: Element>(
    d_outputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    outputs: ArrayView2<T>,
    options: &Options<T>,
    d_inputs: ArrayViewMut2<T>,
    d_coeffs: ArrayViewMut2<T>,
) -> Result<Array1<T>, Error> {
    cpu::Cpu::default().backward_into(d_outputs, coeffs, outputs, options, d_inputs, d_coeffs)
}

/// The code of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
