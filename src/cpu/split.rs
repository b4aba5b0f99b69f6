//! Few long rows: each cut into tiles, on which all threads work at once.
//!
//! A tile is read twice. The first time its steps are combined into one transition, which, applied to the
//! carry of the tile before it, gives the carry of the tile after it. The second time it is scanned from its carry.
//! By then it lies in the thread's own cache, so that memory is read and written only once.
//! Each thread reads its next tile while it writes the current one, a piece of each in turn, so that the
//! memory is asked for both at all times.
//!
//! Threads take the tiles in the order of the walk. So the tile before has always been taken, by a thread that
//! will not rest before it has handed on its carry, and waiting for that ends. Which thread takes a tile
//! changes nothing in the result, nor does the number of threads.

use std::hint::spin_loop;
use std::iter::Enumerate;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::vec::IntoIter;

use ndarray::{ArrayView1, ArrayViewMut1, Axis};

use super::lanes::{Job, Lanes};
use super::pass::{Pass, Tile};
use super::rows::cut;
use super::scan::Transition;
use super::simd::Simd;
use crate::{Direction, Element};

/// The size of a tile in each array: two tiles of the five arrays of a backward pass fit into a
/// level-2 cache of 1 MB.
const TILE_BYTES: usize = 1 << 16;

/// A row is cut if it has at least this many tiles, so that starting and ending hardly count.
const MIN_TILES: usize = 16;

/// With more rows than this, each thread has enough of them for itself.
const MAX_ROWS: usize = 64;

/// The number of elements that are read, and then written, in turn.
const PIECE: usize = 4096;

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
            tiles.push(TileOfRow { pass, row, is_first });
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
        let mut current: Option<Work<T, P::Tile>> = None;
        let [mut products, mut next_products] = [(); 2].map(|()| vec![T::zero(); tile_len::<T>()]);
        loop {
            let mut next = shared.take();
            let longest = next.iter().chain(&current).map(|work| work.tile.len()).max();
            for done in (0..longest.unwrap_or(0)).step_by(PIECE) {
                if let Some(Work { tile, transition, .. }) = &mut next {
                    let columns = piece::<REVERSE>(done, tile.len());
                    let products = &mut next_products;
                    *transition =
                        tile.start::<W, L, REVERSE>(lanes, columns, products, *transition);
                }
                if let Some(Work { tile, carry, .. }) = &mut current {
                    let columns = piece::<REVERSE>(done, tile.len());
                    tile.finish::<REVERSE>(columns, &products, *carry);
                }
            }
            if let Some(Work { tile, .. }) = current {
                tile.store();
            }
            let Some(work) = &mut next else { break };
            if !work.is_first {
                work.carry = wait(&shared.carries[work.number - 1]);
            }
            shared.carries[work.number].get_or_init(|| work.transition.apply(work.carry));
            (current, products, next_products) = (next, next_products, products);
        }
    }
}

/// A tile that a thread has taken.
struct Work<T, Tile> {
    number: usize,
    is_first: bool,
    tile: Tile,
    /// The transition over the columns that have been started.
    transition: Transition<T>,
    /// What comes before the tile.
    carry: T,
}

impl<T: Element, P: Pass<T>> Shared<'_, T, P> {
    /// Takes the next tile.
    fn take(&self) -> Option<Work<T, P::Tile>> {
        let taken = self.tiles.lock().unwrap_or_else(PoisonError::into_inner).next();
        taken.map(|(number, TileOfRow { pass, row, is_first })| Work {
            number,
            is_first,
            tile: pass.load(),
            transition: Transition::neutral(),
            carry: self.initial[row],
        })
    }
}

/// The columns of a piece of a tile, of which `done` have been walked.
fn piece<const REVERSE: bool>(done: usize, len: usize) -> Range<usize> {
    let (start, end) = (done.min(len), (done + PIECE).min(len));
    if REVERSE { len - end..len - start } else { start..end }
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
