//! The backward pass through the forward one, around two engines.

use ch01_sequential_loop::Loop;
use ch03_matrix_form::Matrix;
use ch04_gradient::ThroughForward;
use linrec::contract::{self, Domain, golden};
use linrec::{Element, Engine};
use num_complex::Complex;

/// The whole table runs in the workspace's `tests/contract.rs`; here it runs up to this length, so that the
/// chapter can be tested by itself in seconds.
const MAX_LEN: usize = 1000;

fn passes<T: Element>(engine: &dyn Engine<T>, domain: &Domain) {
    let report = contract::run::<T>(engine, domain);
    assert!(report.passed(), "{report}");
    println!("{report}");
}

#[test]
fn f32_passes() {
    passes::<f32>(&ThroughForward(Loop), &Domain { max_len: MAX_LEN, ..Domain::default() });
}

#[test]
fn f64_passes() {
    passes::<f64>(&ThroughForward(Loop), &Domain { max_len: MAX_LEN, ..Domain::default() });
}

#[test]
fn complex_f32_passes() {
    passes::<Complex<f32>>(
        &ThroughForward(Loop),
        &Domain { max_len: MAX_LEN, ..Domain::default() },
    );
}

#[test]
fn complex_f64_passes() {
    passes::<Complex<f64>>(
        &ThroughForward(Loop),
        &Domain { max_len: MAX_LEN, ..Domain::default() },
    );
}

#[test]
fn other_engines_pass() {
    let short = Domain { max_len: 100, ..Matrix::domain() };
    passes::<f32>(&ThroughForward(Matrix), &short);
    passes::<Complex<f64>>(&ThroughForward(Matrix), &short);
}

#[test]
fn golden_data_agree() {
    for case in golden::real().unwrap() {
        let distance = golden::distance::<f64>(&ThroughForward(Loop), &case).unwrap();
        assert!(distance <= 1e-12, "{}: {distance:e}", case.name);
    }
    for case in golden::complex().unwrap() {
        let distance = golden::distance::<Complex<f64>>(&ThroughForward(Loop), &case).unwrap();
        assert!(distance <= 1e-12, "{}: {distance:e}", case.name);
    }
}
