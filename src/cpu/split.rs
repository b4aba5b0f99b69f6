//! Few long rows: each cut into tiles, on which all threads work at once.
//!
//! A thread does not wait for the carry of the tile before its own. It guesses zero, scans the
//! tile, and notes the carry after each piece of it. When the right carry is there, it scans again
//! from the beginning until the carry after a piece is the noted one: from there on everything
//! would be as it is already. The influence of a state fades with every coefficient below one, so
//! that mostly a piece or two are enough, and those still lie in the thread's cache. Where it does
//! not fade (all coefficients 1, say) the whole tile is scanned again, out of the cache. The memory
//! is read and written once in either case.
//!
//! Where results [stream](super::stream), those of the first pieces stay in a cache until the carry
//! is there, and the others leave at once. If they have to be corrected, they leave twice; what
//! they are computed from is still in a cache.
//!
//! So every output is the one that a single thread would have computed.
//!
//! Threads take the tiles in the order of the walk. So the tile before has always been taken, by a
//! thread that hands on its carry before it rests, and waiting for that ends.

use std::hint::spin_loop;
use std::iter::Enumerate;
use std::ops::Range;
use std::slice;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::vec::IntoIter;

use ndarray::{ArrayView1, ArrayViewMut1, Axis};

use super::memory::Stores;
use super::pass::{Pass, Tile, first, scan_rows};
use super::rows::cut_columns;
use super::simd::Simd;
use crate::{Direction, Element};

/// The size of a tile in each array. Handing tiles out costs little then, and the pieces that are
/// scanned again are at its beginning and still in a cache.
const TILE_BYTES: usize = 1 << 20;

/// The size of a tile in each array if results stream: small enough for its inputs to stay in the
/// second cache.
const STREAMED_TILE_BYTES: usize = 1 << 19;

/// The size of the part of such a tile, in each array, whose results stay in a cache until the
/// carry is there.
const STAGED_BYTES: usize = 1 << 14;

/// The size of a tile's first pieces in each array, a multiple of every vector's. Each further
/// piece is as long as all before it: so there are few, and never more than twice as much is
/// scanned again as must be.
const PIECE_BYTES: usize = 1 << 12;

/// A row is cut if it has at least this many tiles.
const MIN_TILES: usize = 4;

/// With more rows than this for each thread, whole rows keep the threads busy.
const MAX_ROWS_PER_THREAD: usize = 8;

/// Whether rows are cut for this number of threads.
pub fn pays<T>((num_rows, num_columns): (usize, usize), threads: usize) -> bool {
    threads > 1
        && num_rows <= MAX_ROWS_PER_THREAD * threads
        && num_columns >= MIN_TILES * TILE_BYTES / size_of::<T>()
}

/// Runs a pass; `carries` holds what comes before and then after each row.
pub fn run<T: Element, P: Pass<T>>(
    simd: Simd,
    threads: usize,
    streams: bool,
    pass: P,
    mut carries: ArrayViewMut1<'_, T>,
) {
    let walk = pass.walk();
    let tiles = tiles(pass, if streams { STREAMED_TILE_BYTES } else { TILE_BYTES });
    let shared = Shared {
        walk,
        initial: carries.view(),
        carries: tiles.iter().map(|_| OnceLock::new()).collect(),
        tiles: Mutex::new(tiles.into_iter().enumerate()),
    };
    rayon::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|_| work(simd, streams, &shared));
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
fn tiles<T: Element, P: Pass<T>>(pass: P, bytes: usize) -> Vec<TileOfRow<P>> {
    let mut tiles = Vec::new();
    let mut rows = pass;
    for row in 0..rows.dim().0 {
        let mut rest;
        (rest, rows) = rows.split_at(Axis(0), 1);
        let mut is_first = true;
        while rest.dim().1 > 0 {
            let pass;
            (pass, rest) = cut_columns(rest, bytes / size_of::<T>());
            tiles.push(TileOfRow { pass, row, is_first });
            is_first = false;
        }
    }
    tiles
}

/// Part of a tile, and its pieces in the order of the walk.
type Part<T, P> = (<P as Pass<T>>::Tile, Vec<Range<usize>>);

/// The parts of a tile, in the order of the walk.
fn parts<T: Element, P: Pass<T>>(tile: P, streams: bool) -> Vec<Part<T, P>> {
    let walk = tile.walk();
    let part = |part: P, stores: Stores, bytes: usize| {
        let pieces = pieces(walk, part.dim().1, bytes / size_of::<T>());
        (part.load(stores), pieces)
    };
    if !streams {
        return vec![part(tile, Stores::Ordinary, PIECE_BYTES)];
    }
    let (first, rest) = cut_columns(tile, STAGED_BYTES / size_of::<T>());
    let mut parts = vec![part(first, Stores::Staged, PIECE_BYTES)];
    if rest.dim().1 > 0 {
        parts.push(part(rest, Stores::Streaming, STAGED_BYTES));
    }
    parts
}

/// The pieces of so many columns, of which the first one is so wide.
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
struct TileOfRow<P> {
    pass: P,
    row: usize,
    is_first: bool,
}

/// What the threads share.
struct Shared<'a, T, P> {
    walk: Direction,
    /// The carries before each row.
    initial: ArrayView1<'a, T>,
    /// The carry after each tile.
    carries: Vec<OnceLock<T>>,
    /// The tiles that no thread has taken yet, numbered.
    tiles: Mutex<Enumerate<IntoIter<TileOfRow<P>>>>,
}

/// Takes tiles until there are none left.
fn work<T: Element, P: Pass<T>>(simd: Simd, streams: bool, shared: &Shared<T, P>) {
    while let Some((number, TileOfRow { pass, row, is_first })) = shared.take() {
        let scan = |tile: &mut P::Tile, piece: Range<usize>, mut carry: T| {
            let carries = ArrayViewMut1::from(slice::from_mut(&mut carry));
            scan_rows(simd, streams, shared.walk, tile.rows(Some(piece)), carries);
            carry
        };
        let mut parts = parts(pass, streams);
        let mut after = if is_first { shared.initial[row] } else { T::zero() };
        let mut noted = Vec::new();
        for (tile, pieces) in &mut parts {
            for piece in pieces.iter().cloned() {
                after = scan(tile, piece, after);
                noted.push(after);
            }
        }
        if !is_first {
            let mut carry = wait(&shared.carries[number - 1]);
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
        shared.carries[number].get_or_init(|| after);
        parts.into_iter().for_each(|(tile, _)| tile.store(simd));
    }
}

impl<T, P> Shared<'_, T, P> {
    /// Takes the next tile, with its number.
    fn take(&self) -> Option<(usize, TileOfRow<P>)> {
        self.tiles.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

/// The carry, as soon as its thread hands it on: mostly at once, so do not go to sleep right away.
fn wait<T: Copy>(carry: &OnceLock<T>) -> T {
    for _ in 0..10_000 {
        if let Some(carry) = carry.get() {
            return *carry;
        }
        spin_loop();
    }
    *carry.wait()
}
