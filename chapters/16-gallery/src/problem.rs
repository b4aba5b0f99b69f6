//! The common form of all models of the gallery, which the recurrence solves.

use linrec::{Element, Engine, Error, Options, validate};
use ndarray::{Array2, ArrayBase, Data, Dimension};

/// Inputs and coefficients `[num_seqs, seq_len]`, and the options of the recurrence.
// ANCHOR: problem
#[derive(Debug, Clone)]
pub struct Problem<T: Element> {
    /// The inputs `x`.
    pub inputs: Array2<T>,
    /// The coefficients `c`.
    pub coeffs: Array2<T>,
    /// The direction, the initial state, and true if `coeffs` are logarithms.
    pub options: Options<'static, T>,
}

impl<T: Element> Problem<T> {
    /// Makes a forward problem that starts from zero.
    pub fn new(inputs: Array2<T>, coeffs: Array2<T>) -> Self {
        Problem { inputs, coeffs, options: Options::default() }
    }

    /// Computes the states after every step, `[num_seqs, seq_len]`.
    ///
    /// # Errors
    ///
    /// Returns an error if the shapes do not match.
    pub fn solve(&self) -> Result<Array2<T>, Error> {
        Ok(linrec::forward(self.inputs.view(), self.coeffs.view(), &self.options)?.outputs)
    }
    // ANCHOR_END: problem

    /// Computes the states after every step, `[num_seqs, seq_len]`, with the given engine.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine fails.
    pub fn solve_with(&self, engine: &dyn Engine<T>) -> Result<Array2<T>, Error> {
        Ok(engine.forward(self.inputs.view(), self.coeffs.view(), &self.options)?.outputs)
    }
}

/// Checks that an array has the shape that a model's first array requires.
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] with the names and shapes.
pub fn expect<D: Dimension>(
    model: &'static str,
    (expected_name, expected): (&'static str, &[usize]),
    (name, array): (&'static str, &ArrayBase<impl Data, D>),
) -> Result<(), Error> {
    validate::same_shape(model, (expected_name, expected), (name, array.shape()))
}

#[cfg(test)]
mod tests {
    use super::Problem;
    use ndarray::array;

    #[test]
    fn an_error_names_shapes_that_differ() {
        let problem = Problem::new(array![[1.0, 2.0]], array![[1.0]]);
        let message = problem.solve().unwrap_err().to_string();
        assert_eq!(message, "shape mismatch in forward: inputs [1, 2], coeffs [1, 1]");
    }
}
