//! `linrec_pipe.cu`: one block per sequence, tile by tile.

use super::family::{Family, Parts};
use super::tiled::{Algocode, Memcode, Tiled, tiled_family};
use crate::Direction;
use crate::kernels::{ElementType, Geometry, Pass};

tiled_family! {
    /// The options of `linrec_pipe.cu`, written as `pipe:8x64:0`, or `pipe:8x64:0:2` for an early
    /// stage.
    PipeConfig is "pipe",
    /// 8 elements for each of up to 64 threads, which each thread reads itself, and the whole scan.
    usually 8 x 64,
    up to |_| None
}
