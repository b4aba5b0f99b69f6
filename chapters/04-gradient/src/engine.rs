//! The backward pass, made of a forward pass.

use linrec::{Element, Engine, Error, Gradients, Options, Outputs, validate};
use ndarray::{Array1, Array2, ArrayView2};

use crate::shift::{first, shift};

/// An engine with a backward pass that is its own forward pass in the other direction, on shifted
/// coefficients.
///
/// It adds a gradient to any way of computing the recurrence:
///
/// ```
/// use ch01_sequential_loop::Loop;
/// use ch04_gradient::ThroughForward;
/// use linrec::{Engine, Options};
/// use ndarray::array;
///
/// let (coeffs, outputs) = (array![[0.0, 1.0, 0.5, 0.5]], array![[1.0, 3.0, 4.5, 6.25]]);
/// let d_outputs = array![[0.0, 0.0, 0.0, 1.0]];
/// let gradients = ThroughForward(Loop)
///     .backward(d_outputs.view(), coeffs.view(), outputs.view(), &Options::default())?;
/// assert_eq!(gradients.d_inputs, array![[0.25, 0.25, 0.5, 1.0]]);
/// assert_eq!(gradients.d_coeffs, array![[0.0, 0.25, 1.5, 4.5]]);
/// # Ok::<(), linrec::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ThroughForward<E>(pub E);

impl<T: Element, E: Engine<T>> Engine<T> for ThroughForward<E> {
    fn name(&self) -> &str {
        "through forward"
    }

    fn forward(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<T>, Error> {
        self.0.forward(inputs, coeffs, options)
    }

    // ANCHOR: backward
    fn backward(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<T>, Error> {
        let (num_seqs, _) = validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        let coeffs = conjugate_coeffs(coeffs, options)?;
        let (zeros, initial) =
            (Array1::zeros(num_seqs), validate::initial_states("backward", options, num_seqs)?);
        let back = Options { direction: options.direction.reversed(), ..Options::default() };

        // δ^(x)_l = δ^(x)_{l+1} c_{l+1} + δ^(y)_l: the recurrence, backwards.
        let next_coeffs = shift(coeffs.view(), back.direction, zeros.view())?;
        let d_inputs = self.0.forward(d_outputs, next_coeffs.view(), &back)?.outputs;

        // δ^(c)_l = y_{l-1} δ^(x)_l.
        let previous = shift(outputs, options.direction, initial.view())?;
        let mut d_coeffs = &d_inputs * &previous.mapv(T::conj);
        if options.log_coeffs {
            d_coeffs = d_coeffs * &coeffs;
        }

        // The initial state is multiplied by the first coefficient, and its gradient ends there.
        let d_initial =
            first(coeffs.view(), options.direction) * first(d_inputs.view(), options.direction);
        Ok(Gradients { d_inputs, d_coeffs, d_initial })
    }
    // ANCHOR_END: backward
}

/// Returns the coefficients that the backward pass multiplies by: never as logarithms, and
/// conjugated. (A real number is its own conjugate.)
fn conjugate_coeffs<T: Element>(
    coeffs: ArrayView2<T>,
    options: &Options<T>,
) -> Result<Array2<T>, Error> {
    let mut conjugates = validate::allocate("backward", coeffs.dim())?;
    conjugates.zip_mut_with(&coeffs, |conjugate: &mut T, &c| {
        *conjugate = if options.log_coeffs { c.exp() } else { c }.conj();
    });
    Ok(conjugates)
}
