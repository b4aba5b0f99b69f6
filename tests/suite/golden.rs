//! Every engine agrees with the double-precision results of other implementations.

use crate::engines::{self, Entry};
use linrec::Element;
use linrec::contract::ErrorBound;
use linrec::contract::golden::{self, Golden};
use linrec::reference;
use ndarray::{Array, Array2, Dimension};
use num_complex::Complex;

/// The largest `max |a − b| / max |b|` of an array, in double precision.
const LIMIT: f64 = 1e-12;

fn real() -> Vec<Golden<f64>> {
    golden::real().expect("the archive can be read")
}

fn complex() -> Vec<Golden<Complex<f64>>> {
    golden::complex().expect("the archive can be read")
}

fn agree_in_double<T: Element<Wide = T>>(entries: Vec<Entry<T>>, cases: &[Golden<T>]) {
    for Entry { engine, domain } in entries {
        for case in cases.iter().filter(|case| domain.takes(case.inputs.ncols())) {
            let distance = golden::distance(engine.as_ref(), case).expect("the engine takes it");
            assert!(distance <= LIMIT, "{} on {}: {distance:e}", engine.name(), case.name);
        }
    }
}

#[test]
fn all_cases_are_read() {
    // 11 lengths, two directions, three kinds; and four complex lengths.
    assert_eq!(real().len(), 66);
    assert_eq!(complex().len(), 4);
    assert_eq!(real().iter().filter(|case| case.d_initial.is_some()).count(), 22);
}

#[test]
fn engines_agree_in_f64() {
    agree_in_double(engines::all(), &real());
}

#[test]
fn engines_agree_in_complex_f64() {
    agree_in_double(engines::all(), &complex());
}

#[test]
fn engines_agree_in_f32_within_the_bound() {
    let cases = real();
    for entry in engines::all::<f32>() {
        for case in cases.iter().filter(|case| entry.domain.takes(case.inputs.ncols())) {
            within_the_bound(&entry, case);
        }
    }
}

/// The golden inputs are rounded to f32 first, so the reference starts from the rounded numbers:
/// golden data confirm the reference (above), and the reference confirms f32.
fn within_the_bound(Entry { engine, domain }: &Entry<f32>, case: &Golden<f64>) {
    let narrow = |array: &Array2<f64>| array.mapv(|value| value as f32);
    let (inputs, coeffs) = (narrow(&case.inputs), narrow(&case.coeffs));
    let (d_outputs, outputs) = (narrow(&case.d_outputs), narrow(&case.outputs));
    let (x, c, d, y) = (inputs.view(), coeffs.view(), d_outputs.view(), outputs.view());
    let options = &case.options_as::<f32>();
    let name = format!("{} on {}", engine.name(), case.name);

    let got = engine.forward(x, c, options).expect("the engine takes it");
    let exact = reference::forward(x, c, options).expect("shapes match");
    let limit = domain.forward_bound(x, c, options).expect("shapes match");
    within(&got.outputs, &exact.outputs, &limit.outputs, &name);

    let got = engine.backward(d, c, y, options).expect("the engine takes it");
    let exact = reference::backward(d, c, y, options).expect("shapes match");
    let limit = domain.backward_bound(d, c, y, options).expect("shapes match");
    within(&got.d_inputs, &exact.d_inputs, &limit.d_inputs, &name);
    within(&got.d_coeffs, &exact.d_coeffs, &limit.d_coeffs, &name);
    within(&got.d_initial, &exact.d_initial, &limit.d_initial, &name);
}

fn within<D: Dimension>(
    got: &Array<f32, D>,
    exact: &Array<f64, D>,
    bound: &Array<f64, D>,
    name: &str,
) {
    for ((got, exact), bound) in got.iter().zip(exact).zip(bound) {
        let error = (f64::from(*got) - exact).abs();
        assert!(error <= *bound, "{name}: {got} instead of {exact}, bound {bound:e}");
    }
}
