//! minGRU: a recurrent network whose gates do not look at the state (Feng et al. 2024).
//!
//! With a gate `z = σ(k)` and a candidate `g(h̃)`, `h_l = (1 − z_l) h_{l-1} + z_l g(h̃_l)`. Both
//! `1 − z` and `z` come from `k` as logarithms, so log space takes no `ln` of a coefficient, and no
//! coefficient is zero.

use linrec::{Engine, Error, Options, validate};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Zip};
use num_traits::Float;

use crate::{LogSpace, Real, SignedLog, bound};

// ANCHOR: logs
/// `ln (1 + e^k)`.
pub fn softplus<T: Real>(k: T) -> T {
    Float::max(k, T::zero()) + Float::ln_1p(Float::exp(-Float::abs(k)))
}

/// `ln g(h̃)`, with `g(h̃) = h̃ + 1/2` from zero on and `σ(h̃)` below: always positive.
pub fn log_g<T: Real>(h_tilde: T) -> T {
    if h_tilde >= T::zero() { Float::ln(h_tilde + T::from_real(0.5)) } else { -softplus(-h_tilde) }
}

/// `ln (1 − z)`, the coefficient, and `ln (z g)`, the input.
fn logs<T: Real>(k: T, h_tilde: T) -> (T, T) {
    (-softplus(k), -softplus(-k) + log_g(h_tilde))
}
// ANCHOR_END: logs

// ANCHOR: forward
/// Computes the states `h`. `k` and `h_tilde` are `[num_seqs, seq_len]`, with one row for each
/// unit, and `h0` is `[num_seqs]`.
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] if the shapes do not fit.
pub fn forward<T: Real>(
    engine: &LogSpace,
    k: ArrayView2<T>,
    h_tilde: ArrayView2<T>,
    h0: ArrayView1<T>,
) -> Result<Array2<T>, Error> {
    let shape = check(&[("k", k), ("h_tilde", h_tilde)], h0)?;
    let mut h = validate::allocate("min_gru", shape)?;
    for (i, mut h) in h.rows_mut().into_iter().enumerate() {
        let logs = k.row(i).into_iter().zip(h_tilde.row(i)).map(|(&k, &h)| logs(k, h));
        let (c, x): (Vec<_>, Vec<_>) =
            logs.map(|(c, x)| (SignedLog::positive(c), SignedLog::positive(x))).unzip();
        let states = engine.sequence(&x, &c, SignedLog::of(h0[i]));
        h.iter_mut().zip(states).for_each(|(h, state)| *h = state.value());
    }
    Ok(h)
}
// ANCHOR_END: forward

/// The gradients of a loss, from its gradient with respect to the states.
#[derive(Debug, Clone, PartialEq)]
pub struct MinGruGradients<T> {
    /// The gradient with respect to `k`, `[num_seqs, seq_len]`.
    pub d_k: Array2<T>,
    /// The gradient with respect to `h_tilde`, `[num_seqs, seq_len]`.
    pub d_h_tilde: Array2<T>,
    /// The gradient with respect to `h0`, `[num_seqs]`.
    pub d_h0: Array1<T>,
}

// ANCHOR: backward
/// Computes the gradients from the states `h` of the forward pass.
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] if the arrays do not fit.
pub fn backward<T: Real>(
    engine: &LogSpace,
    d_h: ArrayView2<T>,
    (k, h_tilde, h0): (ArrayView2<T>, ArrayView2<T>, ArrayView1<T>),
    h: ArrayView2<T>,
) -> Result<MinGruGradients<T>, Error> {
    check(&[("d_h", d_h), ("k", k), ("h_tilde", h_tilde), ("h", h)], h0)?;
    let log_coeffs = k.mapv(|k| -softplus(k));
    let options =
        Options { initial: Some(h0.to_owned().into()), log_coeffs: true, ..Options::default() };
    let through = engine.backward(d_h, log_coeffs.view(), h, &options)?;

    let (mut d_k, mut d_h_tilde) = (through.d_coeffs, through.d_inputs);
    Zip::from(&mut d_k).and(&mut d_h_tilde).and(k).and(h_tilde).for_each(|dk, dh, &k, &h_tilde| {
        let (log_keep, log_x) = logs(k, h_tilde);
        let (keep, z, x) = (Float::exp(log_keep), sigmoid(k), Float::exp(log_x));
        // k enters ln (1 - z) with slope -z, and the input x = z g with slope x (1 - z).
        *dk = *dh * x * keep - *dk * z;
        *dh = *dh * z * slope_of_g(h_tilde);
    });
    Ok(MinGruGradients { d_k, d_h_tilde, d_h0: through.d_initial })
}
// ANCHOR_END: backward

fn sigmoid<T: Real>(k: T) -> T {
    Float::exp(-softplus(-k))
}

fn slope_of_g<T: Real>(h_tilde: T) -> T {
    if h_tilde >= T::zero() { T::one() } else { sigmoid(h_tilde) * sigmoid(-h_tilde) }
}

fn check<T: Real>(
    arrays: &[(&'static str, ArrayView2<T>)],
    h0: ArrayView1<T>,
) -> Result<(usize, usize), Error> {
    let (first, first_array) = arrays[0];
    for (name, array) in arrays {
        validate::same_shape("min_gru", (first, first_array.shape()), (name, array.shape()))?;
    }
    let (num_seqs, seq_len) = first_array.dim();
    validate::same_shape("min_gru", ("rows", &[num_seqs]), ("h0", h0.shape()))?;
    Ok((num_seqs, seq_len))
}

/// Bounds the errors of [`forward`], relative to the states, which are all positive here.
///
/// This is the bound of log space over one segment (an engine without a reach), for logarithms less
/// exact than a single `ln`: a softplus has a relative error of at most 5 `u` (two units in the
/// last place for each of two functions, and an addition), and `ln x` is the sum of two such
/// logarithms.
pub fn relative_bound<T: Real>(
    engine: &LogSpace,
    k: ArrayView1<T>,
    h_tilde: ArrayView1<T>,
    h0: T,
) -> Vec<f64> {
    let (mut way, mut h, mut largest_log) = (0.0, h0.modulus(), h0.modulus().ln().abs());
    let mut bounds = Vec::with_capacity(k.len());
    for (terms, (k, h_tilde)) in (2..).zip(k.into_iter().zip(h_tilde)) {
        let (k, h_tilde) = (k.widen(), h_tilde.widen());
        let (log_keep, log_x) = logs(k, h_tilde);
        way += log_keep.abs();
        largest_log = largest_log.max(softplus(-k) + log_g(h_tilde).abs());
        h = h * log_keep.exp() + log_x.exp();
        let own = bound::roundings(engine.order(), terms, way, largest_log, h.ln().abs());
        let of_logs = 2.0 * 5.0 * way + 7.0 * largest_log + 2.0;
        bounds.push(((own + of_logs) * T::UNIT_ROUNDOFF).exp_m1());
    }
    bounds
}
