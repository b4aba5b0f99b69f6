//! Many rows: dealt to the threads, each row walked by one thread.

use ndarray::{ArrayViewMut1, Axis};

use super::memory::Stores;
use super::pass::{Rectangle, first};
use super::scan::Formula;
use super::simd::Simd;
use crate::{Direction, Element};

/// The number of elements below which rows are not dealt any further.
const GRAIN: usize = 1 << 16;

/// The number of elements below which rows are not dealt any further if results stream. There are
/// fewer and larger groups then, since nothing is scanned while the last results of a group leave.
const STREAMED_GRAIN: usize = 1 << 18;

/// Rows of fewer bytes do not stream unless they adjoin: they have few whole cache lines.
const MIN_STREAMED_BYTES: usize = 1 << 10;

/// The rows and columns that are copied at a time, if rows are not contiguous: a tile that stays in
/// the nearest cache, and uses whole cache lines even of columns.
const COPIED_ROWS: usize = 16;
const COPIED_COLUMNS: usize = 256;

impl<T, F, const I: usize, const O: usize> Rectangle<'_, T, F, I, O>
where
    T: Element,
    F: Formula<I, O>,
{
    /// True if the results of such rows can stream.
    pub fn can_stream(&self) -> bool {
        let long = self.dim().1 >= MIN_STREAMED_BYTES / size_of::<T>();
        self.is_loaded() && (long || self.results_adjoin())
    }

    /// Computes the pass, one task per group of rows; `carries` holds the carries before the rows,
    /// and then those after them.
    pub fn run_by_rows(
        self,
        simd: Simd,
        parallel: bool,
        streams: bool,
        carries: ArrayViewMut1<'_, T>,
    ) {
        let (num_rows, num_columns) = self.dim();
        let grain = if streams { STREAMED_GRAIN } else { GRAIN };
        if parallel && num_rows > 1 && num_rows.saturating_mul(num_columns) > grain {
            let (upper, lower) = self.split_at(Axis(0), num_rows / 2);
            let (upper_carries, lower_carries) = carries.split_at(Axis(0), num_rows / 2);
            rayon::join(
                || upper.run_by_rows(simd, parallel, streams, upper_carries),
                || lower.run_by_rows(simd, parallel, streams, lower_carries),
            );
        } else {
            self.walk_rows(simd, streams, carries);
        }
    }

    /// Walks a group of rows, one after the other.
    fn walk_rows(self, simd: Simd, streams: bool, mut carries: ArrayViewMut1<'_, T>) {
        let (walk, (num_rows, num_columns)) = (self.walk, self.dim());
        let (tile_rows, tile_columns, stores) = if streams {
            let rows = if self.results_adjoin() { num_rows } else { 1 };
            (rows, num_columns.max(1), Stores::Streaming)
        } else if self.is_loaded() {
            (num_rows, num_columns.max(1), Stores::Ordinary)
        } else {
            (COPIED_ROWS, COPIED_COLUMNS, Stores::Ordinary)
        };
        if tile_rows >= num_rows && tile_columns >= num_columns {
            return self.load(stores).walk(simd, streams, carries); // nothing is cut
        }
        let mut rest = self;
        while rest.dim().0 > 0 {
            // A walk down the columns takes the rows from the last one up: so memory is read in one
            // direction, as the prefetcher of a CPU likes it.
            let remaining = rest.dim().0;
            let height = tile_rows.min(remaining);
            let cut = if walk == Direction::Reverse { remaining - height } else { height };
            let (upper, lower) = rest.split_at(Axis(0), cut);
            let (upper_carries, lower_carries) = carries.split_at(Axis(0), cut);
            let (mut group, mut group_carries);
            match walk {
                Direction::Forward => {
                    (group, rest, group_carries, carries) =
                        (upper, lower, upper_carries, lower_carries);
                }
                Direction::Reverse => {
                    (rest, group, carries, group_carries) =
                        (upper, lower, upper_carries, lower_carries);
                }
            }
            while group.dim().1 > 0 {
                let tile;
                (tile, group) = group.cut_columns(tile_columns);
                tile.load(stores).walk(simd, streams, group_carries.view_mut());
            }
        }
    }

    /// Cuts off the columns that the walk meets [first], at most `width`; returns them and the
    /// rest.
    pub fn cut_columns(self, width: usize) -> (Self, Self) {
        let all = 0..self.dim().1;
        match self.walk {
            Direction::Forward => self.split_at(Axis(1), first(false, all, width).0.end),
            Direction::Reverse => {
                let (rest, tile) = self.split_at(Axis(1), first(true, all, width).0.start);
                (tile, rest)
            }
        }
    }
}
