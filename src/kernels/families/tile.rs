//! `linrec_tile.cu`: one block per sequence, which must fit into its registers.

use super::family::{Family, Parts};
use super::tiled::{Algocode, Memcode, Tiled, tiled_family};
use crate::Direction;
use crate::kernels::{ElementType, Geometry, Pass};

tiled_family! {
    /// The options of `linrec_tile.cu`, written as `tile:4x256:0`, or `tile:4x256:0:2` for an early
    /// stage.
    TileConfig is "tile",
    /// 4 elements for each of up to 256 threads (a tile of 1024), which each thread reads itself,
    /// and the whole scan.
    usually 4 x 256,
    up to |config| Some(config.max_tile())
}
