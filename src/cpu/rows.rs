//! Many rows: dealt to the threads, each row walked by one of them.

use ndarray::{ArrayViewMut1, Axis};

use super::lanes::{Job, Lanes};
use super::pass::{Pass, Tile};
use super::simd::Simd;
use crate::{Direction, Element};

/// The number of elements below which rows are not dealt any further.
const GRAIN: usize = 1 << 16;

/// Where rows must be copied to be contiguous, this many rows and columns are copied at a time: a
/// tile that stays in the nearest cache, and that uses whole cache lines even of columns.
const COPIED_ROWS: usize = 16;
const COPIED_COLUMNS: usize = 256;

/// Runs a pass, one task per group of rows; `carries` holds what comes before and then after each row.
pub fn run<T: Element, P: Pass<T>>(
    simd: Simd,
    parallel: bool,
    pass: P,
    carries: ArrayViewMut1<'_, T>,
) {
    let (num_rows, num_columns) = pass.dim();
    if parallel && num_rows > 1 && num_rows.saturating_mul(num_columns) > GRAIN {
        let (upper, lower) = pass.split_at(Axis(0), num_rows / 2);
        let (upper_carries, lower_carries) = carries.split_at(Axis(0), num_rows / 2);
        rayon::join(
            || run(simd, parallel, upper, upper_carries),
            || run(simd, parallel, lower, lower_carries),
        );
    } else {
        T::dispatch(simd, Rows { pass, carries });
    }
}

/// A group of rows, walked one after the other.
struct Rows<'a, T, P> {
    pass: P,
    carries: ArrayViewMut1<'a, T>,
}

impl<T: Element, P: Pass<T>> Job<T> for Rows<'_, T, P> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<T, W>>(self, lanes: L) {
        match self.pass.walk() {
            Direction::Forward => self.walk::<W, L, false>(lanes),
            Direction::Reverse => self.walk::<W, L, true>(lanes),
        }
    }
}

impl<T: Element, P: Pass<T>> Rows<'_, T, P> {
    #[inline(always)]
    fn walk<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(self, lanes: L) {
        let Rows { pass: mut rest, mut carries } = self;
        let (tile_rows, tile_columns) = if rest.is_loaded() {
            (rest.dim().0, rest.dim().1.max(1))
        } else {
            (COPIED_ROWS, COPIED_COLUMNS)
        };
        while rest.dim().0 > 0 {
            let height = tile_rows.min(rest.dim().0);
            let (mut group, lower) = rest.split_at(Axis(0), height);
            let (mut group_carries, lower_carries) = carries.split_at(Axis(0), height);
            (rest, carries) = (lower, lower_carries);
            while group.dim().1 > 0 {
                let tile;
                (tile, group) = cut(group, tile_columns);
                let mut tile = tile.load();
                // A walk down the columns takes the rows from the last one up: so memory is read in one direction,
                // as the prefetcher of a CPU likes it.
                for i in 0..height {
                    let row = if REVERSE { height - 1 - i } else { i };
                    let carry = &mut group_carries[row];
                    *carry = tile.scan::<W, L, REVERSE>(lanes, row, *carry);
                }
                tile.store();
            }
        }
    }
}

/// Cuts off the columns that the walk meets first, at most `width`; returns them and the rest.
///
/// The cut is at a multiple of `width` from the first column, whatever the walk: so vectors begin at the
/// same columns as without it, and the result has the same bits.
pub fn cut<T: Element, P: Pass<T>>(pass: P, width: usize) -> (P, P) {
    let (_, num_columns) = pass.dim();
    match pass.walk() {
        Direction::Forward => pass.split_at(Axis(1), width.min(num_columns)),
        Direction::Reverse => {
            let last = num_columns.saturating_sub(1) / width * width;
            let (rest, tile) = pass.split_at(Axis(1), last);
            (tile, rest)
        }
    }
}
