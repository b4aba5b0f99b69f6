//! The three ways between memory and registers, and every type, on every device.

use ch08_reverse_and_backward::pipe;
use half::{bf16, f16};
use linrec::contract::{self, Domain, Report};
use linrec::device::{KernelEngine, Storage, under_test};
use linrec::kernels::{Config, KernelChoice};
use num_complex::Complex;

/// The whole table runs in the workspace's `tests/contract.rs`; here it runs up to this length, so that the
/// chapter can be tested by itself in seconds.
const MAX_LEN: usize = 1000;

fn passes<S: Storage>(choice: KernelChoice) {
    for device in under_test() {
        let engine = KernelEngine::<S>::new(&device, choice).unwrap();
        let domain = engine.domain();
        let domain = Domain { max_len: MAX_LEN.min(domain.max_len), ..domain };
        let report: Report = contract::run_stored::<S>(&engine, &domain);
        assert!(report.passed(), "{report}");
        println!("{report}");
    }
}

#[test]
fn every_way_passes() {
    for memcode in 0..3 {
        passes::<f32>(pipe(memcode));
    }
}

#[test]
fn a_single_tile_passes() {
    passes::<f32>(KernelChoice::Tile(Config::TILE));
}

#[test]
fn doubles_pass() {
    passes::<f64>(pipe(0));
    passes::<f64>(KernelChoice::Tile(Config::TILE));
}

#[test]
fn bf16_passes() {
    passes::<bf16>(pipe(0));
}

#[test]
fn f16_passes() {
    passes::<f16>(pipe(0));
}

#[test]
fn complex_numbers_pass() {
    passes::<Complex<f32>>(pipe(0));
    passes::<Complex<f64>>(pipe(0));
}
