//! The precision atlas: the error of each method over length and coefficients.
//!
//! A map has a row for each rate, the mean of `ln |c|`, from strong growth to strong decay, and a
//! column for each length. A cell holds the largest error of all outputs up to that length,
//! relative to `ŷ`, the recurrence on absolute values: it counts digits even where terms cancel.
//! The tests in `tests/suite.rs` check cells whose answer is known.

#[cfg(feature = "story")]
mod figure;

#[cfg(feature = "story")]
pub use figure::{Legend, draw};

use ch01_sequential_loop::{linrec, linrec_into};
use ch02_two_threads::{Part, Transition, TwoThreads, tree, two_threads};
use half::{bf16, f16};
use linrec::Options;
use linrec::contract::Domain;
use linrec::reference::{self, Rounding};
use ndarray::{Array1, Array2, ArrayView1};
use num_traits::Float;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

use crate::stored::{self, Narrow, array_by_array};
use crate::{LogSpace, Real, SignedLog, bound, linrec_to_the_last_bit};

/// A result whose error says as a sentence why a map was not computed.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The rates and lengths of a map, and the number of sequences for each rate.
#[derive(Debug, Clone)]
pub struct Grid {
    /// The means of `ln |c|`; each logarithm is drawn from 0 to twice the mean.
    pub rates: Vec<f64>,
    /// The lengths, ascending.
    pub lengths: Vec<usize>,
    /// The number of sequences for each rate.
    pub sequences: usize,
}

impl Grid {
    /// Makes a grid with rates from +10 to −10, down to 0.001 in size, three for each factor of
    /// ten, and lengths 16, 32 … up to `longest`.
    pub fn new(longest: usize, sequences: usize) -> Self {
        let sizes = (0..13).map(|i| 10_f64.powf(1.0 - f64::from(i) / 3.0));
        let growing: Vec<f64> = sizes.collect();
        let decaying = growing.iter().rev().map(|rate| -rate);
        Grid {
            rates: growing.iter().copied().chain(decaying).collect(),
            lengths: std::iter::successors(Some(16), |l| Some(2 * l))
                .take_while(|&l| l <= longest)
                .collect(),
            sequences,
        }
    }

    fn longest(&self) -> usize {
        self.lengths.last().copied().unwrap_or(0)
    }
}

/// A map of the atlas, `[rates, lengths]`.
#[derive(Debug, Clone)]
pub struct Map {
    /// The method and the element type.
    pub title: String,
    /// The largest relative error. Infinite where a result that the type could hold is missing; NaN
    /// where the outputs themselves leave the type's range.
    pub errors: Array2<f64>,
    /// The derived bound on each error.
    pub bounds: Array2<f64>,
}

/// A way to compute the recurrence from the state zero.
#[derive(Debug, Clone)]
pub enum Method {
    /// The loop of chapter 1.
    Loop,
    /// The two threads of chapter 2.
    TwoThreads,
    /// The tree of chapter 2, over single elements.
    Tree,
    /// The prefix sums of logarithms.
    LogSpace(LogSpace),
}

/// One sequence of a map, in `f64`, after rounding to the map's element type.
struct Problem {
    inputs: Vec<f64>,
    coeffs: Vec<f64>,
    exact: Vec<f64>,
    y_hat: Vec<f64>,
}

impl Problem {
    /// Draws inputs from −1 to 1, and coefficients of either sign.
    fn signed(grid: &Grid, rate: f64, sequence: usize, round: impl Fn(f64) -> f64) -> Self {
        let mut rng = generator(rate, sequence);
        let (mut inputs, mut coeffs) = (Vec::new(), Vec::new());
        for _ in 0..grid.longest() {
            inputs.push(round(rng.random_range(-1.0..1.0)));
            let size = (rate * rng.random_range(0.0..2.0)).exp();
            coeffs.push(round(if rng.random() { size } else { -size }));
        }
        Self::new(inputs, coeffs)
    }

