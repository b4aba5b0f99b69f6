//! Both engines under the contract that every engine is held to, and the golden data.

use ch02_two_threads::{ManyThreads, TwoThreads};
use linrec::contract::{self, Domain, Table, golden};
use linrec::{Element, Engine, Error, Options};
use ndarray::Array2;
use num_complex::Complex;

fn passes<T: Element>(engine: &dyn Engine<T>, domain: Domain) {
    let report = contract::run::<T>(engine, &domain);
    println!("{report}");
    assert!(report.passed(), "{report}");
}

fn many_threads_pass<T: Element>(threads: usize) {
    let engine = ManyThreads::new(threads);
    passes::<T>(&engine, engine.domain().as_asked());
}

#[test]
fn two_threads_in_single_precision() {
    passes::<f32>(&TwoThreads, TwoThreads::domain().as_asked());
}

#[test]
fn two_threads_in_double_precision() {
    passes::<f64>(&TwoThreads, TwoThreads::domain().as_asked());
}

#[test]
fn two_threads_in_complex_single_precision() {
    passes::<Complex<f32>>(&TwoThreads, TwoThreads::domain().as_asked());
}

#[test]
fn two_threads_in_complex_double_precision() {
    passes::<Complex<f64>>(&TwoThreads, TwoThreads::domain().as_asked());
}

#[test]
fn seven_threads_in_single_precision() {
    many_threads_pass::<f32>(7);
}

#[test]
fn three_threads_in_double_precision() {
    many_threads_pass::<f64>(3);
}

#[test]
fn three_threads_in_complex_single_precision() {
    many_threads_pass::<Complex<f32>>(3);
}

#[test]
fn three_threads_in_complex_double_precision() {
    many_threads_pass::<Complex<f64>>(3);
}

#[test]
fn beyond_the_table() {
    let drawn = |domain| Domain { table: Table::Drawn(200), ..domain };
    passes::<f32>(&TwoThreads, drawn(TwoThreads::domain()));
    let five = ManyThreads::new(5);
    passes::<f32>(&five, drawn(five.domain()));
    passes::<Complex<f64>>(&five, drawn(five.domain()));
}

#[test]
fn golden_data() -> Result<(), Box<dyn std::error::Error>> {
    for case in golden::real()? {
        for threads in [1, 2, 3, 8, 33] {
            let distance = golden::distance::<f64>(&ManyThreads::new(threads), &case)?;
            assert!(distance < 1e-12, "{threads} threads, {}: {distance:e}", case.name);
        }
        let distance = golden::distance::<f64>(&TwoThreads, &case)?;
        assert!(distance < 1e-12, "two threads, {}: {distance:e}", case.name);
    }
    for case in golden::complex()? {
        let distance = golden::distance::<Complex<f64>>(&ManyThreads::new(5), &case)?;
        assert!(distance < 1e-12, "{}: {distance:e}", case.name);
    }
    Ok(())
}

#[test]
fn no_threads_are_an_error_that_says_so() {
    let ones = Array2::<f32>::ones((1, 4));
    let result = ManyThreads::new(0).forward(ones.view(), ones.view(), &Options::default());
    let error = result.expect_err("nobody computed it");
    assert!(matches!(error, Error::Unsupported { .. }));
    assert_eq!(error.to_string(), "many threads does not support 0 threads: nobody to do the work");
}
