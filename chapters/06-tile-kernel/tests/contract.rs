//! The tile kernel on every device, in the element types that are shipped.

use ch06_tile_kernel::stages::CHOICE;
use linrec::Element;
use linrec::contract::{self, Domain};
use linrec::device::{KernelEngine, Storage, under_test};

/// The whole table, up to 1024 steps, runs in the workspace's `tests/contract.rs`; here it runs up to this
/// length, so that the chapter can be tested by itself in seconds.
const MAX_LEN: usize = 1000;

fn passes<T: Element + Storage<Accum = T>>() {
    for device in under_test() {
        let engine = KernelEngine::<T>::new(&device, CHOICE).unwrap();
        let domain = Domain { max_len: MAX_LEN, ..engine.domain() };
        let report = contract::run::<T>(&engine, &domain);
        assert!(report.passed(), "{report}");
        println!("{report}");
    }
}

#[test]
fn f32_passes() {
    passes::<f32>();
}

#[test]
fn f64_passes() {
    passes::<f64>();
}
