//! The contract: every engine against every case of its domain, in every element type.

mod engines;

use linrec::device::Storage;
use linrec::{Element, contract};
use num_complex::Complex;

fn holds<T: Element + Storage<Accum = T>>() {
    for (engine, domain) in engines::all::<T>() {
        let report = contract::run::<T>(engine.as_ref(), &domain);
        println!("{report}");
        assert!(report.passed(), "{report}");
    }
}

#[test]
fn f32() {
    holds::<f32>();
}

#[test]
fn f64() {
    holds::<f64>();
}

#[test]
fn complex_f32() {
    holds::<Complex<f32>>();
}

#[test]
fn complex_f64() {
    holds::<Complex<f64>>();
}
