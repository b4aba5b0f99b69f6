//! The backward pass through the forward one, around two engines.

use ch01_sequential_loop::Loop;
use ch03_matrix_form::Matrix;
use ch04_gradient::ThroughForward;
use linrec::contract::{self, Domain, Table, golden};
use linrec::{Element, Engine};
use num_complex::Complex;

fn passes<T: Element>(engine: &dyn Engine<T>, domain: Domain) {
    let report = contract::run::<T>(engine, &domain);
    assert!(report.passed(), "{report}");
    println!("{report}");
}

#[test]
fn f32_passes() {
    passes::<f32>(&ThroughForward(Loop), Domain::default().as_asked());
}

#[test]
fn f64_passes() {
    passes::<f64>(&ThroughForward(Loop), Domain::default().as_asked());
}

#[test]
fn complex_f32_passes() {
    passes::<Complex<f32>>(&ThroughForward(Loop), Domain::default().as_asked());
}

#[test]
fn complex_f64_passes() {
    passes::<Complex<f64>>(&ThroughForward(Loop), Domain::default().as_asked());
}

#[test]
fn other_engines_pass() {
    let short = Domain { max_len: 100, ..Matrix::domain() };
    passes::<f32>(&ThroughForward(Matrix), short.clone());
    passes::<Complex<f64>>(&ThroughForward(Matrix), short);
}

#[test]
fn beyond_the_table() {
    let drawn = Domain { table: Table::Drawn(200), ..Domain::default() };
    passes::<f32>(&ThroughForward(Loop), drawn.clone());
    passes::<Complex<f64>>(&ThroughForward(Loop), drawn);
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
