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
mod execution;
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
