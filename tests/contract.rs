//! The contract: every engine against every case of its domain, in every element type.

mod engines;

use engines::Entry;
use half::{bf16, f16};
use linrec::device::{KernelEngine, Storage, under_test};
use linrec::kernels::KernelChoice;
use linrec::{Element, contract};
use num_complex::Complex;

fn hold<T: Element>(entries: Vec<Entry<T>>) {
    for Entry { engine, domain, bound } in entries {
        let report = contract::run_within::<T>(engine.as_ref(), &domain, bound.as_ref());
        println!("{report}");
        assert!(report.passed(), "{report}");
    }
}

/// The kernels whose arrays are stored in 16 bits.
fn holds_narrow<S: Storage>() {
    let mut judged = 0;
    for device in under_test() {
        for choice in KernelChoice::shipped(S::ELEMENT) {
            let engine = KernelEngine::<S>::new(&device, choice).expect("it is shipped");
            let report = contract::run_stored::<S>(&engine, &engine.domain());
            println!("{report}");
            assert!(report.passed(), "{report}");
            judged += 1;
        }
        let engine = device.engine::<S>();
        let report = contract::run_stored::<S>(&engine, &engine.domain());
        println!("{report}");
        assert!(report.passed(), "{report}");
    }
    assert!(judged > 0);
}

#[test]
fn stored_as_bf16() {
    holds_narrow::<bf16>();
}

#[test]
fn stored_as_f16() {
    holds_narrow::<f16>();
}

#[test]
fn f32() {
    hold(engines::real::<f32>());
}

#[test]
fn f64() {
    hold(engines::real::<f64>());
}

#[test]
fn complex_f32() {
    hold(engines::all::<Complex<f32>>());
}

#[test]
fn complex_f64() {
    hold(engines::all::<Complex<f64>>());
}
