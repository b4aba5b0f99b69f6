//! Few long rows: each cut into tiles, on which all threads work at once.
//!
//! A thread does not wait for the carry of the tile before its own. It guesses zero, scans the
//! tile, and notes the carry after each piece of it. When the right carry arrives, it scans again
//! from the beginning, until the carry after a piece equals the noted one: from there on nothing
//! would change. The influence of a state fades with every coefficient below one. So a piece or two
//! are mostly enough, and they are still in the thread's cache. Where the influence does not fade
//! (all coefficients are 1, say), the whole tile is scanned again, out of the cache. In either case
//! memory is read and written once.
//!
//! Where results [stream](super::stream), the results of the first pieces stay in a cache until the
//! carry arrives, and the others leave at once. If they have to be corrected, they leave twice; the
//! inputs that they are computed from are still in a cache.
//!
//! So every output is the one that a single thread would have computed.
//!
//! Threads take the tiles in the order of the walk. So the tile before has always been taken, by a
//! thread that passes on its carry before it rests, and the wait for that carry ends.

use std::hint::spin_loop;
use std::iter::Enumerate;
use std::ops::Range;
use std::slice;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::vec::IntoIter;

use ndarray::{ArrayView1, ArrayViewMut1, Axis};

use super::memory::Stores;
use super::pass::{Rectangle, Tile, first, scan_rows};
use super::scan::Formula;
use super::simd::Simd;
use crate::{Direction, Element};

/// The size of a tile in each array. Handing tiles out costs little then, and the pieces that are
/// scanned again are at its beginning and still in a cache.
const TILE_BYTES: usize = 1 << 20;

/// The size of a tile in each array if results stream: small enough for its inputs to stay in the
/// second cache.
const STREAMED_TILE_BYTES: usize = 1 << 19;

/// The size of the part of such a tile, in each array, whose results stay in a cache until the
/// carry arrives.
const STAGED_BYTES: usize = 1 << 14;

/// The size of a tile's first pieces in each array, a multiple of the size of every vector. Each
/// further piece is as long as all pieces before it. So there are few pieces, and at most twice as
/// much is scanned again as necessary.
const PIECE_BYTES: usize = 1 << 12;

/// A row is cut if it has at least this many tiles.
const MIN_TILES: usize = 4;

/// With more rows per thread than this, whole rows keep the threads busy.
const MAX_ROWS_PER_THREAD: usize = 8;

/// True if rows are cut for this number of threads.
pub fn pays<T>((num_rows, num_columns): (usize, usize), threads: usize) -> bool {
    threads > 1
        && num_rows <= MAX_ROWS_PER_THREAD * threads
        && num_columns >= MIN_TILES * TILE_BYTES / size_of::<T>()
}

/// Part of a tile, and its pieces in the order of the walk.
type TilePart<'a, T, F, const I: usize, const O: usize> = (Tile<'a, T, F, I, O>, Vec<Range<usize>>);

