//! The checks that an engine makes before it computes, and the allocation of its results.

use ndarray::{Array, Array1, ArrayView2, ArrayViewMut2, Dimension, IntoDimension};

use crate::{Element, Error, Options};

/// Checks the arguments of a forward pass; returns `(num_seqs, seq_len)`.
///
/// # Errors
///
/// [`Error::ShapeMismatch`] if `coeffs` differ from `inputs` in shape, or there is not one initial
/// state per row.
pub fn forward<T: Element>(
    inputs: &ArrayView2<T>,
    coeffs: &ArrayView2<T>,
    options: &Options<T>,
) -> Result<(usize, usize), Error> {
    shapes("forward", &[("inputs", inputs), ("coeffs", coeffs)], options)
}

/// Checks the arguments of a backward pass; returns `(num_seqs, seq_len)`.
///
/// # Errors
///
/// [`Error::ShapeMismatch`] if `coeffs` or `outputs` differ from `d_outputs` in shape, or there is
/// not one initial state per row.
pub fn backward<T: Element>(
    d_outputs: &ArrayView2<T>,
    coeffs: &ArrayView2<T>,
    outputs: &ArrayView2<T>,
    options: &Options<T>,
) -> Result<(usize, usize), Error> {
    let arrays = [("d_outputs", d_outputs), ("coeffs", coeffs), ("outputs", outputs)];
    shapes("backward", &arrays, options)
}

/// Checks that the array for the outputs has the shape of the inputs.
pub(crate) fn outputs<T>(inputs: &ArrayView2<T>, outputs: &ArrayViewMut2<T>) -> Result<(), Error> {
    same_shape("forward", ("inputs", inputs.shape()), ("outputs", outputs.shape()))
}

/// Checks that the arrays for the gradients of inputs and coefficients have the shape of
/// `d_outputs`.
pub(crate) fn gradients<T>(
    d_outputs: &ArrayView2<T>,
    [d_inputs, d_coeffs]: [&ArrayViewMut2<T>; 2],
) -> Result<(), Error> {
    let expected = ("d_outputs", d_outputs.shape());
    same_shape("backward", expected, ("d_inputs", d_inputs.shape()))?;
    same_shape("backward", expected, ("d_coeffs", d_coeffs.shape()))
}

/// Checks that an array has the shape of another one; each is given as its name and its shape.
///
/// # Errors
///
/// [`Error::ShapeMismatch`] with both names and shapes.
pub fn same_shape(
    operation: &'static str,
    expected: (&'static str, &[usize]),
    given: (&'static str, &[usize]),
) -> Result<(), Error> {
    if expected.1 == given.1 {
        return Ok(());
    }
    let arrays = vec![(expected.0, expected.1.to_vec()), (given.0, given.1.to_vec())];
    Err(Error::ShapeMismatch { operation, arrays })
}

/// Allocates an array of zeros for a result.
///
/// # Errors
///
/// [`Error::OutOfMemory`] with the number of bytes, if they cannot be allocated.
pub fn allocate<T: Element, D: Dimension>(
    operation: &'static str,
    shape: impl IntoDimension<Dim = D>,
) -> Result<Array<T, D>, Error> {
    let shape = shape.into_dimension();
    // A broadcast view can describe far more elements than it holds, and `zeros` would abort the
    // program. But only `zeros` gets pages that nobody has touched, which a filled `Vec` would not.
    let len = shape.slice().iter().fold(1, |len: usize, &size| len.saturating_mul(size));
    let bytes = len.saturating_mul(size_of::<T>());
    Vec::<T>::new().try_reserve_exact(len).map_err(|_| Error::OutOfMemory { operation, bytes })?;
    Ok(Array::zeros(shape))
}

/// Returns the states before the rows: a copy of the initial states, or zeros.
///
/// # Errors
///
/// [`Error::OutOfMemory`] with the number of bytes, if they cannot be allocated.
pub fn initial_states<T: Element>(
    operation: &'static str,
    options: &Options<T>,
    num_seqs: usize,
) -> Result<Array1<T>, Error> {
    let mut states = allocate(operation, num_seqs)?;
    if let Some(initial) = &options.initial {
        states.assign(initial);
    }
    Ok(states)
}

fn shapes<T: Element>(
    operation: &'static str,
    arrays: &[(&'static str, &ArrayView2<T>)],
    options: &Options<T>,
) -> Result<(usize, usize), Error> {
    let (num_seqs, seq_len) = arrays[0].1.dim();
    let mut all: Vec<_> =
        arrays.iter().map(|(name, array)| (*name, array.shape().to_vec())).collect();
    if all.iter().any(|(_, shape)| shape != &[num_seqs, seq_len]) {
        return Err(Error::ShapeMismatch { operation, arrays: all });
    }
    if let Some(initial) = &options.initial
        && initial.len() != num_seqs
    {
        all.truncate(1);
        all.push(("initial", vec![initial.len()]));
        return Err(Error::ShapeMismatch { operation, arrays: all });
    }
    Ok((num_seqs, seq_len))
}
