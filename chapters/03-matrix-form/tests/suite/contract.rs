//! The matrix form against the table of cases, and against golden data.

use ch03_matrix_form::Matrix;
use linrec::contract::{self, Case, CoeffKind, Domain, InputKind, Layout, Table, golden};
use linrec::{Direction, Element, Engine, Error, Options};
use ndarray::Array2;
use num_complex::Complex;

fn passes<T: Element>(domain: Domain) {
    let report = contract::run::<T>(&Matrix, &domain);
    assert!(report.passed(), "{report}");
    println!("{report}");
}

#[test]
fn f32_passes() {
    passes::<f32>(Matrix::domain().as_asked());
}

#[test]
fn f64_passes() {
    passes::<f64>(Matrix::domain().as_asked());
}

#[test]
fn complex_f32_passes() {
    passes::<Complex<f32>>(Matrix::domain().as_asked());
}

#[test]
fn complex_f64_passes() {
    passes::<Complex<f64>>(Matrix::domain().as_asked());
}

#[test]
fn beyond_the_table() {
    let drawn = Domain { table: Table::Drawn(100), ..Matrix::domain() };
    passes::<f32>(drawn.clone());
    passes::<Complex<f64>>(drawn);
}

#[test]
fn the_longest_sequences_pass() {
    let domain = Domain { tile: Matrix::MAX_LEN, ..Matrix::domain() };
    for seq_len in [Matrix::MAX_LEN - 1, Matrix::MAX_LEN] {
        for direction in [Direction::Forward, Direction::Reverse] {
            for coeffs in [CoeffKind::NearOne, CoeffKind::Growing] {
                let (inputs, layout) = (InputKind::Dense, Layout::Standard);
                let (num_seqs, initial, log_coeffs) = (1, true, false);
                let case = Case {
                    num_seqs,
                    seq_len,
                    direction,
                    initial,
                    coeffs,
                    log_coeffs,
                    inputs,
                    layout,
                };
                let error = contract::check::<f32>(&Matrix, &domain, &case);
                assert!(error.is_ok(), "{case}: {error:?}");
            }
        }
    }
}

#[test]
fn longer_sequences_are_refused() {
    let ones = Array2::<f32>::ones((1, Matrix::MAX_LEN + 1));
    let error = Matrix.forward(ones.view(), ones.view(), &Options::default()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }));
    assert_eq!(error.to_string(), "matrix does not support length 2049: its limit is 2048");
    let backward = Matrix.backward(ones.view(), ones.view(), ones.view(), &Options::default());
    assert_eq!(backward.unwrap_err(), error);
}

#[test]
fn golden_data_agree() {
    for case in golden::real().unwrap() {
        let distance = golden::distance::<f64>(&Matrix, &case).unwrap();
        assert!(distance <= 1e-12, "{}: {distance:e}", case.name);
    }
    for case in golden::complex().unwrap() {
        let distance = golden::distance::<Complex<f64>>(&Matrix, &case).unwrap();
        assert!(distance <= 1e-12, "{}: {distance:e}", case.name);
    }
}