    fn new(inputs: Vec<f64>, coeffs: Vec<f64>) -> Self {
        let size = |values: &[f64]| values.iter().map(|v| v.abs()).collect::<Vec<_>>();
        let y_hat = linrec(&size(&inputs), &size(&coeffs), 0.0);
        Problem { exact: linrec_to_the_last_bit(&inputs, &coeffs), inputs, coeffs, y_hat }
    }
}

fn generator(rate: f64, sequence: usize) -> StdRng {
    StdRng::seed_from_u64(rate.to_bits().wrapping_add(sequence as u64))
}

/// Computes the map of a method for `f32` or `f64`.
///
/// # Errors
///
/// Returns an error if a thread cannot be started.
pub fn map<T: Real>(grid: &Grid, method: &Method, title: &str) -> Result<Map> {
    over_rates(grid, title, |rate, sequence| {
        let problem = Problem::signed(grid, rate, sequence, |v| T::from_real(v).widen());
        let narrow = |values: &[f64]| values.iter().map(|&v| T::from_real(v)).collect::<Vec<T>>();
        let (x, c) = (narrow(&problem.inputs), narrow(&problem.coeffs));
        let bounds = method.bounds::<T>(&x, &c, &problem)?;
        let largest = <T as Float>::max_value().modulus();
        method.cells(grid, &problem, largest, &bounds, |len| {
            method.outputs::<T>(&x[..len], &c[..len])
        })
    })
}

/// Computes the map of a method whose arrays are stored in 16 bits. Coefficients are positive and
/// given as logarithms.
///
/// Log space also stores each of its intermediate arrays in 16 bits ([`array_by_array`]); the other
/// methods compute in `f32` between reading and writing.
///
/// # Errors
///
/// Returns an error if a thread cannot be started.
pub fn stored_map<S: Float>(
    grid: &Grid,
    method: &Method,
    narrow: Narrow,
    title: &str,
) -> Result<Map> {
    over_rates(grid, title, |rate, sequence| {
        let mut rng = generator(rate, sequence);
        let mut draw =
            |low: f64, high: f64| stored::narrow::<S>(rng.random_range(low..high) as f32);
        let (mut x, mut logs) = (Vec::new(), Vec::new());
        for _ in 0..grid.longest() {
            x.push(draw(-1.0, 1.0));
            logs.push(draw((2.0 * rate).min(0.0), (2.0 * rate).max(0.0)));
        }
        let wide = |values: &[S]| {
            values.iter().map(|&v| f64::from(stored::widen(v))).collect::<Vec<f64>>()
        };
        let problem = Problem::new(wide(&x), wide(&logs).iter().map(|log| log.exp()).collect());
        if let Method::LogSpace(_) = method {
            let bounds = log_space_bounds(&problem, &wide(&logs), narrow);
            let run = |len: usize| Ok(wide(&array_by_array(&x[..len], &logs[..len])));
            return method.cells(grid, &problem, narrow.largest, &bounds, run);
        }
        let computed =
            |values: &[S]| values.iter().map(|&v| stored::widen(v)).collect::<Vec<f32>>();
        let (inputs, logs) = (computed(&x), computed(&logs));
        let c: Vec<f32> = logs.iter().map(|log| log.exp()).collect();
        let store = |y: f64| f64::from(stored::widen(stored::narrow::<S>(y as f32)));
        let bounds = method.bounds_of_logs(&inputs, &logs, &problem)?;
        // Storing rounds the output once more: to nearest, or by half of the smallest number.
        let stored = |(l, bound): (usize, f64)| {
            bound + narrow.unit_roundoff * (1.0 + bound) + narrow.smallest / 2.0 / problem.y_hat[l]
        };
        let bounds: Vec<f64> = bounds.into_iter().enumerate().map(stored).collect();
        method.cells(grid, &problem, narrow.largest, &bounds, |len| {
            let y = method.outputs::<f32>(&inputs[..len], &c[..len])?;
            Ok(y.into_iter().map(store).collect())
        })
    })
}

