//! The matrix form as an engine: supports every option, up to a length at which a matrix still fits
//! into memory.

use ch01_sequential_loop::rows;
use linrec::contract::Domain;
use linrec::{Direction, Element, Engine, Error, Gradients, Options, Outputs, validate};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut1, Axis};

use crate::mixing::{mix, mix_back, mixing_matrix};

/// Computes `y = C̃ᵀ x` with the whole matrix in memory, sequence by sequence.
///
/// Supports every option. A sequence of length `L` needs `L²` elements of memory while it is
/// computed; the engine refuses sequences longer than [`Matrix::MAX_LEN`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Matrix;

impl Matrix {
    /// The longest supported sequence, 2048. Its matrix has 2²² elements (16 MiB of `f32`, 64 MiB
    /// of `Complex<f64>`).
    pub const MAX_LEN: usize = 2048;

    /// Returns the domain of the test contract. No term is rounded more often than in the loop.
    pub fn domain() -> Domain {
        Domain { max_len: Self::MAX_LEN, ..Domain::default() }
    }
}

impl<T: Element> Engine<T> for Matrix {
    fn name(&self) -> &str {
        "matrix"
    }

    fn forward(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<T>, Error> {
        check_len(inputs.ncols())?;
        rows::forward(inputs, coeffs, options, mix_sequence)
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<T>, Error> {
        let shape @ (num_seqs, seq_len) =
            validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        check_len(seq_len)?;
        let mut d_inputs: Array2<T> = validate::allocate("backward", shape)?;
        let mut d_coeffs: Array2<T> = validate::allocate("backward", shape)?;
        let mut d_initial = Array1::zeros(num_seqs);
        for seq in 0..num_seqs {
            let coeffs = plain_coeffs(coeffs.row(seq), options);
            let d_outputs = along(d_outputs.row(seq), options.direction);
            let outputs = along(outputs.row(seq), options.direction);
            let initial = options.initial.as_ref().map_or(T::zero(), |initial| initial[seq]);
            let matrix = mixing_matrix(coeffs.view())?;
            let delta = mix_back(matrix.view(), d_outputs)?;
            let mut d_coeffs = along_mut(d_coeffs.row_mut(seq), options.direction);
            for i in 0..seq_len {
                let previous = if i == 0 { initial } else { outputs[i - 1] };
                let d_coeff = delta[i] * previous.conj();
                d_coeffs[i] = if options.log_coeffs { d_coeff * coeffs[i].conj() } else { d_coeff };
            }
            if seq_len > 0 {
                d_initial[seq] = delta[0] * coeffs[0].conj();
            }
            along_mut(d_inputs.row_mut(seq), options.direction).assign(&delta);
        }
        Ok(Gradients { d_inputs, d_coeffs, d_initial })
    }
}

/// Computes one sequence: builds its matrix, multiplies, and returns the final state.
// ANCHOR: sequence
fn mix_sequence<T: Element>(
    inputs: ArrayView1<T>,
    coeffs: ArrayView1<T>,
    initial: T,
    mut outputs: ArrayViewMut1<T>,
) -> Result<T, Error> {
    let mut inputs = inputs.to_owned();
    // An initial state is the same as a larger first input: y_0 = c_0 y_{-1} + x_0.
    if let (Some(first), Some(&coeff)) = (inputs.first_mut(), coeffs.first()) {
        *first = coeff * initial + *first;
    }
    let matrix = mixing_matrix(coeffs)?;
    outputs.assign(&mix(matrix.view(), inputs.view())?);
    Ok(outputs.last().copied().unwrap_or(initial))
}
// ANCHOR_END: sequence

fn check_len(seq_len: usize) -> Result<(), Error> {
    if seq_len <= Matrix::MAX_LEN {
        return Ok(());
    }
    let what = format!("length {seq_len}: its limit is {}", Matrix::MAX_LEN);
    Err(Error::Unsupported { engine: "matrix".to_owned(), what })
}

/// Returns a sequence's coefficients in the order in which the recurrence walks, never as
/// logarithms.
fn plain_coeffs<T: Element>(coeffs: ArrayView1<T>, options: &Options<T>) -> Array1<T> {
    let coeffs = along(coeffs, options.direction);
    coeffs.mapv(|c| if options.log_coeffs { c.exp() } else { c })
}

/// Returns a row in the order in which the recurrence walks.
fn along<T>(mut row: ArrayView1<T>, direction: Direction) -> ArrayView1<T> {
    if direction == Direction::Reverse {
        row.invert_axis(Axis(0));
    }
    row
}

fn along_mut<T>(mut row: ArrayViewMut1<T>, direction: Direction) -> ArrayViewMut1<T> {
    if direction == Direction::Reverse {
        row.invert_axis(Axis(0));
    }
    row
}
