//! The loop under the contract that every engine is held to, and the golden data.

use ch01_sequential_loop::Loop;
use linrec::Element;
use linrec::contract::{self, Domain, golden};
use num_complex::Complex;

/// The whole table runs in the workspace's `tests/contract.rs`; here it runs up to this length, so that the
/// chapter can be tested by itself in seconds.
const MAX_LEN: usize = 1000;

fn passes<T: Element>() {
    let domain = Domain { max_len: MAX_LEN, ..Domain::default() };
    let report = contract::run::<T>(&Loop, &domain);
    assert!(report.passed(), "{report}");
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
