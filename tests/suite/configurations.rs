//! The contract over configurations that are not shipped, with all ways to access memory. It
//! compiles hundreds of programs, so it needs NVRTC and some minutes:
//!
//! ```text
//! cargo test --release -p linrec-suite configurations:: -- --ignored --nocapture
//! ```

use linrec::contract::{self, Domain};
use linrec::device::{Device, KernelEngine, under_test};
use linrec::kernels::{
    Algocode, ElementType, KernelChoice, Memcode, OnceConfig, PipeConfig, RowsConfig, TileConfig,
    WavesConfig, WideConfig,
};

/// Tile and pipe: elements of a thread, threads of a block.
const ELEMS: [u32; 4] = [4, 8, 16, 32];
const THREADS: [u32; 6] = [32, 64, 128, 256, 512, 1024];

/// Rows: lanes of a sequence, vectors of a lane, threads of a block.
const LANES: [u32; 6] = [1, 2, 4, 8, 16, 32];
const ROWS_VECTORS: [u32; 3] = [1, 2, 4];
const ROWS_THREADS: [u32; 2] = [32, 256];

/// Wide: vectors of a thread with the largest number of threads whose registers suffice, threads,
/// and tiles in flight.
const WIDE_VECTORS: [(u32, u32); 4] = [(1, 1024), (2, 1024), (4, 256), (8, 256)];
const WIDE_THREADS: [u32; 4] = [32, 64, 256, 1024];
const AHEAD: [u32; 3] = [0, 1, 2];
/// The largest number of vectors in a tile that is loaded ahead: a block of any GPU has memory for
/// six such tiles, two for each array that the gradient reads.
const MOST_AHEAD: u32 = 1024;

fn per_sequence() -> Vec<KernelChoice> {
    let mut all = Vec::new();
    for max_elems_per_thread in ELEMS {
        for max_threads_per_block in THREADS {
            for memcode in Memcode::ALL {
                let algocode = Algocode::Block;
                all.push(KernelChoice::Tile(TileConfig {
                    max_elems_per_thread,
                    max_threads_per_block,
                    memcode,
                    algocode,
                }));
                all.push(KernelChoice::Pipe(PipeConfig {
                    max_elems_per_thread,
                    max_threads_per_block,
                    memcode,
                    algocode,
                }));
            }
        }
    }
    all
}

fn rows() -> Vec<KernelChoice> {
    let mut all = Vec::new();
    for lanes in LANES {
        for vectors in ROWS_VECTORS {
            for threads in ROWS_THREADS {
                for whole in [false, true] {
                    all.push(KernelChoice::Rows(RowsConfig { lanes, vectors, threads, whole }));
                }
            }
        }
    }
    all
}

fn wide() -> Vec<KernelChoice> {
    let mut all = Vec::new();
    for (vectors, most) in WIDE_VECTORS {
        for threads in WIDE_THREADS.into_iter().filter(|&threads| threads <= most) {
            let has_room = |ahead: &u32| *ahead == 0 || vectors * threads <= MOST_AHEAD;
            for ahead in AHEAD.into_iter().filter(has_room) {
                for whole in [false, true] {
                    all.push(KernelChoice::Wide(WideConfig { vectors, threads, ahead, whole }));
                }
            }
        }
    }
    all
}

/// Returns the configurations whose blocks share rows, as a tuner tries them.
fn sharing() -> Vec<KernelChoice> {
    let both = [WavesConfig::DEFAULT.into(), OnceConfig::DEFAULT.into()];
    let of = |usual: KernelChoice| KernelChoice::candidates(usual.name(), ElementType::F32);
    both.into_iter().flat_map(of).collect()
}

/// Judges lengths up to just past a tile, or up to 1000 for shorter tiles; with tiles in flight, up
/// to the length at which the third tile reuses the first one's slot.
fn judge(device: &Device, choice: KernelChoice) -> contract::Report {
    let engine = KernelEngine::<f32>::new(device, choice).unwrap_or_else(|error| panic!("{error}"));
    let mut domain = engine.domain();
    if matches!(choice, KernelChoice::Wide(config) if config.ahead > 0) {
        domain.tile = 2 * domain.tile + domain.multiple_of;
    }
    let max_len = domain.max_len.min(1000.max(domain.tile + domain.multiple_of));
    contract::run::<f32>(&engine, &Domain { max_len, ..domain }.as_asked())
}

fn all_hold_the_contract(choices: &[KernelChoice]) {
    for device in under_test() {
        let (mut cases, mut worst) = (0, 0.0_f64);
        for &choice in choices {
            let report = judge(&device, choice);
            assert!(report.passed(), "{choice} on {}: {report}", device.label());
            assert!(report.cases > 0, "{choice} has no cases");
            cases += report.cases;
            worst = worst.max(report.worst);
        }
        println!(
            "{}: {} configurations ({} and so on), {cases} cases of f32, largest error {worst:.2} of \
             the bound",
            device.label(),
            choices.len(),
            choices[0],
        );
    }
}

#[test]
#[ignore = "needs NVRTC, and minutes"]
fn every_configuration_of_tile_and_pipe_holds_the_contract() {
    all_hold_the_contract(&per_sequence());
}

#[test]
#[ignore = "needs NVRTC, and minutes"]
fn every_configuration_of_rows_holds_the_contract() {
    all_hold_the_contract(&rows());
}

#[test]
#[ignore = "needs NVRTC, and minutes"]
fn every_configuration_of_wide_holds_the_contract() {
    all_hold_the_contract(&wide());
}

#[test]
#[ignore = "needs NVRTC, and minutes"]
fn every_configuration_of_those_that_share_rows_holds_the_contract() {
    all_hold_the_contract(&sharing());
}

#[test]
fn the_lists_have_the_expected_lengths() {
    let lists = [per_sequence(), rows(), wide(), sharing()];
    assert_eq!(lists.map(|list| list.len()), [144, 72, 76, 26]);
}
