//! The problems that are measured, and the memory they are measured on.

use linrec::kernels::Pass;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::bytes;

/// The shape of a problem, and how many threads work on it.
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    pub num_seqs: usize,
    pub seq_len: usize,
    pub threads: usize,
}

impl Problem {
    /// As many sequences of this length as there are elements for, one at least.
    pub fn new(elements: usize, seq_len: usize, threads: usize) -> Self {
        Problem { num_seqs: (elements / seq_len).max(1), seq_len, threads }
    }

    pub fn elements(&self) -> usize {
        self.num_seqs * self.seq_len
    }

    /// Throughput, counting each array once.
    pub fn gb_per_s(&self, pass: Pass, seconds: f64) -> f64 {
        bytes(pass, self.elements(), size_of::<f32>()) as f64 / seconds * 1e-9
    }
}

/// Arrays long enough for the largest problem; written once, so that no run meets untouched pages.
pub struct Buffers {
    pub pass: Pass,
    /// Inputs (or the outputs' gradients), coefficients, and for the backward pass outputs.
    pub given: Vec<Vec<f32>>,
    /// Outputs, or the gradients of inputs and coefficients.
    pub results: Vec<Vec<f32>>,
}

impl Buffers {
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn new(pass: Pass, elements: usize) -> lesson::Result<Self> {
        let mut rng = StdRng::seed_from_u64(0);
        let (given, results) = match pass {
            Pass::Forward => (2, 1),
            Pass::Backward => (3, 2),
        };
        // Coefficients in [0.5, 1) keep all states away from zero and from overflow; drawing a few
        // thousand numbers and repeating them is as good as drawing millions.
        let drawn: Vec<f32> = (0..4099).map(|_| rng.random_range(0.5..1.0)).collect();
        let filled = |_| -> lesson::Result<Vec<f32>> {
            let mut array = Vec::new();
            array.try_reserve_exact(elements).map_err(|_| {
                format!("out of memory: {elements} elements of 4 bytes could not be allocated")
            })?;
            array.extend(drawn.iter().cycle().take(elements));
            Ok(array)
        };
        Ok(Buffers {
            pass,
            given: (0..given).map(filled).collect::<Result<_, _>>()?,
            results: (0..results).map(filled).collect::<Result<_, _>>()?,
        })
    }
}
