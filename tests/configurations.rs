//! The contract over configurations that are not shipped: every tile and pipe kernel from 4 x 32 to 32 x 1024, all
//! ways to memory. It compiles 144 programs, so it needs NVRTC and some minutes:
//!
//! ```text
//! cargo test --release --test configurations -- --ignored --nocapture
//! ```

use linrec::contract::{self, Domain};
use linrec::device::{Device, KernelEngine, under_test};
use linrec::kernels::{Config, KernelChoice};

const ELEMS: [u32; 4] = [4, 8, 16, 32];
const THREADS: [u32; 6] = [32, 64, 128, 256, 512, 1024];
const MEMCODES: [u32; 3] = [0, 1, 2];

fn configs() -> impl Iterator<Item = Config> {
    ELEMS.into_iter().flat_map(|max_elems_per_thread| {
        THREADS.into_iter().flat_map(move |max_threads_per_block| {
            MEMCODES.map(|memcode| Config {
                max_elems_per_thread,
                max_threads_per_block,
                memcode,
                algocode: 3,
            })
        })
    })
}

/// Lengths up to just past a tile, and up to 1000 where a tile is shorter.
fn judge(device: &Device, choice: KernelChoice, tile: u64) -> contract::Report {
    let engine = KernelEngine::<f32>::new(device, choice).unwrap_or_else(|error| panic!("{error}"));
    let domain = engine.domain();
    let max_len = domain.max_len.min(1000.max(tile as usize + 1));
    contract::run::<f32>(&engine, &Domain { max_len, ..domain })
}

#[test]
#[ignore = "takes minutes, and NVRTC"]
fn every_configuration_holds_the_contract() {
    for device in under_test() {
        let (mut cases, mut kernels, mut worst) = (0, 0, 0.0_f64);
        for config in configs() {
            for choice in [KernelChoice::Tile(config), KernelChoice::Pipe(config)] {
                let report = judge(&device, choice, config.max_tile());
                assert!(report.passed(), "{choice} on {}: {report}", device.label());
                (cases, kernels) = (cases + report.cases, kernels + 1);
                worst = worst.max(report.worst);
            }
        }
        println!(
            "{}: {kernels} kernels of f32, {cases} cases, largest error {worst:.2} of the bound",
            device.label()
        );
    }
}
