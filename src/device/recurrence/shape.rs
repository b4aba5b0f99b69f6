//! Shapes, and the check that buffers have them.

use crate::Error;
use crate::device::Buffer;

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
    pub(super) fn check_states<T>(
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
