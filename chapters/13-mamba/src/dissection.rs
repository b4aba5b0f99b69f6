//! The selective scan of the blog post, step by step on whole arrays: the shortest form, and the
//! first one to read.

use linrec::{Error, Options};
use ndarray::{Array1, Array2, Array3, Array4, Axis};

use crate::Real;
use crate::arguments::Arguments;

/// Scans one channel, the core of everything: `u` and `delta` `[len]`, `a` `[states]`, `write` (B)
/// and `read` (C) `[states, len]`.
///
/// # Errors
///
/// Returns an error if the engine fails.
// ANCHOR: one_channel
pub fn one_channel<T: Real>(
    [u, delta]: [&Array1<T>; 2],
    a: &Array1<T>,
    [write, read]: [&Array2<T>; 2],
) -> Result<Array1<T>, Error> {
    // The sequence decides the coefficients and the inputs …
    let coeffs = (a.to_owned().insert_axis(Axis(1)) * delta).mapv_into(T::exp);
    let inputs = write * &(delta * u);
    let states = linrec::forward(inputs.view(), coeffs.view(), &Options::default())?.outputs;
    // … and what is read from the states.
    Ok((read * &states).sum_axis(Axis(0)))
}
// ANCHOR_END: one_channel

/// Computes the inputs and coefficients of the recurrence, with one sequence for each state of each
/// channel: `x = (Δ u) B` and `c = e^(Δ A)`, both `[batch, channels, states, len]`.
///
/// # Errors
///
/// Returns an error if the shapes do not fit together.
// ANCHOR: expand
pub fn expand<T: Real>(arguments: &Arguments<T>) -> Result<[Array4<T>; 2], Error> {
    let sizes = arguments.sizes()?;
    let (Arguments { u, delta, a, b, .. }, group) = (arguments, sizes.group_size());
    let shape = (sizes.batch, sizes.channels, sizes.states, sizes.len);
    let inputs = Array4::from_shape_fn(shape, |(i, j, n, l)| {
        delta[[i, j, l]] * u[[i, j, l]] * b.at([i, j, n, l], group)
    });
    let coeffs = Array4::from_shape_fn(shape, |(i, j, n, l)| (delta[[i, j, l]] * a[[j, n]]).exp());
    Ok([inputs, coeffs])
}
// ANCHOR_END: expand

/// Computes `y = Σ_n C h`: one sequence for each channel again, `[batch, channels, len]`.
///
/// # Errors
///
/// Returns an error if the shapes do not fit together.
// ANCHOR: contract
pub fn contract<T: Real>(arguments: &Arguments<T>, states: &Array4<T>) -> Result<Array3<T>, Error> {
    let (batch, channels, num_states, len) = states.dim();
    let group = arguments.sizes()?.group_size();
    Ok(Array3::from_shape_fn((batch, channels, len), |(i, j, l)| {
        let term = |n| arguments.c.at([i, j, n, l], group) * states[[i, j, n, l]];
        (0..num_states).fold(T::zero(), |sum, n| sum + term(n))
    }))
}
// ANCHOR_END: contract

/// Computes the whole scan. `D`, `z`, the bias, softplus and an initial state are left to
/// [`selective_scan`](crate::selective_scan).
///
/// # Errors
///
/// Returns an error if the shapes do not fit together.
// ANCHOR: scan
pub fn scan<T: Real>(arguments: &Arguments<T>) -> Result<Array3<T>, Error> {
    let [inputs, coeffs] = expand(arguments)?;
    let (batch, channels, states, len) = inputs.dim();
    // The recurrence does not care to which state of which channel a row belongs.
    let rows = |array: Array4<T>| -> Array2<T> {
        array.into_shape_with_order((batch * channels * states, len)).unwrap_or_default()
    };
    let (x, c) = (rows(inputs), rows(coeffs));
    let h = linrec::forward(x.view(), c.view(), &Options::default())?.outputs;
    let h = h.into_shape_with_order((batch, channels, states, len)).unwrap_or_default();
    contract(arguments, &h)
}
// ANCHOR_END: scan
