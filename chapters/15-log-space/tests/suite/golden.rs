//! Log space beside other people's double-precision results, gradients included.

use ch15_log_space::min_gru::{backward, forward, relative_bound};
use ch15_log_space::{LogSpace, Order, SignedLog, bound, golden, heinsen};
use linrec::contract::golden::{self as recurrences_with_gradients, array_distance};
use linrec::{Engine, Options, reference};

/// `max |a − b| / max |b|` of every array, in double precision.
const LIMIT: f64 = 1e-11;

fn engines() -> [LogSpace; 3] {
    [LogSpace::whole(), LogSpace::restarting(8.0), LogSpace::whole().with_order(Order::InOrder)]
}

#[test]
fn heinsens_sequences_agree_in_f64() {
    let cases = golden::recurrences().expect("the archive can be read");
    assert_eq!(cases.len(), 9);
    for case in &cases {
        for engine in engines() {
            let (x, c) = (case.inputs.view(), case.coeffs.view());
            let y = engine.forward(x, c, &case.options::<f64>()).expect("shapes match");
            let distance = array_distance(&y.outputs, &case.outputs);
            assert!(distance <= LIMIT, "{engine:?}, {}: {distance:e}", case.name);
        }
    }
}

#[test]
fn the_special_case_agrees_where_all_is_positive() {
    let cases = golden::recurrences().expect("the archive can be read");
    for case in cases.iter().filter(|case| case.name.ends_with("positive")) {
        for i in 0..case.inputs.nrows() {
            let logs = |row: ndarray::ArrayView1<f64>| row.mapv(f64::ln).to_vec();
            let (log_x, log_c) = (logs(case.inputs.row(i)), logs(case.coeffs.row(i)));
            let log_y = heinsen(Order::Tree, &log_x, &log_c, case.initial[i].ln());
            let y = ndarray::Array1::from(log_y).mapv(f64::exp);
            let distance = array_distance(&y, &case.outputs.row(i).to_owned());
            assert!(distance <= LIMIT, "{}: {distance:e}", case.name);
        }
    }
}

/// The golden numbers are rounded to f32 first, so the reference is computed from the rounded
/// ones.
#[test]
fn heinsens_sequences_stay_within_the_bound_in_f32() {
    for case in golden::recurrences().expect("the archive can be read") {
        for engine in engines() {
            let (x, c) = (case.inputs.mapv(|x| x as f32), case.coeffs.mapv(|c| c as f32));
            let (x, c, options) = (x.view(), c.view(), case.options::<f32>());
            let exact = reference::forward(x, c, &options).expect("shapes match");
            let limit = bound::forward(&engine, x, c, &options).expect("shapes match");
            let got = engine.forward(x, c, &options).expect("shapes match");
            let name = format!("{engine:?}, {}", case.name);
            for ((got, exact), bound) in got.outputs.iter().zip(&exact.outputs).zip(&limit.outputs)
            {
                let error = (f64::from(*got) - exact).abs();
                assert!(error <= *bound, "{name}: {got} instead of {exact}, bound {bound:e}");
            }
        }
    }
}

#[test]
fn recurrences_agree_in_f64_with_their_gradients() {
    let cases = recurrences_with_gradients::real().expect("the archive can be read");
    assert_eq!(cases.len(), 66);
    for case in &cases {
        for engine in engines() {
            let distance = recurrences_with_gradients::distance::<f64>(&engine, case)
                .expect("the engine takes it");
            assert!(distance <= LIMIT, "{engine:?}, {}: {distance:e}", case.name);
        }
    }
}

#[test]
fn min_gru_agrees_in_f64_with_its_gradients() {
    let case = golden::min_gru().expect("the archive can be read");
    assert_eq!(case.h.dim(), (12, 40));
    for engine in engines() {
        let given = (case.k.view(), case.h_tilde.view(), case.h0.view());
        let h = forward(&engine, given.0, given.1, given.2).expect("shapes match");
        let d = backward(&engine, case.d_h.view(), given, case.h.view()).expect("shapes match");
        for (name, distance) in [
            ("h", array_distance(&h, &case.h)),
            ("d_k", array_distance(&d.d_k, &case.d_k)),
            ("d_h_tilde", array_distance(&d.d_h_tilde, &case.d_h_tilde)),
        ] {
            assert!(distance <= LIMIT, "{engine:?}, {name}: {distance:e}");
        }
    }
}

/// The states of the rounded problem, in double precision and in f32.
#[test]
fn min_gru_stays_within_its_bound_in_f32() {
    let case = golden::min_gru().expect("the archive can be read");
    let engine = LogSpace::whole();
    let (k, h_tilde) = (case.k.mapv(|k| k as f32), case.h_tilde.mapv(|h| h as f32));
    let h0 = case.h0.mapv(|h| h as f32);
    let got = forward(&engine, k.view(), h_tilde.view(), h0.view()).expect("shapes match");
    let (wide_k, wide_h, wide_h0) =
        (k.mapv(f64::from), h_tilde.mapv(f64::from), h0.mapv(f64::from));
    let exact =
        forward(&engine, wide_k.view(), wide_h.view(), wide_h0.view()).expect("shapes match");
    for i in 0..got.nrows() {
        let bounds = relative_bound(&engine, k.row(i), h_tilde.row(i), h0[i]);
        for ((got, exact), bound) in got.row(i).iter().zip(exact.row(i)).zip(bounds) {
            let error = (f64::from(*got) - exact).abs() / exact;
            assert!(error <= bound, "row {i}: {got} instead of {exact}, bound {bound:e}");
        }
    }
}

#[test]
fn a_wrong_sign_is_seen() {
    let cases = golden::recurrences().expect("the archive can be read");
    let case = cases.iter().find(|case| case.name == "L1000_signed").expect("it is there");
    let pack = |row: ndarray::ArrayView1<f64>, signed: bool| -> Vec<SignedLog<f64>> {
        row.iter().map(|&v| SignedLog::of(if signed { v } else { v.abs() })).collect()
    };
    let y = LogSpace::whole().sequence(
        &pack(case.inputs.row(0), true),
        &pack(case.coeffs.row(0), true),
        // The sign of the initial state is lost where ln |y| is all that is kept of it.
        SignedLog::of(case.initial[0].abs()),
    );
    assert!(case.initial[0] < 0.0);
    let first = y[0].value() - case.outputs[[0, 0]];
    assert!(first.abs() > 0.1, "{first}");
}

#[test]
fn empty_arrays_are_valid() {
    for shape in [(0, 3), (3, 0), (0, 0)] {
        let empty = ndarray::Array2::<f32>::zeros(shape);
        let y = LogSpace::whole()
            .forward(empty.view(), empty.view(), &Options::default())
            .expect("empty arrays are valid");
        assert_eq!(y.outputs.dim(), shape);
        assert_eq!(y.final_state.len(), shape.0);
    }
}
