//! The PTX emulator against definitions written a second time.
//!
//! - `form`: a table row (an instruction, its operands, what it must give) becomes a kernel that runs
//!   it in every lane; `values` are the operands, `exact` is floating point by big integers.
//! - one module for each family of instructions holds its rows; `coverage` asks the parser which opcodes
//!   it accepts, and fails for one that no row tests.
//! - `reports`, `races`, `warp_races`, `blocks`, `barriers`, `launches`: each mistake with its sentence, and its
//!   correct twin.
//! - `divergence`, `counted`, `memory`: what a warp does when its lanes part, what is counted, ways to run.

mod approximate;
mod arithmetic;
mod atomics;
mod barriers;
mod bits;
mod blocks;
mod compare;
mod convert;
mod copies;
mod counted;
mod coverage;
mod divergence;
mod exact;
mod form;
mod integer;
mod kernel;
mod launches;
mod memory;
mod moves;
mod parameters;
mod races;
mod reports;
mod special;
mod transfer;
mod values;
mod warp;
mod warp_races;
