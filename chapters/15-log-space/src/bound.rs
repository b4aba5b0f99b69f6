//! Error bounds for log space, derived from the logarithms that it adds.
//!
//! An error in a logarithm is a *relative* error of the number, and the error in a sum of
//! logarithms is as large as the sum times `u`. At position `l` of a segment, let
//!
//! - `A` be the way that the coefficients' logarithms have gone, `Σ |ln c|` since the segment's
//!   start,
//! - `X` the largest `|ln |x_k||` of the terms so far, including the carry,
//! - `T = X + A + ln(l + 2)`, which no `|ln|` of a partial sum exceeds,
//! - `D` the number of additions on the way into a prefix sum (the depth of the tree, or `l + 1` in
//!   order),
//! - `ŷ` the recurrence on absolute values.
//!
//! Then the steps of [`two_sums`](crate::two_sums) round as follows, in units of `u` and relative
//! to `ŷ`:
//!
//! ```text
//! 2 (D + 2) A      the logarithms ln c (one unit in the last place, that is 2 u) and their sum:
//!                  once where a term is divided by its product, once where all are multiplied
//! 2 X + T          the logarithms ln x, and x divided by the product
//! D (T + 5)        the second sum: each addition rounds its result, an |ln| of at most T, and
//!                  computes e^-d and ln(1 ± e^-d), together less than 5
//! |ln ŷ| + 3       the last addition, and the exponential
//! ```
//!
//! Where terms cancel, the sum `v` is smaller than the sum `V` of their sizes, and rounding its
//! logarithm has an error `|v| |ln |v||` of at most `V (|ln V| + 1/e)`: hence the 5 and the 3.
//!
//! From segment to segment the state carries its error as in the recurrence itself. The first
//! coefficient of a segment is multiplied in log space, which rounds `2 |ln c| + |ln(carry)| + 1`
//! times.

use linrec::contract::ErrorBound;
use linrec::reference::{self, Rounding};
use linrec::{Element, Error, Gradients, Options, Outputs, validate};
use ndarray::{Array1, Array2, ArrayView2};

use crate::engine::coeff_logs;
use crate::{LogSpace, Order, Real, SignedLog, segments};

/// Returns the largest error of a segment's results in units of `u`, relative to the recurrence on
/// absolute values: the formula of this module.
pub fn roundings(order: Order, terms: usize, way: f64, largest_log: f64, log_y_hat: f64) -> f64 {
    let levels = order.levels(terms) as f64;
    let partial = largest_log + way + (terms as f64).ln();
    let products = 2.0 * (levels + 2.0) * way;
    products + 2.0 * largest_log + partial + levels * (partial + 5.0) + log_y_hat.abs() + 3.0
}

// ANCHOR: along
/// The bounds of all outputs of one sequence. `inputs` are the sizes `|x|`, `sizes` the sizes
/// `|c|`, and `coeffs` their logarithms in the engine's form.
pub fn along<T: Real>(
    engine: &LogSpace,
    inputs: &[f64],
    (sizes, coeffs): (&[f64], &[SignedLog<T>]),
    initial: f64,
) -> Vec<f64> {
    let u = T::UNIT_ROUNDOFF;
    // e^(n u) - 1: n roundings of a logarithm, or of a number.
    let relative = |roundings: f64| (u * roundings).exp_m1();
    let mut bounds = Vec::with_capacity(inputs.len());
    let (mut y_hat, mut error) = (initial, scaled(relative(2.0 * log_size(initial)), initial));
    for segment in segments(coeffs, engine.reach()) {
        let first = sizes[segment.start];
        let multiplied = 2.0 * log_size(first) + log_size(first * y_hat) + 1.0;
        y_hat *= first;
        let carried = scaled(first, error) + scaled(relative(multiplied), y_hat);
        let (mut way, mut product, mut largest_log) = (0.0, 1.0, log_size(y_hat));
        for (terms, l) in (2..).zip(segment.clone()) {
            if l > segment.start {
                way += log_size(sizes[l]);
                product *= sizes[l];
                y_hat *= sizes[l];
            }
            y_hat += inputs[l];
            largest_log = largest_log.max(log_size(inputs[l]));
            let here =
                relative(roundings(engine.order(), terms, way, largest_log, log_size(y_hat)));
            error = scaled(scaled(product, carried), 1.0 + here) + scaled(here, y_hat);
            bounds.push(error + T::SMALLEST_SUBNORMAL);
        }
    }
    bounds
}
// ANCHOR_END: along

/// Returns `|ln v|`; a term that is zero adds nothing and is not rounded.
fn log_size(v: f64) -> f64 {
    if v == 0.0 { 0.0 } else { v.ln().abs() }
}

