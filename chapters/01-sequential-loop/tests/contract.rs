//! The loop under the contract that every engine is held to, and the golden data.

use ch01_sequential_loop::Loop;
use linrec::Element;
use linrec::contract::{self, Domain, golden};
use num_complex::Complex;

fn passes<T: Element>() {
    let report = contract::run::<T>(&Loop, &Domain::default());
    assert!(report.passed(), "{report}");
    assert_eq!(report.outside, 0);
}

#[test]
fn single_precision() {
    passes::<f32>();
}

#[test]
fn double_precision() {
    passes::<f64>();
}

#[test]
fn complex_single_precision() {
    passes::<Complex<f32>>();
}

#[test]
fn complex_double_precision() {
    passes::<Complex<f64>>();
}

#[test]
fn golden_data() -> Result<(), Box<dyn std::error::Error>> {
    for case in golden::real()? {
        let distance = golden::distance::<f64>(&Loop, &case)?;
        assert!(distance < 1e-12, "{}: {distance:e}", case.name);
    }
    for case in golden::complex()? {
        let distance = golden::distance::<Complex<f64>>(&Loop, &case)?;
        assert!(distance < 1e-12, "{}: {distance:e}", case.name);
    }
    Ok(())
}
