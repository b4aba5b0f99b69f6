//! Many rows: dealt to the threads, each row walked by one of them.

use std::marker::PhantomData;

use ndarray::{ArrayViewMut1, Axis};

use super::lanes::{Job, Lanes};
use super::pass::{self, Pass, Tile};
use super::simd::Simd;
use super::stream::Outbox;
use crate::{Direction, Element};

/// The number of elements below which rows are not dealt any further.
const GRAIN: usize = 1 << 16;

/// The same where results stream: the last ones of a group leave while nothing is scanned.
const STREAMED_GRAIN: usize = 1 << 18;

/// The size of a tile in each array where results stream. What is written and what leaves stays in the nearest cache, and
/// there are few lines of which each of two tiles has a part.
const STREAMED_BYTES: usize = 1 << 13;

/// Where rows must be copied to be contiguous, this many rows and columns are copied at a time: a
/// tile that stays in the nearest cache, and that uses whole cache lines even of columns.
const COPIED_ROWS: usize = 16;
const COPIED_COLUMNS: usize = 256;

/// Whether the results of such rows can stream: others have few whole lines.
pub fn can_stream<'a, T: Element, P: Pass<'a, T>>(pass: &P) -> bool {
    match pass.results() {
        pass::Rows::Strided => false,
        pass::Rows::Contiguous => pass.dim().1 >= STREAMED_BYTES / size_of::<T>(),
        pass::Rows::Adjoining => true,
    }
}

/// Runs a pass, one task per group of rows; `carries` holds what comes before and then after each row.
pub fn run<'a, T: Element, P: Pass<'a, T>>(
    simd: Simd,
    parallel: bool,
    streams: bool,
    pass: P,
    carries: ArrayViewMut1<'_, T>,
) {
    let (num_rows, num_columns) = pass.dim();
    let grain = if streams { STREAMED_GRAIN } else { GRAIN };
    if parallel && num_rows > 1 && num_rows.saturating_mul(num_columns) > grain {
        let (upper, lower) = pass.split_at(Axis(0), num_rows / 2);
        let (upper_carries, lower_carries) = carries.split_at(Axis(0), num_rows / 2);
        rayon::join(
            || run(simd, parallel, streams, upper, upper_carries),
            || run(simd, parallel, streams, lower, lower_carries),
        );
    } else {
        T::dispatch(simd, Rows { pass, carries, streams, elements: PhantomData });
    }
}

/// A group of rows, walked one after the other.
struct Rows<'a, 'c, T, P> {
    pass: P,
    carries: ArrayViewMut1<'c, T>,
    streams: bool,
    elements: PhantomData<&'a T>,
}

impl<'a, T: Element, P: Pass<'a, T>> Job<T> for Rows<'a, '_, T, P> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<T, W>>(self, lanes: L) {
        match self.pass.walk() {
            Direction::Forward => self.walk::<W, L, false>(lanes),
            Direction::Reverse => self.walk::<W, L, true>(lanes),
        }
    }
}

impl<'a, T: Element, P: Pass<'a, T>> Rows<'a, '_, T, P> {
    #[inline(always)]
    fn walk<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(self, lanes: L) {
        let Rows { pass: mut rest, mut carries, streams, .. } = self;
        let mut outbox = streams.then(Outbox::new);
        let (num_rows, num_columns) = rest.dim();
        let (tile_rows, tile_columns) = if streams {
            let columns = num_columns.clamp(1, STREAMED_BYTES / size_of::<T>());
            let adjoin = rest.results() == pass::Rows::Adjoining;
            (if adjoin { STREAMED_BYTES / size_of::<T>() / columns } else { 1 }, columns)
        } else if rest.is_loaded() {
            (num_rows, num_columns.max(1))
        } else {
            (COPIED_ROWS, COPIED_COLUMNS)
        };
        while rest.dim().0 > 0 {
            // A walk down the columns takes the rows from the last one up: so memory is read in one direction, as the
            // prefetcher of a CPU likes it.
            let remaining = rest.dim().0;
            let height = tile_rows.min(remaining);
            let cut = if REVERSE { remaining - height } else { height };
            let (upper, lower) = rest.split_at(Axis(0), cut);
            let (upper_carries, lower_carries) = carries.split_at(Axis(0), cut);
            let (mut group, mut group_carries);
            if REVERSE {
                (rest, group, carries, group_carries) =
                    (upper, lower, upper_carries, lower_carries);
            } else {
                (group, rest, group_carries, carries) =
                    (upper, lower, upper_carries, lower_carries);
            }
            while group.dim().1 > 0 {
                let tile;
                (tile, group) = cut_columns(group, tile_columns);
                let columns = 0..tile.dim().1;
                let mut tile = tile.load(outbox.as_mut());
                for i in 0..height {
                    let row = if REVERSE { height - 1 - i } else { i };
                    let (carry, columns) = (&mut group_carries[row], columns.clone());
                    let outbox = outbox.as_mut();
                    *carry = tile.walk::<W, L, REVERSE>(lanes, row, columns, *carry, outbox);
                }
                tile.store(outbox.as_mut());
            }
        }
    }
}

/// Cuts off the columns that the walk meets [first](pass::first), at most `width`; returns them and the rest.
pub fn cut_columns<'a, T: Element, P: Pass<'a, T>>(pass: P, width: usize) -> (P, P) {
    let all = 0..pass.dim().1;
    match pass.walk() {
        Direction::Forward => pass.split_at(Axis(1), pass::first::<false>(all, width).0.end),
        Direction::Reverse => {
            let (rest, tile) = pass.split_at(Axis(1), pass::first::<true>(all, width).0.start);
            (tile, rest)
        }
    }
}