/// Returns the bounds of [`array_by_array`], relative to `ŷ`.
fn log_space_bounds(problem: &Problem, logs: &[f64], narrow: Narrow) -> Vec<f64> {
    let (mut way, mut largest_log) = (0.0, 0.0_f64);
    let along = |(l, log): (usize, &f64)| {
        way += log.abs();
        largest_log = largest_log.max(log_size(problem.inputs[l]));
        let log_y = log_size(problem.y_hat[l]);
        stored::relative_bound(narrow, l + 2, way, largest_log, log_y)
    };
    logs.iter().enumerate().map(along).collect()
}

/// Computes the maps of a method in bfloat16 and in float16.
///
/// # Errors
///
/// Returns the same errors as [`stored_map`].
pub fn sixteen_bits(grid: &Grid, method: &Method, name: &str) -> Result<[Map; 2]> {
    Ok([
        stored_map::<bf16>(grid, method, stored::BF16, &format!("{name}, bfloat16"))?,
        stored_map::<f16>(grid, method, stored::F16, &format!("{name}, float16"))?,
    ])
}

/// Runs `cells`, which returns the error and the bound for every length, for all rates and
/// sequences, and collects the largest.
fn over_rates(
    grid: &Grid,
    title: &str,
    cells: impl Fn(f64, usize) -> Result<Vec<(f64, f64)>> + Sync,
) -> Result<Map> {
    let shape = (grid.rates.len(), grid.lengths.len());
    let mut map =
        Map { title: title.to_owned(), errors: Array2::zeros(shape), bounds: Array2::zeros(shape) };
    let row = |&rate: &f64| (0..grid.sequences).map(|sequence| cells(rate, sequence)).collect();
    let rows: Vec<Result<Vec<_>>> = grid.rates.par_iter().map(row).collect();
    for (i, sequences) in rows.into_iter().enumerate() {
        for sequence in sequences? {
            for (j, (error, bound)) in sequence.into_iter().enumerate() {
                map.errors[[i, j]] = worse(map.errors[[i, j]], error);
                map.bounds[[i, j]] = worse(map.bounds[[i, j]], bound);
            }
        }
    }
    Ok(map)
}

impl Method {
    /// Returns error and bound for every length. `run` computes the given number of elements.
    fn cells(
        &self,
        grid: &Grid,
        problem: &Problem,
        largest: f64,
        bounds: &[f64],
        run: impl Fn(usize) -> Result<Vec<f64>>,
    ) -> Result<Vec<(f64, f64)>> {
        // The result of two threads depends on where they split. All other methods look only at
        // earlier elements, so the longest run contains the shorter ones.
        let whole = match self {
            Method::TwoThreads => None,
            _ => Some(run(grid.longest())?),
        };
        let cell = |&len: &usize| {
            let error = match &whole {
                Some(whole) => largest_error(&whole[..len], problem, largest),
                None => largest_error(&run(len)?, problem, largest),
            };
            Ok((error, largest_of(&bounds[..len])))
        };
        grid.lengths.iter().map(cell).collect()
    }

    fn outputs<T: Real>(&self, x: &[T], c: &[T]) -> Result<Vec<f64>> {
        let mut y = Array1::zeros(x.len());
        let (inputs, coeffs) = (ArrayView1::from(x), ArrayView1::from(c));
        match self {
            Method::Loop => _ = linrec_into(inputs, coeffs, T::zero(), y.view_mut()),
            Method::TwoThreads => {
                let sequence = Part::new(inputs, coeffs, y.view_mut())?;
                two_threads(sequence, T::zero(), x.len() / 2)?;
            }
            Method::Tree => {
                let elements = x.iter().zip(c).map(|(&state, &coeff)| Transition { coeff, state });
                let mut elements: Vec<_> = elements.collect();
                tree(&mut elements, Transition::then);
                y = elements.iter().map(|transition| transition.state).collect();
            }
            Method::LogSpace(engine) => {
                let logs =
                    |values: &[T]| values.iter().map(|&v| SignedLog::of(v)).collect::<Vec<_>>();
                let outputs = engine.sequence(&logs(x), &logs(c), SignedLog::of(T::zero()));
                y = outputs.iter().map(|y| y.value()).collect();
            }
        }
        Ok(y.iter().map(|y| y.widen()).collect())
    }

