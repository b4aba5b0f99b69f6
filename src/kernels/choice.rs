//! Which kernel, and how it is launched.

use std::fmt;

use super::{ElementType, Program, program};
use crate::Direction;

/// A kernel that computes the recurrence, with everything that can be chosen about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KernelChoice {
    /// `linrec_ref.cu`: one thread per sequence.
    Ref {
        /// Threads in a block.
        threads: u32,
    },
}

/// The reference kernel with 64 threads in a block.
impl Default for KernelChoice {
    fn default() -> Self {
        KernelChoice::Ref { threads: 64 }
    }
}

/// Which of the two computations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// The outputs.
    Forward,
    /// The gradients.
    Backward,
}

/// How many threads a launch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks in the grid, along its first axis.
    pub blocks: u64,
    /// Threads in a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: u32,
}

impl KernelChoice {
    /// The kernel's short name, for engines and tables: `ref`.
    pub fn name(&self) -> &'static str {
        match self {
            KernelChoice::Ref { .. } => "ref",
        }
    }

    /// What to compile: one module with an entry for each pass and direction.
    pub fn program(&self, element: ElementType) -> Program {
        let file = match self {
            KernelChoice::Ref { .. } => "linrec_ref.cu",
        };
        let entries = [Pass::Forward, Pass::Backward].into_iter().flat_map(|pass| {
            [Direction::Forward, Direction::Reverse]
                .map(|direction| self.entry(element, pass, direction))
        });
        let program = program(file).expect("every kernel's file is in the table of sources");
        program.with_entries(entries)
    }

    /// The entry of [`KernelChoice::program`] that computes `pass` in `direction`, as C++ writes it.
    ///
    /// `direction` is that of the recurrence, in the backward pass as well.
    pub fn entry(&self, element: ElementType, pass: Pass, direction: Direction) -> String {
        let kernel = match (self, pass) {
            (KernelChoice::Ref { .. }, Pass::Forward) => "linrec_ref_fwd",
            (KernelChoice::Ref { .. }, Pass::Backward) => "linrec_ref_bwd",
        };
        format!("{kernel}<{}, {}>", element.cuda_name(), direction == Direction::Reverse)
    }

    /// The launch for `num_seqs` sequences; of no blocks if there are no sequences.
    ///
    /// A block of zero threads is passed on as it is: the launch refuses it.
    pub fn geometry(&self, num_seqs: u64) -> Geometry {
        match *self {
            KernelChoice::Ref { threads } => Geometry {
                blocks: num_seqs.div_ceil(u64::from(threads.max(1))),
                threads,
                shared_bytes: 0,
            },
        }
    }
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelChoice::Ref { threads } => write!(f, "ref with {threads} threads per block"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sequence_has_a_thread_and_no_block_is_idle() {
        for (num_seqs, threads, blocks) in [(0, 64, 0), (1, 64, 1), (64, 64, 1), (65, 64, 2)] {
            assert_eq!(KernelChoice::Ref { threads }.geometry(num_seqs).blocks, blocks);
        }
        assert_eq!(KernelChoice::Ref { threads: 1 }.geometry(u64::MAX).blocks, u64::MAX);
        assert_eq!(KernelChoice::Ref { threads: 0 }.geometry(3).threads, 0);
    }
}
