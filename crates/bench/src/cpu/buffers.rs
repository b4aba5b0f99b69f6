//! The measured problems and their arrays.

use linrec::kernels::Pass;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::bytes;

/// The shape of a problem and the number of threads that compute it.
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    pub num_seqs: usize,
    pub seq_len: usize,
    pub threads: usize,
}

impl Problem {
    /// Makes a problem of as many sequences of this length as `elements` allows, at least one.
    pub fn new(elements: usize, seq_len: usize, threads: usize) -> Self {
        Problem { num_seqs: (elements / seq_len).max(1), seq_len, threads }
    }

    pub fn elements(&self) -> usize {
        self.num_seqs * self.seq_len
    }

    /// Returns the throughput in GB/s; each array counts once.
    pub fn gb_per_s(&self, pass: Pass, seconds: f64) -> f64 {
        bytes(pass, self.elements(), size_of::<f32>()) as f64 / seconds * 1e-9
    }
}

/// Arrays that are long enough for the largest problem. They are written once, so that no run
/// touches a page for the first time.
pub struct Buffers {
    pub pass: Pass,
    /// The inputs (or the gradients of the outputs), the coefficients, and for the backward pass
    /// the outputs.
    pub given: Vec<Vec<f32>>,
    /// The outputs, or the gradients of inputs and coefficients.
    pub results: Vec<Vec<f32>>,
}

impl Buffers {
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub fn new(pass: Pass, elements: usize) -> lesson::Result<Self> {
        let mut rng = StdRng::seed_from_u64(0);
        let (given, results) = match pass {
            Pass::Forward => (2, 1),
            Pass::Backward => (3, 2),
        };
        // Coefficients in [0.5, 1) keep all states away from zero and from overflow. A few thousand
        // random numbers, repeated, are as good as millions.
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