    /// Returns the bound of every output, relative to `ŷ`.
    fn bounds<T: Real>(&self, x: &[T], c: &[T], problem: &Problem) -> Result<Vec<f64>> {
        let bounds = match self {
            Method::LogSpace(engine) => {
                let size = |values: &[f64]| values.iter().map(|v| v.abs()).collect::<Vec<_>>();
                let logs: Vec<_> = c.iter().map(|&c| SignedLog::of(c)).collect();
                let sizes = size(&problem.coeffs);
                bound::along(engine, &size(&problem.inputs), (&sizes, &logs), 0.0)
            }
            _ => self.library_bounds(x, c, false)?,
        };
        Ok(bounds.into_iter().zip(&problem.y_hat).map(|(bound, y_hat)| bound / y_hat).collect())
    }

    /// Returns the bound of every output, relative to `ŷ`, for a method that multiplies and
    /// receives the logarithms of the coefficients.
    fn bounds_of_logs(&self, x: &[f32], logs: &[f32], problem: &Problem) -> Result<Vec<f64>> {
        let bounds = self.library_bounds(x, logs, true)?;
        Ok(bounds.into_iter().zip(&problem.y_hat).map(|(bound, y_hat)| bound / y_hat).collect())
    }

    /// Returns the library's bound, for the levels of this method.
    fn library_bounds<T: Real>(&self, x: &[T], c: &[T], log_coeffs: bool) -> Result<Vec<f64>> {
        let levels = match self {
            Method::TwoThreads => (TwoThreads::domain().levels)(x.len()),
            Method::Tree => Domain::tree_levels(x.len()),
            _ => 0,
        };
        let row = |values: &[T]| Array2::from_shape_vec((1, x.len()), values.to_vec());
        let (x, c) = (row(x)?, row(c)?);
        let options = Options { log_coeffs, ..Options::default() };
        let rounding = Rounding { levels, exp_ulps: 1.0 };
        let bound = reference::forward_bound(x.view(), c.view(), &options, rounding)?;
        Ok(bound.outputs.into_iter().collect())
    }
}

/// Returns the largest error of some outputs relative to `ŷ`; see [`Map::errors`].
fn largest_error(y: &[f64], problem: &Problem, largest: f64) -> f64 {
    let mut worst = 0.0;
    for (l, y) in y.iter().enumerate() {
        let y_hat = problem.y_hat[l];
        if y_hat.is_nan() || y_hat >= largest {
            return f64::NAN;
        }
        let error = (y - problem.exact[l]).abs() / y_hat;
        let missing = !y.is_finite();
        let error = if missing { f64::INFINITY } else { error };
        worst = worse(worst, error);
    }
    worst
}

/// Returns the larger number, or NaN if either is NaN.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

fn largest_of(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, worse)
}

/// Returns `|ln v|`, and 0 for a term that is zero.
fn log_size(v: f64) -> f64 {
    if v == 0.0 { 0.0 } else { v.ln().abs() }
}

impl Map {
    /// Returns the largest error relative to its bound, over all cells whose outputs are in range.
    pub fn largest_share(&self) -> f64 {
        let share = |(error, bound): (&f64, &f64)| match error / bound {
            _ if error.is_nan() => 0.0,
            _ if bound.is_infinite() || *error == 0.0 => 0.0,
            share if share.is_nan() => f64::INFINITY,
            share => share,
        };
        self.errors.iter().zip(&self.bounds).map(share).fold(0.0, f64::max)
    }

    /// Returns the largest error of all cells whose outputs are in range.
    pub fn largest_error(&self) -> f64 {
        self.errors.iter().filter(|error| !error.is_nan()).fold(0.0, |m, &error| m.max(error))
    }
}
