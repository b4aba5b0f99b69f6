//! Few long rows: each cut into tiles, on which all threads work at once.
//!
//! A thread reads its tile twice. First it combines all steps of the tile into one transition, which
//! takes the carry of the tile before it to that of the tile after it. Then it scans the tile from its
//! carry; by then the tile lies in the thread's own cache, so that the memory is read and written once.
//!
//! Threads take the tiles in the order of the walk. So the tile before has always been taken, by a
//! thread that hands on its carry before it rests, and waiting for that ends. Which thread takes a
//! tile changes nothing in the result, nor does the number of threads.

use std::hint::spin_loop;
use std::iter::Enumerate;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::vec::IntoIter;

use ndarray::{ArrayView1, ArrayViewMut1, Axis};

use super::lanes::{Job, Lanes};
use super::pass::{Pass, Tile};
use super::rows::cut;
use super::simd::Simd;
use crate::{Direction, Element};

/// The size of a tile in each array: what is read of it fits into a level-2 cache of 1 MB.
const TILE_BYTES: usize = 1 << 17;

/// A row is cut if it has at least this many tiles.
const MIN_TILES: usize = 8;

/// With more rows than this, one row per thread keeps the memory busy.
const MAX_ROWS: usize = 16;

/// The length of a tile.
pub const fn tile_len<T>() -> usize {
    TILE_BYTES / size_of::<T>()
}

/// Whether rows are cut: a matter of the shape alone, so that results do not depend on the threads.
pub fn pays<T>((num_rows, num_columns): (usize, usize)) -> bool {
    num_rows <= MAX_ROWS && num_columns >= MIN_TILES * tile_len::<T>()
}

/// Runs a pass; `carries` holds what comes before and then after each row.
pub fn run<T: Element, P: Pass<T>>(
    simd: Simd,
    parallel: bool,
    pass: P,
    mut carries: ArrayViewMut1<'_, T>,
) {
    let walk = pass.walk();
    let tiles = tiles(pass);
    let shared = Shared {
        walk,
        initial: carries.view(),
        carries: tiles.iter().map(|_| OnceLock::new()).collect(),
        tiles: Mutex::new(tiles.into_iter().enumerate()),
    };
    if parallel {
        rayon::scope(|scope| {
            for _ in 0..rayon::current_num_threads() {
                scope.spawn(|_| T::dispatch(simd, Worker(&shared)));
            }
        });
    } else {
        T::dispatch(simd, Worker(&shared));
    }
    let after = shared.carries;
    let tiles_per_row = after.len() / carries.len().max(1);
    for (carry, row) in carries.iter_mut().zip(after.chunks_exact(tiles_per_row.max(1))) {
        if let Some(last) = row.last().and_then(OnceLock::get) {
            *carry = *last;
        }
    }
}

/// All tiles, row by row, in the order of the walk.
fn tiles<T: Element, P: Pass<T>>(pass: P) -> Vec<TileOfRow<P>> {
    let mut tiles = Vec::new();
    let mut rows = pass;
    for row in 0..rows.dim().0 {
        let mut rest;
        (rest, rows) = rows.split_at(Axis(0), 1);
        let mut is_first = true;
        while rest.dim().1 > 0 {
            let pass;
            (pass, rest) = cut(rest, tile_len::<T>());
            tiles.push(TileOfRow { pass, row, is_first, is_last: rest.dim().1 == 0 });
            is_first = false;
        }
    }
    tiles
}

/// A tile that is to be computed.
struct TileOfRow<P> {
    pass: P,
    row: usize,
    is_first: bool,
    is_last: bool,
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

/// A thread that takes tiles until there are none left.
struct Worker<'s, 'a, T, P>(&'s Shared<'a, T, P>);

impl<T: Element, P: Pass<T>> Job<T> for Worker<'_, '_, T, P> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<T, W>>(self, lanes: L) {
        match self.0.walk {
            Direction::Forward => self.walk::<W, L, false>(lanes),
            Direction::Reverse => self.walk::<W, L, true>(lanes),
        }
    }
}

impl<T: Element, P: Pass<T>> Worker<'_, '_, T, P> {
    #[inline(always)]
    fn walk<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(self, lanes: L) {
        let Worker(shared) = self;
        while let Some((number, TileOfRow { pass, row, is_first, is_last })) = shared.take() {
            let mut tile = pass.load();
            let transition = (!is_last).then(|| tile.aggregate::<W, L, REVERSE>(lanes));
            let carry =
                if is_first { shared.initial[row] } else { wait(&shared.carries[number - 1]) };
            if let Some(transition) = transition {
                shared.carries[number].get_or_init(|| transition.apply(carry));
            }
            let after = tile.scan::<W, L, REVERSE>(lanes, 0, carry);
            // Of the last tile nobody waits for the carry: there it is the exact last result.
            shared.carries[number].get_or_init(|| after);
            tile.store();
        }
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
