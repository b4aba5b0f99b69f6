//! Shapes, and the check that buffers have them.

use super::{BackwardOptions, ForwardOptions};
use crate::Error;
use crate::device::{Buffer, Storage};

/// The shape of a batch of sequences that lie one after the other in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The number of sequences.
    pub num_seqs: usize,
    /// The length of each.
    pub seq_len: usize,
}

impl From<(usize, usize)> for Shape {
    fn from((num_seqs, seq_len): (usize, usize)) -> Shape {
        Shape { num_seqs, seq_len }
    }
}

impl Shape {
    /// An error unless the arrays of a forward pass have this shape, and its states are one for
    /// each sequence.
    pub(in crate::device) fn check_forward<S: Storage>(
        self,
        inputs: &Buffer<S>,
        coeffs: &Buffer<S>,
        outputs: &Buffer<S>,
        options: &ForwardOptions<S::Accum>,
    ) -> Result<(), Error> {
        let operation = "forward_into";
        let arrays = [("inputs", inputs), ("coeffs", coeffs), ("outputs", outputs)];
        self.check_arrays(operation, &arrays)?;
        let (initial, last) = (options.initial, options.final_state.as_deref());
        self.check_states(operation, &[("initial", initial), ("final_state", last)])
    }

    /// An error unless the arrays of a backward pass have this shape, and its states are one for
    /// each sequence.
    pub(in crate::device) fn check_backward<S: Storage>(
        self,
        [d_outputs, coeffs, outputs]: [&Buffer<S>; 3],
        [d_inputs, d_coeffs]: [&Buffer<S>; 2],
        options: &BackwardOptions<S::Accum>,
    ) -> Result<(), Error> {
        let operation = "backward_into";
        let arrays = [
            ("d_outputs", d_outputs),
            ("coeffs", coeffs),
            ("outputs", outputs),
            ("d_inputs", d_inputs),
            ("d_coeffs", d_coeffs),
        ];
        self.check_arrays(operation, &arrays)?;
        let (initial, d_initial) = (options.initial, options.d_initial.as_deref());
        self.check_states(operation, &[("initial", initial), ("d_initial", d_initial)])
    }

    /// An error unless every one of the buffers holds an array of this shape and nothing else.
    pub(super) fn check_arrays<T>(
        self,
        operation: &'static str,
        buffers: &[(&'static str, &Buffer<T>)],
    ) -> Result<(), Error> {
        let elements = self.num_seqs.checked_mul(self.seq_len);
        for &(name, buffer) in buffers {
            if elements != Some(buffer.len()) {
                let shape = vec![self.num_seqs, self.seq_len];
                let arrays = vec![("shape", shape), (name, vec![buffer.len()])];
                return Err(Error::ShapeMismatch { operation, arrays });
            }
        }
        Ok(())
    }

    /// An error unless every one of the buffers that are given holds one element per sequence.
    fn check_states<T>(
        self,
        operation: &'static str,
        buffers: &[(&'static str, Option<&Buffer<T>>)],
    ) -> Result<(), Error> {
        for &(name, buffer) in buffers {
            if let Some(buffer) = buffer
                && buffer.len() != self.num_seqs
            {
                let shape = vec![self.num_seqs, self.seq_len];
                let arrays = vec![("shape", shape), (name, vec![buffer.len()])];
                return Err(Error::ShapeMismatch { operation, arrays });
            }
        }
        Ok(())
    }
}
