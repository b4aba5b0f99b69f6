//! minGRU: what it does to inputs that are far out, and to shapes that do not fit.

use approx::assert_abs_diff_eq;
use ch15_log_space::LogSpace;
use ch15_log_space::min_gru::{backward, forward, softplus};
use linrec::Error;
use ndarray::{Array1, Array2, array};

#[test]
fn gates_that_are_open_or_closed_for_certain() {
    // σ(±1000) is 0 or 1 in every type; its logarithm is -1000 or 0.
    let (k, h_tilde) = (array![[-1000.0_f32, 1000.0, -1000.0]], array![[5.0_f32, 7.0, 5.0]]);
    let h = forward(&LogSpace::whole(), k.view(), h_tilde.view(), array![3.0_f32].view()).unwrap();
    // Sums of logarithms up to 1000 have errors of some thousand units.
    assert_abs_diff_eq!(h, array![[3.0, 7.5, 7.5]], epsilon = 1e5 * f32::EPSILON);
    assert_eq!(softplus(-1000.0_f64), 0.0);
    assert_eq!(softplus(1000.0_f64), 1000.0);
}

#[test]
fn gradients_are_slopes() {
    let k = array![[0.3_f64, -1.2, 0.8, 2.0, -0.4]];
    let h_tilde = array![[0.7_f64, -0.9, -2.0, 1.1, 0.2]];
    let h0 = array![0.6_f64];
    let engine = LogSpace::restarting(2.0);
    // The loss is the sum of cubes.
    let loss = |k: &Array2<f64>, h_tilde: &Array2<f64>, h0: &Array1<f64>| {
        let h = forward(&engine, k.view(), h_tilde.view(), h0.view()).unwrap();
        h.mapv(|h| h * h * h).sum()
    };
    let h = forward(&engine, k.view(), h_tilde.view(), h0.view()).unwrap();
    let d_h = h.mapv(|h| 3.0 * h * h);
    let given = (k.view(), h_tilde.view(), h0.view());
    let d = backward(&engine, d_h.view(), given, h.view()).unwrap();

    let step = 1e-5;
    // Truncation of some step² and rounding of some 1e-15 / step are both below this.
    let close = |slope: f64, gradient: f64| {
        assert_abs_diff_eq!(slope, gradient, epsilon = 1e-7);
    };
    for l in 0..5 {
        let moved = |array: &Array2<f64>, by: f64| {
            let mut array = array.clone();
            array[[0, l]] += by;
            array
        };
        let up = loss(&moved(&k, step), &h_tilde, &h0);
        let down = loss(&moved(&k, -step), &h_tilde, &h0);
        close((up - down) / (2.0 * step), d.d_k[[0, l]]);
        let up = loss(&k, &moved(&h_tilde, step), &h0);
        let down = loss(&k, &moved(&h_tilde, -step), &h0);
        close((up - down) / (2.0 * step), d.d_h_tilde[[0, l]]);
    }
    let up = loss(&k, &h_tilde, &(&h0 + step));
    let down = loss(&k, &h_tilde, &(&h0 - step));
    close((up - down) / (2.0 * step), d.d_h0[0]);
}

#[test]
fn a_negative_initial_state_keeps_its_sign() {
    let (k, h_tilde) = (array![[0.0_f64, 0.0]], array![[0.5_f64, 0.5]]);
    let h = forward(&LogSpace::whole(), k.view(), h_tilde.view(), array![-4.0].view()).unwrap();
    assert_abs_diff_eq!(h, array![[-1.5, -0.25]], epsilon = 1e-14);
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let (wide, narrow) = (Array2::<f32>::zeros((2, 3)), Array2::<f32>::zeros((2, 2)));
    let h0 = Array1::zeros(2);
    let engine = LogSpace::whole();
    let error = forward(&engine, wide.view(), narrow.view(), h0.view()).unwrap_err();
    assert_eq!(error.to_string(), "shape mismatch in min_gru: k [2, 3], h_tilde [2, 2]");
    let three = Array1::zeros(3);
    let error = forward(&engine, wide.view(), wide.view(), three.view()).unwrap_err();
    assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
    let given = (wide.view(), wide.view(), h0.view());
    let error = backward(&engine, narrow.view(), given, wide.view()).unwrap_err();
    assert!(error.to_string().starts_with("shape mismatch in min_gru: d_h [2, 2]"), "{error}");
}
