//! One pass over arrays on a device, which reads `I` arrays and writes `O`. The forward pass (2 to
//! 1) and the backward pass (3 to 2) are two instances, which differ in the names of their arrays.

use super::{BackwardOptions, ForwardOptions, Shape};
use crate::device::{Buffer, Storage, Stream};
use crate::kernels::Pass;
use crate::{Direction, Error};

/// The position of the coefficients among the inputs of either pass, and of their gradient among
/// the results of the backward pass.
pub(super) const COEFFS: usize = 1;

/// The arguments of a pass.
#[derive(Debug)]
pub(in crate::device) struct PassCall<'a, S: Storage, const I: usize, const O: usize> {
    pub(in crate::device) pass: Pass,
    pub(in crate::device) shape: Shape,
    /// The direction of the recurrence, in the backward pass as well.
    pub(in crate::device) direction: Direction,
    pub(in crate::device) log_coeffs: bool,
    /// Forward `[inputs, coeffs]`, backward `[d_outputs, coeffs, outputs]`.
    pub(in crate::device) inputs: [&'a Buffer<S>; I],
    /// Forward `[outputs]`, backward `[d_inputs, d_coeffs]`.
    pub(in crate::device) results: [&'a mut Buffer<S>; O],
    pub(in crate::device) initial: Option<&'a Buffer<S::Accum>>,
    /// Forward the final state, backward the gradient of the initial state.
    pub(in crate::device) end: Option<&'a mut Buffer<S::Accum>>,
    pub(in crate::device) stream: Option<&'a Stream>,
}

/// The arrays that a pass reads, and those that it writes.
type Arrays<'a, S, const I: usize, const O: usize> = ([&'a Buffer<S>; I], [&'a mut Buffer<S>; O]);

/// The names of a pass and of its arrays in errors.
struct ArrayNames {
    operation: &'static str,
    inputs: &'static [&'static str],
    results: &'static [&'static str],
    end: &'static str,
}

const FORWARD: ArrayNames = ArrayNames {
    operation: "forward_into",
    inputs: &["inputs", "coeffs"],
    results: &["outputs"],
    end: "final_state",
};

const BACKWARD: ArrayNames = ArrayNames {
    operation: "backward_into",
    inputs: &["d_outputs", "coeffs", "outputs"],
    results: &["d_inputs", "d_coeffs"],
    end: "d_initial",
};

impl<'a, S: Storage> PassCall<'a, S, 2, 1> {
    /// A forward pass.
    pub(in crate::device) fn forward(
        inputs: [&'a Buffer<S>; 2],
        results: [&'a mut Buffer<S>; 1],
        shape: Shape,
        options: ForwardOptions<'a, S::Accum>,
    ) -> Self {
        let ForwardOptions { direction, log_coeffs, initial, final_state: end, stream } = options;
        let pass = Pass::Forward;
        PassCall { pass, shape, direction, log_coeffs, inputs, results, initial, end, stream }
    }

    /// Returns the arrays and the options that it was made from.
    pub(in crate::device) fn into_options(
        self,
    ) -> (Arrays<'a, S, 2, 1>, ForwardOptions<'a, S::Accum>) {
        let PassCall { direction, log_coeffs, initial, end: final_state, stream, .. } = self;
        let options = ForwardOptions { direction, log_coeffs, initial, final_state, stream };
        ((self.inputs, self.results), options)
    }
}

impl<'a, S: Storage> PassCall<'a, S, 3, 2> {
    /// A backward pass.
    pub(in crate::device) fn backward(
        inputs: [&'a Buffer<S>; 3],
        results: [&'a mut Buffer<S>; 2],
        shape: Shape,
        options: BackwardOptions<'a, S::Accum>,
    ) -> Self {
        let BackwardOptions { direction, log_coeffs, initial, d_initial: end, stream } = options;
        let pass = Pass::Backward;
        PassCall { pass, shape, direction, log_coeffs, inputs, results, initial, end, stream }
    }

    /// Returns the arrays and the options that it was made from.
    pub(in crate::device) fn into_options(
        self,
    ) -> (Arrays<'a, S, 3, 2>, BackwardOptions<'a, S::Accum>) {
        let PassCall { direction, log_coeffs, initial, end: d_initial, stream, .. } = self;
        let options = BackwardOptions { direction, log_coeffs, initial, d_initial, stream };
        ((self.inputs, self.results), options)
    }
}

impl<S: Storage, const I: usize, const O: usize> PassCall<'_, S, I, O> {
    fn names(&self) -> &'static ArrayNames {
        match self.pass {
            Pass::Forward => &FORWARD,
            Pass::Backward => &BACKWARD,
        }
    }

    /// The name of the operation in errors.
    pub(super) fn operation(&self) -> &'static str {
        self.names().operation
    }

    /// True if all arrays begin at multiples of 16 bytes.
    pub(super) fn is_aligned(&self) -> bool {
        self.inputs.iter().all(|array| array.is_aligned_to(16))
            && self.results.iter().all(|array| array.is_aligned_to(16))
    }

    /// Checks that all arrays have the shape, and that there is one state per sequence.
    pub(in crate::device) fn check(&self) -> Result<(), Error> {
        let ArrayNames { inputs, results, end, .. } = *self.names();
        let Shape { num_seqs, seq_len } = self.shape;
        let check = |name: &'static str, len: usize, expected: Option<usize>| {
            if expected == Some(len) {
                return Ok(());
            }
            let arrays = vec![("shape", vec![num_seqs, seq_len]), (name, vec![len])];
            Err(Error::ShapeMismatch { operation: self.operation(), arrays })
        };
        let elements = num_seqs.checked_mul(seq_len);
        for (name, array) in inputs.iter().zip(self.inputs) {
            check(name, array.len(), elements)?;
        }
        for (name, array) in results.iter().zip(&self.results) {
            check(name, array.len(), elements)?;
        }
        let states = [("initial", self.initial), (end, self.end.as_deref())];
        for (name, array) in states {
            array.map_or(Ok(()), |array| check(name, array.len(), Some(num_seqs)))?;
        }
        Ok(())
    }
}