/// Multiplies, with zero times infinity as zero: an unbounded error of nothing is nothing.
fn scaled(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// Bounds the errors of the forward pass against [`reference::forward`], result by result. The
/// bound includes the reference's own rounding in double precision.
///
/// # Errors
///
/// Returns an error if the shapes do not match.
pub fn forward<T: Real>(
    engine: &LogSpace,
    inputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    options: &Options<T>,
) -> Result<Outputs<f64>, Error> {
    let (num_seqs, seq_len) = validate::forward(&inputs, &coeffs, options)?;
    let of_reference = widened_bound(inputs, coeffs, options)?;
    let mut outputs = Array2::zeros((num_seqs, seq_len));
    let mut final_state = Array1::zeros(num_seqs);
    for i in 0..num_seqs {
        let place = |step: usize| [i, options.direction.position(step, seq_len)];
        let x: Vec<f64> = (0..seq_len).map(|step| inputs[place(step)].modulus()).collect();
        let c: Array1<T> = (0..seq_len).map(|step| coeffs[place(step)]).collect();
        let sizes: Vec<f64> = c.iter().map(|&c| size(c, options)).collect();
        let initial = options.initial.as_ref().map_or(0.0, |initial| initial[i].modulus());
        let bounds = along(engine, &x, (&sizes, &coeff_logs(c.view(), options)), initial);
        for (step, bound) in bounds.into_iter().enumerate() {
            outputs[place(step)] = bound + of_reference.outputs[place(step)];
            final_state[i] = outputs[place(step)];
        }
    }
    Ok(Outputs { outputs, final_state })
}

/// Bounds the errors of the backward pass against [`reference::backward`], for the same outputs.
///
/// # Errors
///
/// Returns an error if the shapes do not match.
pub fn backward<T: Real>(
    engine: &LogSpace,
    d_outputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    outputs: ArrayView2<T>,
    options: &Options<T>,
) -> Result<Gradients<f64>, Error> {
    let (num_seqs, seq_len) = validate::backward(&d_outputs, &coeffs, &outputs, options)?;
    let exact = reference::backward(d_outputs, coeffs, outputs, options)?;
    let zero = if options.log_coeffs { T::neg_infinity() } else { T::zero() };
    let fill = Array1::from_elem(num_seqs, zero);
    let back = options.direction.reversed();
    let next = ch04_gradient::shift::shift(coeffs, back, fill.view())?;
    let walk = Options { direction: back, initial: None, log_coeffs: options.log_coeffs };
    let d_inputs = forward(engine, d_outputs, next.view(), &walk)?.outputs;

    let (u, tiny) = (T::UNIT_ROUNDOFF + f64::UNIT_ROUNDOFF, T::SMALLEST_SUBNORMAL);
    // A coefficient from a logarithm has an exponential's error, one unit in the last place.
    let of_coeff = if options.log_coeffs { 2.0 * u } else { 0.0 };
    let mut d_coeffs = Array2::zeros((num_seqs, seq_len));
    let mut d_initial = Array1::zeros(num_seqs);
    for i in 0..num_seqs {
        for step in 0..seq_len {
            let here = [i, options.direction.position(step, seq_len)];
            let previous = match step {
                0 => options.initial.as_ref().map_or(0.0, |initial| initial[i].modulus()),
                _ => outputs[[i, options.direction.position(step - 1, seq_len)]].modulus(),
            };
            let error = d_inputs[here];
            let delta = exact.d_inputs[here].abs() + error;
            let coeff = size(coeffs[here], options);
            let d_coeff = previous * error + u * previous * delta + tiny;
            d_coeffs[here] = match options.log_coeffs {
                false => d_coeff,
                true => coeff * d_coeff + (u + of_coeff) * coeff * previous * delta + tiny,
            };
            if step == 0 {
                d_initial[i] = coeff * error + (u + of_coeff) * coeff * delta + tiny;
            }
        }
    }
    Ok(Gradients { d_inputs, d_coeffs, d_initial })
}

/// Returns `|c|` of a coefficient as it was given.
fn size<T: Real>(coeff: T, options: &Options<T>) -> f64 {
    if options.log_coeffs { coeff.widen().exp() } else { coeff.modulus() }
}

/// Bounds the rounding of the reference itself: the library's bound for a loop in `f64`.
fn widened_bound<T: Real>(
    inputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    options: &Options<T>,
) -> Result<Outputs<f64>, Error> {
    let wide = Options {
        direction: options.direction,
        initial: options.initial.as_ref().map(|initial| initial.mapv(T::widen).into()),
        log_coeffs: options.log_coeffs,
    };
    let (inputs, coeffs) = (inputs.mapv(T::widen), coeffs.mapv(T::widen));
    let rounding = Rounding { levels: 0, exp_ulps: 1.0 };
    reference::forward_bound(inputs.view(), coeffs.view(), &wide, rounding)
}

impl<T: Real> ErrorBound<T> for LogSpace {
    fn forward_bound(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<f64>, Error> {
        forward(self, inputs, coeffs, options)
    }

    fn backward_bound(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<f64>, Error> {
        backward(self, d_outputs, coeffs, outputs, options)
    }
}
