//! Many rows: dealt to the threads, each row walked by one of them.

use ndarray::{ArrayViewMut1, Axis};

use super::memory::Stores;
use super::pass::{Pass, Tile, first, scan_rows};
use super::simd::Simd;
use crate::{Direction, Element};

/// The number of elements below which rows are not dealt any further.
const GRAIN: usize = 1 << 16;

/// The number of elements below which rows are not dealt any further if results stream. There are
/// fewer and larger groups then, since the last results of each leave while nothing is scanned.
const STREAMED_GRAIN: usize = 1 << 18;

/// Rows of fewer bytes do not stream unless they adjoin: they have few whole lines.
const MIN_STREAMED_BYTES: usize = 1 << 10;

/// Where rows must be copied to be contiguous, this many rows and columns are copied at a time: a
/// tile that stays in the nearest cache, and that uses whole cache lines even of columns.
const COPIED_ROWS: usize = 16;
const COPIED_COLUMNS: usize = 256;

/// Whether the results of such rows can stream.
pub fn can_stream<T: Element, P: Pass<T>>(pass: &P) -> bool {
    let long = pass.dim().1 >= MIN_STREAMED_BYTES / size_of::<T>();
    pass.is_loaded() && (long || pass.results_adjoin())
}

/// Runs a pass, one task per group of rows; `carries` holds what comes before and then after each
/// row.
pub fn run<T: Element, P: Pass<T>>(
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
        walk(simd, streams, pass, carries);
    }
}

/// Walks a group of rows, one after the other.
fn walk<T: Element, P: Pass<T>>(
    simd: Simd,
    streams: bool,
    pass: P,
    mut carries: ArrayViewMut1<'_, T>,
) {
    let (walk, (num_rows, num_columns)) = (pass.walk(), pass.dim());
    let (tile_rows, tile_columns, stores) = if streams {
        let rows = if pass.results_adjoin() { num_rows } else { 1 };
        (rows, num_columns.max(1), Stores::Streaming)
    } else if pass.is_loaded() {
        (num_rows, num_columns.max(1), Stores::Ordinary)
    } else {
        (COPIED_ROWS, COPIED_COLUMNS, Stores::Ordinary)
    };
    let mut rest = pass;
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
            (tile, group) = cut_columns(group, tile_columns);
            let mut tile = tile.load(stores);
            scan_rows(simd, streams, walk, tile.rows(None), group_carries.view_mut());
            tile.store(simd);
        }
    }
}

/// Cuts off the columns that the walk meets [first], at most `width`; returns them and the rest.
pub fn cut_columns<T: Element, P: Pass<T>>(pass: P, width: usize) -> (P, P) {
    let all = 0..pass.dim().1;
    match pass.walk() {
        Direction::Forward => pass.split_at(Axis(1), first(false, all, width).0.end),
        Direction::Reverse => {
            let (rest, tile) = pass.split_at(Axis(1), first(true, all, width).0.start);
            (tile, rest)
        }
    }
}
