//! Other ways to compute the scan, for timing: plain loops, whole arrays, and one fused loop.
//!
//! All of them take one sequence with one group, without `D`, `z`, bias and softplus, in `f32`.
//! They distribute the channels over the threads of the current rayon pool.

use linrec::cpu::Cpu;
use linrec::{Engine, Error, Options};
use ndarray::Array2;
use pulp::Arch;
use rayon::prelude::*;

use crate::channel::{self, Channel, slice};
use crate::golden::Given;
use crate::{Sizes, State};

/// A problem as plain slices, row after row.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    u: &'a [f32],
    delta: &'a [f32],
    a: &'a [f32],
    b: &'a [f32],
    c: &'a [f32],
    states: usize,
    len: usize,
}

impl<'a> Problem<'a> {
    /// Borrows a problem with one sequence and one group, in standard layout.
    ///
    /// # Errors
    ///
    /// Returns an error if the problem has another form, if its shapes do not fit together, or if
    /// it is empty.
    pub fn of(given: &'a Given<f32>) -> Result<Self, Error> {
        let sizes = given.arguments().sizes()?;
        let slices = (
            given.u.as_slice(),
            given.delta.as_slice(),
            given.a.as_slice(),
            given.b.as_slice(),
            given.c.as_slice(),
        );
        match (sizes, slices) {
            (
                Sizes { batch: 1, groups: 1, states: 1.., len: 1.., .. },
                (Some(u), Some(delta), Some(a), Some(b), Some(c)),
            ) if !given.b.is_fixed() && !given.c.is_fixed() => {
                Ok(Problem { u, delta, a, b, c, states: sizes.states, len: sizes.len })
            }
            _ => Err(Error::Unsupported {
                engine: "a timed scan".to_owned(),
                what: format!("{sizes:?}, or these strides"),
            }),
        }
    }

    /// Returns the rows of `y`, one for each channel.
    fn rows<'y>(&self, y: &'y mut [f32]) -> impl IndexedParallelIterator<Item = &'y mut [f32]> {
        y.par_chunks_exact_mut(self.len).take(self.u.len() / self.len)
    }

    fn channel(&self, number: usize) -> Channel<'a, f32> {
        let row = number * self.len..(number + 1) * self.len;
        let of_states = number * self.states..(number + 1) * self.states;
        let &Problem { u, delta, a, b, c, .. } = self;
        Channel { u: &u[row.clone()], delta: &delta[row], a: &a[of_states], b, c, initial: None }
    }
}

/// Computes the scan by plain loops over channels, states and time; `y` is `[channels, len]`.
// ANCHOR: plain
pub fn plain(problem: &Problem, y: &mut [f32]) {
    problem.rows(y).enumerate().for_each(|(number, y)| {
        let Channel { u, delta, a, b, c, .. } = problem.channel(number);
        y.fill(0.0);
        for (n, a) in a.iter().enumerate() {
            let row = n * problem.len;
            let mut state = 0.0;
            for l in 0..y.len() {
                state = state * (delta[l] * a).exp() + delta[l] * u[l] * b[row + l];
                y[l] += c[row + l] * state;
            }
        }
    });
}
// ANCHOR_END: plain

/// Whole arrays in memory, as in the post; they are reused from one run to the next.
#[derive(Debug)]
pub struct Unfused {
    /// `x`, `[channels · states, len]`.
    pub inputs: Array2<f32>,
    /// `c`, of the same shape.
    pub coeffs: Array2<f32>,
    /// `h`, of the same shape.
    pub outputs: Array2<f32>,
}

impl Unfused {
    /// Allocates the arrays of a problem and writes them once.
    pub fn new(problem: &Problem) -> Self {
        let shape = (problem.a.len(), problem.len);
        let filled = || Array2::from_elem(shape, 0.5);
        Unfused { inputs: filled(), coeffs: filled(), outputs: filled() }
    }

    /// Computes the scan in three passes: expand, recurrence, contract.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine fails.
    pub fn scan(&mut self, cpu: &Cpu, problem: &Problem, y: &mut [f32]) -> Result<(), Error> {
        self.expand(problem);
        self.recurrence(cpu)?;
        self.contract(problem, y);
        Ok(())
    }

    /// Writes the inputs and coefficients.
    pub fn expand(&mut self, problem: &Problem) {
        let size = problem.states * problem.len;
        let rows = slice(&mut self.inputs).par_chunks_exact_mut(size);
        let rows = rows.zip(slice(&mut self.coeffs).par_chunks_exact_mut(size));
        rows.enumerate().for_each_init(
            || vec![0.0; problem.len],
            |scaled, (number, (inputs, coeffs))| {
                channel::expand(&problem.channel(number), inputs, coeffs, scaled);
            },
        );
    }

    /// Reads the inputs and coefficients and writes the states.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine fails.
    pub fn recurrence(&mut self, cpu: &Cpu) -> Result<(), Error> {
        let (x, c) = (self.inputs.view(), self.coeffs.view());
        cpu.forward_into(x, c, &Options::default(), self.outputs.view_mut())?;
        Ok(())
    }

    /// Reads the states and writes `y`.
    pub fn contract(&self, problem: &Problem, y: &mut [f32]) {
        let size = problem.states * problem.len;
        let states = self.outputs.as_slice().unwrap_or_default().par_chunks_exact(size);
        problem.rows(y).zip(states).for_each(|(y, states)| channel::contract(problem.c, states, y));
    }

    /// Returns the number of bytes that these three passes move. Each array counts once for each
    /// time it is read or written: six times a large array, plus `u`, `Δ` and `y`.
    pub fn bytes(problem: &Problem) -> f64 {
        let (large, small) = (problem.a.len() * problem.len, problem.u.len());
        ((6 * large + 3 * small) * size_of::<f32>()) as f64
    }
}

/// Computes the scan in one loop over time, with the 16 states of a channel in registers: no array
/// with the states' dimension reaches memory. Every step reads `b` and `c` of all states, so they
/// are `[len, 16]`.
// ANCHOR: fused
pub fn fused(problem: &Problem, by_time: [&[[f32; 16]]; 2], y: &mut [f32]) {
    problem.rows(y).enumerate().for_each(|(number, y)| {
        let Channel { u, delta, a, .. } = problem.channel(number);
        let Ok(a): Result<[f32; 16], _> = a.try_into() else { return };
        Arch::new().dispatch(
            #[inline(always)]
            move || {
                let y = y;
                let mut states = [0.0; 16];
                let steps = delta.iter().zip(u).zip(by_time[0].iter().zip(by_time[1]));
                for (y, ((&delta, &u), (b, c))) in y.iter_mut().zip(steps) {
                    let mut products = [0.0; 16];
                    for n in 0..16 {
                        states[n] = states[n] * (delta * a[n]).exponential() + delta * u * b[n];
                        products[n] = c[n] * states[n];
                    }
                    // Summed in pairs: from left to right it would be a chain of 16 additions.
                    for half in [8, 4, 2, 1] {
                        for n in 0..half {
                            products[n] += products[n + half];
                        }
                    }
                    *y = products[0];
                }
            },
        );
    });
}
// ANCHOR_END: fused

/// Transposes `[16, len]` to `[len, 16]`.
pub fn by_time(rows: &[f32], len: usize) -> Vec<[f32; 16]> {
    (0..len).map(|l| std::array::from_fn(|n| rows[n * len + l])).collect()
}
