//! The PTX emulator against definitions written a second time.
//!
//! - `form`: a table row (an instruction, its operands, what it must give) becomes a kernel that
//!   runs it in every lane; `values` are the operands, `exact` is floating point by big integers.
//! - one module for each family of instructions holds its rows; `coverage` asks the parser which
//!   opcodes it accepts, and fails for one that no row tests.
//! - `parser` and `declarations` read sources, right and wrong ones.
//! - `reports`, `races`, `warp_races`, `blocks`, `barriers`, `mbarriers`, `launches`: each mistake
//!   with its sentence, and its correct twin.
//! - `bulk`: copies of any number of bytes, and who learns of them.
//! - `parts`: barriers at which a part of the block meets.
//! - `grid_barrier`: that of cooperative groups.
//! - `released`: what releases and acquires order in shared memory.
//! - `reserved_shared`: the shared memory that CUDA keeps for itself, where tiles of several warps
//!   meet.
//! - `calls`: functions, and how lanes go to them and come back.
//! - `system`: what `printf` prints, and assertions.
//! - `unwritten`: what comes of shared memory that nothing has written.
//! - `variables`: those of a module in device memory.
//! - `beside`: launches that reach each other's memory.
//! - `kept`: what blocks leave behind does not show.
//! - `bounds`: what a launch may use; whatever passes it is a report.
//! - `execution`: mutated kernels on any arguments; the mutations are in `simt-fuzz`.
//! - `programs`: random programs that are right, written and run in several ways.
//! - `textures`, `surfaces`: what is fetched by coordinates, and what is read and written so;
//!   `objects` has their kernels, `object_mistakes` what is wrong with them, `textures_of_cuda`
//!   those of a compiler.
//! - `switches`: branches to one of a list of labels.
//! - `divergence`, `counted`, `memory`: what a warp does when its lanes part, what is counted, ways
//!   to run.
//! - `stepping`: one instruction at a time, forward and backward.

mod approximate;
mod arithmetic;
mod atomics;
mod barriers;
mod beside;
mod bits;
mod blocks;
mod bounds;
mod bulk;
mod calls;
mod carry;
mod compare;
mod convert;
mod copies;
mod counted;
mod coverage;
mod declarations;
mod divergence;
mod exact;
mod execution {
    //! Whatever kernel runs on whatever arguments: counters or a report, and nothing else has
    //! happened.

    use simt_fuzz::execution::{Outcome, corpus, execute, input};
    use simt_fuzz::parser::Random;

    #[test]
    fn mutated_kernels_neither_panic_nor_escape() {
        let (corpus, mut random) = (corpus(), Random(1));
        let (mut ran, mut reported) = (0, std::collections::HashMap::new());
        for number in 0..RUNS {
            let (source, seed) = (input(&corpus, &mut random), random.draw());
            match std::panic::catch_unwind(|| execute(&source, &mut Random(seed))) {
                Ok(Outcome::Refused) => {}
                Ok(Outcome::Ran) => ran += 1,
                Ok(Outcome::Reported(kind)) => *reported.entry(kind).or_insert(0) += 1,
                Err(_) => {
                    panic!(
                        "number {number} with seed {seed}:\n{}",
                        String::from_utf8_lossy(&source)
                    )
                }
            }
        }
        // So that a change does not turn all of them away at the door.
        assert!(ran > RUNS / 100, "{ran} of {RUNS} ran: {reported:?}");
        assert!(reported.len() >= 8, "{reported:?}");
    }

    const RUNS: usize = 6_000;
}
mod form;
mod grid_barrier;
mod halves;
mod integer;
mod kept;
mod kernel;
mod launches;
mod matrices;
mod matrix_rows;
mod mbarriers;
mod measured_products;
mod measured_textures;
mod memory;
mod moves;
mod object_mistakes;
mod objects;
mod parameters;
mod parser;
mod parts;
mod programs;
mod races;
mod released;
mod reports;
mod reserved_shared;
mod simd;
mod special;
mod special_functions;
mod stepping;
mod surfaces;
mod switches;
mod system;
mod textures;
mod textures_of_cuda;
mod transfer;
mod unwritten;
mod values;
mod variables;
mod video;
mod warp;
mod warp_races;
mod wmma;

use std::io::Read;

/// The text of a file that `gzip` has packed.
fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).expect("a packed text");
    text
}
