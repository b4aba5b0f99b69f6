//! Chapter 07: The pipe kernel.
//!
//! - [`InTiles`]: any engine, which computes a long sequence tile by tile; the host passes the
//!   state on.
//! - [`PIPE`]: the kernel that does the same inside one launch.
//! - [`life`]: the actions of a block's warps over its tiles, from the emulator's trace.
//! - [`far`]: rows of an array that is larger than this machine's memory.
//! - [`exercises`]: the solutions of the page's exercises.

pub mod exercises;
pub mod far;
pub mod life;

mod in_tiles;

#[cfg(feature = "story")]
#[path = "../story/mod.rs"]
mod story;

use linrec::kernels::{KernelChoice, PipeConfig, TileConfig};

pub use in_tiles::InTiles;

/// The kernel of this chapter: 8 elements for each of up to 64 threads, so that a tile has 512
/// steps.
pub const PIPE: KernelChoice = KernelChoice::Pipe(PipeConfig::DEFAULT);

/// The number of steps of its largest tile.
pub const TILE_LEN: usize = 8 * 64;

/// The last chapter's kernel: one tile of up to 1024 steps.
pub const TILE: KernelChoice = KernelChoice::Tile(TileConfig::DEFAULT);

/// The chapter, as the tour runs it.
#[cfg(feature = "story")]
pub const CHAPTER: lesson::Chapter = lesson::chapter!(story::run);
