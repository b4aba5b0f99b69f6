//! Chapter 07: The pipe kernel.
//!
//! - [`InTiles`]: any engine, given a long sequence tile by tile; the state is handed on from outside.
//! - [`PIPE`]: the kernel that does the same inside one launch.
//! - [`life`]: what the warps of a block do over its tiles, from the emulator's trace.
//! - [`far`]: rows of an array that is larger than this machine's memory.
//! - [`measured`]: the recorded runs of an H200.
//! - [`traffic`]: what a profiler counted between the caches and the memory.
//! - [`suspect`]: the kernel with a planted mistake, as an engine that the contract can try.
//! - [`exercises`]: the solutions of the page's exercises.

pub mod exercises;
pub mod far;
pub mod life;
pub mod measured;
pub mod suspect;
pub mod traffic;

mod in_tiles;
mod story;

use linrec::kernels::{Config, KernelChoice};
use linrec::lesson::Chapter;

pub use in_tiles::InTiles;

/// The kernel of this chapter: 8 elements for each of up to 64 threads, so that a tile has 512 steps.
pub const PIPE: KernelChoice = KernelChoice::Pipe(Config {
    max_elems_per_thread: 8,
    max_threads_per_block: 64,
    memcode: 0,
    algocode: 3,
});

/// Steps of its largest tile.
pub const TILE_LEN: usize = 8 * 64;

/// The last chapter's kernel: one tile of up to 1024 steps.
pub const TILE: KernelChoice = KernelChoice::Tile(Config::TILE);

/// This chapter.
pub const CHAPTER: Chapter =
    Chapter { number: 7, slug: "07-pipe-kernel", title: "The pipe kernel", run: story::run };