impl<'a, T, F, const I: usize, const O: usize> Rectangle<'a, T, F, I, O>
where
    T: Element,
    F: Formula<I, O>,
{
    /// Computes the pass, tile by tile; `carries` holds the carries before the rows, and then those
    /// after them.
    pub fn run_by_tiles(
        self,
        simd: Simd,
        threads: usize,
        streams: bool,
        mut carries: ArrayViewMut1<'_, T>,
    ) {
        let walk = self.walk;
        let tiles = self.tiles(if streams { STREAMED_TILE_BYTES } else { TILE_BYTES });
        let shared = SharedTiles {
            walk,
            initial: carries.view(),
            carries: tiles.iter().map(|_| OnceLock::new()).collect(),
            tiles: Mutex::new(tiles.into_iter().enumerate()),
        };
        rayon::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|_| shared.work(simd, streams));
            }
        });
        let after = shared.carries;
        let tiles_per_row = after.len() / carries.len().max(1);
        for (carry, row) in carries.iter_mut().zip(after.chunks_exact(tiles_per_row.max(1))) {
            if let Some(last) = row.last().and_then(OnceLock::get) {
                *carry = *last;
            }
        }
    }

    /// All tiles, row by row, in the order of the walk.
    fn tiles(self, bytes: usize) -> Vec<TileOfRow<Self>> {
        let mut tiles = Vec::new();
        let mut rows = self;
        for row in 0..rows.dim().0 {
            let mut rest;
            (rest, rows) = rows.split_at(Axis(0), 1);
            let mut is_first = true;
            while rest.dim().1 > 0 {
                let tile;
                (tile, rest) = rest.cut_columns(bytes / size_of::<T>());
                tiles.push(TileOfRow { tile, row, is_first });
                is_first = false;
            }
        }
        tiles
    }

    /// The parts of a tile, in the order of the walk.
    fn parts(self, streams: bool) -> Vec<TilePart<'a, T, F, I, O>> {
        let part = |part: Self, stores: Stores, bytes: usize| {
            let pieces = pieces(part.walk, part.dim().1, bytes / size_of::<T>());
            (part.load(stores), pieces)
        };
        if !streams {
            return vec![part(self, Stores::Ordinary, PIECE_BYTES)];
        }
        let (first, rest) = self.cut_columns(STAGED_BYTES / size_of::<T>());
        let mut parts = vec![part(first, Stores::Staged, PIECE_BYTES)];
        if rest.dim().1 > 0 {
            parts.push(part(rest, Stores::Streaming, STAGED_BYTES));
        }
        parts
    }
}

/// The pieces of `columns` columns, of which the first piece has `width`.
fn pieces(walk: Direction, columns: usize, mut width: usize) -> Vec<Range<usize>> {
    let (mut pieces, mut rest) = (Vec::new(), 0..columns);
    while !rest.is_empty() {
        let piece;
        (piece, rest) = first(walk == Direction::Reverse, rest, width);
        width *= if pieces.is_empty() { 1 } else { 2 };
        pieces.push(piece);
    }
    pieces
}

/// A tile that is to be computed.
struct TileOfRow<R> {
    tile: R,
    row: usize,
    is_first: bool,
}

/// The state that the threads share.
struct SharedTiles<'c, T, R> {
    walk: Direction,
    /// The carries before each row.
    initial: ArrayView1<'c, T>,
    /// The carry after each tile.
    carries: Vec<OnceLock<T>>,
    /// The tiles that no thread has taken yet, numbered.
    tiles: Mutex<Enumerate<IntoIter<TileOfRow<R>>>>,
}

impl<T, F, const I: usize, const O: usize> SharedTiles<'_, T, Rectangle<'_, T, F, I, O>>
where
    T: Element,
    F: Formula<I, O>,
{
    /// Computes tiles until none are left.
    fn work(&self, simd: Simd, streams: bool) {
        let take = || self.tiles.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((number, TileOfRow { tile, row, is_first })) = take() {
            let scan = |tile: &mut Tile<T, F, I, O>, piece: Range<usize>, mut carry: T| {
                let carries = ArrayViewMut1::from(slice::from_mut(&mut carry));
                scan_rows(simd, streams, self.walk, tile.rows(Some(piece)), carries);
                carry
            };
            let mut parts = tile.parts(streams);
            let mut after = if is_first { self.initial[row] } else { T::zero() };
            let mut noted = Vec::new();
            for (tile, pieces) in &mut parts {
                for piece in pieces.iter().cloned() {
                    after = scan(tile, piece, after);
                    noted.push(after);
                }
            }
            if !is_first {
                let mut carry = wait(&self.carries[number - 1]);
                let mut noted = noted.into_iter();
                let settled = parts.iter_mut().any(|(tile, pieces)| {
                    tile.restart();
                    pieces.iter().cloned().zip(&mut noted).any(|(piece, noted)| {
                        carry = scan(tile, piece, carry);
                        carry == noted
                    })
                });
                after = if settled { after } else { carry };
            }
            self.carries[number].get_or_init(|| after);
            parts.into_iter().for_each(|(tile, _)| tile.store(simd));
        }
    }
}

/// Waits for a carry. Mostly its thread passes it on at once, so this spins before it blocks.
fn wait<T: Copy>(carry: &OnceLock<T>) -> T {
    for _ in 0..10_000 {
        if let Some(carry) = carry.get() {
            return *carry;
        }
        spin_loop();
    }
    *carry.wait()
}
