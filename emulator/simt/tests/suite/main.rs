//! The PTX emulator against definitions written a second time. Cases that are PTX and what must
//! come of it are not here but in `../cases`, as files that `cases.rs` runs.
//!
//! - `form`: a row of a table (an instruction, its operands, its result) becomes a kernel that runs
//!   it in every lane; `values` are the operands, `exact` is floating point by big integers.
//! - Each family of instructions has a module with its rows. `coverage` asks the parser which
//!   opcodes it accepts, and fails for an opcode that no row and no case tests.
//! - `parser` and `declarations` read sources, right and wrong ones.
//! - `launches`, `bounds`: sizes of launches, ranges of blocks, and the bounds of a launch.
//! - `grid_barrier`, `reserved_shared`: barriers of grids and of tiles from NVIDIA's headers.
//! - `variables`: parameters, and variables of a module in device memory.
//! - `side_by_side`: launches that run side by side and reach each other's memory.
//! - `reused`: a block finds nothing of what earlier blocks left in the emulator's scratch memory.
//! - `programs`: random programs that are right, and mutated kernels; both are from `simt-fuzz`.
//! - `textures`, `surfaces`: texels that are fetched, read and written; `objects` has the kernels,
//!   `object_mistakes` wrong uses, `textures_of_cuda` the code of CUDA's compiler, and
//!   `measured_textures` the results of an H100.
//! - `counted`, `memory`, `stepping`: counters, ways to run, and one instruction at a time.

mod approximate;
mod arithmetic;
mod atomics;
mod bits;
mod bounds;
mod carry;
mod compare;
mod convert;
mod copies;
mod counted;
mod coverage;
mod declarations;
mod exact;
mod form;
#[allow(dead_code, reason = "`cases` uses all of it")]
mod format;
mod grid_barrier;
mod halves;
mod integer;
mod kernel;
mod launches;
mod matrices;
mod matrix_rows;
mod measured_products;
mod measured_textures;
mod memory;
mod moves;
mod object_mistakes;
mod objects;
mod parser;
mod programs;
mod reserved_shared;
mod reused;
mod side_by_side;
mod simd;
mod special;
mod special_functions;
mod stepping;
mod surfaces;
mod textures;
mod textures_of_cuda;
mod transfer;
mod values;
mod variables;
mod video;
mod warp;
mod wmma;

use std::io::Read;

/// The text of a file that `gzip` has packed.
fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).expect("a packed text");
    text
}
