//! The contract: every kernel against every case of its domain, for every storage type. (`cpu`
//! judges the engine of the CPU.)

use crate::engines::{self, Entry};
use half::{bf16, f16};
use linrec::contract;
use linrec::device::Storage;
use num_complex::Complex;

fn hold<S: Storage>() {
    let entries = engines::kernels::<S>();
    assert!(entries.len() > 1);
    for Entry { engine, domain } in entries {
        let report = contract::run_stored::<S>(engine.as_ref(), &domain.as_asked());
        println!("{report}");
        assert!(report.passed(), "{report}");
    }
}

#[test]
fn stored_as_f32() {
    hold::<f32>();
}

#[test]
fn stored_as_f64() {
    hold::<f64>();
}

#[test]
fn stored_as_bf16() {
    hold::<bf16>();
}

#[test]
fn stored_as_f16() {
    hold::<f16>();
}

#[test]
fn stored_as_complex_f32() {
    hold::<Complex<f32>>();
}

#[test]
fn stored_as_complex_f64() {
    hold::<Complex<f64>>();
}
