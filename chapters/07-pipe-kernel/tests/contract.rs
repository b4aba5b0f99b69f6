//! The pipe kernel on every device, and the tile kernel in tiles.

use ch07_pipe_kernel::{InTiles, PIPE, TILE, TILE_LEN};
use linrec::Element;
use linrec::contract::{self, Domain};
use linrec::device::{KernelEngine, Storage, under_test};
use num_complex::Complex;

/// The whole table runs in the workspace's `tests/contract.rs`; here it runs up to this length, so that the
/// chapter can be tested by itself in seconds.
const MAX_LEN: usize = 1000;

fn passes<T: Element + Storage<Accum = T>>() {
    for device in under_test() {
        let engine = KernelEngine::<T>::new(&device, PIPE).unwrap();
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

#[test]
fn complex_f32_passes() {
    passes::<Complex<f32>>();
}

#[test]
fn complex_f64_passes() {
    passes::<Complex<f64>>();
}

#[test]
fn any_engine_in_tiles_passes() {
    for device in under_test() {
        // Tiles that are no multiple of anything, and shorter than the kernel could take.
        for tile in [TILE_LEN, 100] {
            let kernel = KernelEngine::<f32>::new(&device, TILE).unwrap();
            let domain = Domain { max_len: MAX_LEN, tile, ..kernel.domain() };
            let report = contract::run::<f32>(&InTiles::new(&kernel, tile), &domain);
            assert!(report.passed(), "{report}");
            println!("{report}");
        }
    }
}
