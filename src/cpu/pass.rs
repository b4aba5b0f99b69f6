//! What the forward and the backward pass have in common: rectangles of arrays that can be cut
//! along both axes, and tiles in contiguous memory that can be scanned.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, CowArray, Ix2, s};

use super::lanes::{Job, Lanes};
use super::memory::{Place, Places, Stores, Target, coefficients, contiguous, has_contiguous_rows};
use super::scan;
use super::simd::Simd;
use super::stream;
use crate::{Direction, Element};

/// A rectangle of a problem: some of the rows, and of each the same range of columns.
pub trait Pass<T: Element>: Send + Sized {
    /// The rectangle in memory that can be scanned.
    type Tile: Tile<T>;

    /// The arrays that are read and written.
    const ARRAYS: usize;

    /// The direction in which this pass walks along the rows.
    fn walk(&self) -> Direction;

    /// The number of rows and of columns.
    fn dim(&self) -> (usize, usize);

    /// Cuts the rectangle in two, before row or column `index`.
    fn split_at(self, axis: Axis, index: usize) -> (Self, Self);

    /// Whether [`load`](Pass::load) is free: nothing is copied.
    fn is_loaded(&self) -> bool;

    /// Whether each row of results begins where the one before ends.
    fn results_adjoin(&self) -> bool;

    /// Makes the rows contiguous and the coefficients plain.
    fn load(self, stores: Stores) -> Self::Tile;
}

/// A rectangle in contiguous rows.
pub trait Tile<T: Element>: Sized {
    /// What a scan reads and writes.
    type Rows<'r>: Rows<T>
    where
        Self: 'r;

    /// All rows, or some columns of all rows.
    fn rows(&mut self, columns: Option<Range<usize>>) -> Self::Rows<'_>;

    /// Before some columns are scanned again.
    fn restart(&mut self);

    /// Hands the results to the caller.
    fn store(self, simd: Simd);
}

/// Columns of the rows of a tile. A value of its own, with nothing behind a reference but elements:
/// so that a scan of many short rows looks once at what they have in common.
pub trait Rows<T: Element>: Sized {
    /// What a scan reads and writes along a row.
    type Row<'r>: Row<T>
    where
        Self: 'r;

    /// A row; `STREAMS` where it was loaded to stream.
    fn row<const STREAMS: bool>(&mut self, index: usize) -> Self::Row<'_>;
}

/// Scans rows; `carries` holds what comes before and then after each of them.
///
/// This alone is compiled for every instruction set: what deals out rows, cuts tiles and copies
/// them is compiled once.
pub fn scan_rows<T: Element, R: Rows<T>>(
    simd: Simd,
    streams: bool,
    walk: Direction,
    rows: R,
    carries: ArrayViewMut1<T>,
) {
    // Compiled each for itself: short rows have no time for the other's questions.
    if streams {
        T::dispatch(simd, Scan::<T, R, true> { walk, rows, carries });
    } else {
        T::dispatch(simd, Scan::<T, R, false> { walk, rows, carries });
    }
}

/// Rows, walked one after the other.
struct Scan<'c, T, R, const STREAMS: bool> {
    walk: Direction,
    rows: R,
    carries: ArrayViewMut1<'c, T>,
}

impl<T: Element, R: Rows<T>, const STREAMS: bool> Job<T> for Scan<'_, T, R, STREAMS> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<T, W>>(self, lanes: L) {
        match self.walk {
            Direction::Forward => self.walk::<W, L, false>(lanes),
            Direction::Reverse => self.walk::<W, L, true>(lanes),
        }
    }
}

impl<T: Element, R: Rows<T>, const STREAMS: bool> Scan<'_, T, R, STREAMS> {
    #[inline(always)]
    fn walk<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(self, lanes: L) {
        let Scan { mut rows, mut carries, .. } = self;
        let height = carries.len();
        for i in 0..height {
            let row = if REVERSE { height - 1 - i } else { i };
            let carry = &mut carries[row];
            let mut row = rows.row::<STREAMS>(row);
            let columns = row.columns();
            *carry = row.walk::<W, L, REVERSE, STREAMS>(lanes, columns, *carry);
        }
    }
}

/// What a scan reads and writes along a row.
pub trait Row<T: Element>: Sized {
    /// The arrays of results.
    const RESULTS: usize;

    /// Computes some columns from the carry before them; returns that after them.
    fn scan<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        &mut self,
        lanes: L,
        columns: Range<usize>,
        carry: T,
    ) -> T;

    /// All columns.
    fn columns(&self) -> Range<usize>;

    /// [Fetches](stream::fetch) what the scan will read a while after these columns.
    fn fetch<const REVERSE: bool>(&self, columns: &Range<usize>);

    /// [Scans](Row::scan) columns; where results stream, step by step.
    #[inline(always)]
    fn walk<const W: usize, L: Lanes<T, W>, const REVERSE: bool, const STREAMS: bool>(
        &mut self,
        lanes: L,
        columns: Range<usize>,
        mut carry: T,
    ) -> T {
        if !STREAMS {
            return self.scan::<W, L, REVERSE>(lanes, columns, carry);
        }
        let mut rest = columns;
        while !rest.is_empty() {
            let step;
            (step, rest) = first(REVERSE, rest, stream::step::<T>(Self::RESULTS));
            self.fetch::<REVERSE>(&step);
            carry = self.scan::<W, L, REVERSE>(lanes, step, carry);
        }
        carry
    }
}

/// The columns that a walk meets first, at most `width`, and the rest.
///
/// The cut is at a multiple of `width` from the first column, whatever the walk: so vectors begin
/// at the same columns as without it, and the result has the same bits.
#[inline(always)]
pub fn first(
    reverse: bool,
    Range { start, end }: Range<usize>,
    width: usize,
) -> (Range<usize>, Range<usize>) {
    if reverse {
        let cut = start + (end - start).saturating_sub(1) / width * width;
        (cut..end, start..cut)
    } else {
        let cut = start.saturating_add(width).min(end);
        (start..cut, cut..end)
    }
}

/// The forward pass. Its carry is the state.
pub struct Forward<'a, T> {
    pub direction: Direction,
    pub log_coeffs: bool,
    pub inputs: ArrayView2<'a, T>,
    pub coeffs: ArrayView2<'a, T>,
    pub outputs: ArrayViewMut2<'a, T>,
}

impl<'a, T: Element> Pass<T> for Forward<'a, T> {
    type Tile = ForwardTile<'a, T>;
    const ARRAYS: usize = 3;

    fn walk(&self) -> Direction {
        self.direction
    }

    fn dim(&self) -> (usize, usize) {
        self.inputs.dim()
    }

    fn split_at(self, axis: Axis, index: usize) -> (Self, Self) {
        let Forward { direction, log_coeffs, .. } = self;
        let inputs = self.inputs.split_at(axis, index);
        let coeffs = self.coeffs.split_at(axis, index);
        let outputs = self.outputs.split_at(axis, index);
        (
            Forward {
                direction,
                log_coeffs,
                inputs: inputs.0,
                coeffs: coeffs.0,
                outputs: outputs.0,
            },
            Forward {
                direction,
                log_coeffs,
                inputs: inputs.1,
                coeffs: coeffs.1,
                outputs: outputs.1,
            },
        )
    }

    fn is_loaded(&self) -> bool {
        !self.log_coeffs
            && has_contiguous_rows(&self.inputs)
            && has_contiguous_rows(&self.coeffs)
            && has_contiguous_rows(&self.outputs.view())
    }

    fn results_adjoin(&self) -> bool {
        self.outputs.is_standard_layout()
    }

    fn load(self, stores: Stores) -> ForwardTile<'a, T> {
        let walk = self.walk();
        ForwardTile {
            inputs: contiguous(self.inputs),
            coeffs: coefficients(self.coeffs, self.log_coeffs),
            outputs: Target::new(self.outputs, stores, walk),
        }
    }
}

/// A rectangle of the forward pass in contiguous rows.
pub struct ForwardTile<'a, T: Element> {
    inputs: CowArray<'a, T, Ix2>,
    coeffs: CowArray<'a, T, Ix2>,
    outputs: Target<'a, T>,
}

impl<'a, T: Element> Tile<T> for ForwardTile<'a, T> {
    type Rows<'r>
        = ForwardRows<'r, 'a, T>
    where
        Self: 'r;

    fn rows(&mut self, columns: Option<Range<usize>>) -> ForwardRows<'_, 'a, T> {
        ForwardRows {
            inputs: part(&self.inputs, &columns),
            coeffs: part(&self.coeffs, &columns),
            outputs: self.outputs.places(&columns),
        }
    }

    fn restart(&mut self) {
        self.outputs.restart();
    }

    fn store(self, simd: Simd) {
        self.outputs.store(simd);
    }
}

/// Columns of the rows of the forward pass.
pub struct ForwardRows<'r, 'a, T: Element> {
    inputs: ArrayView2<'r, T>,
    coeffs: ArrayView2<'r, T>,
    outputs: Places<'r, 'a, T>,
}

impl<'a, T: Element> Rows<T> for ForwardRows<'_, 'a, T> {
    type Row<'r>
        = ForwardRow<'r, 'a, T>
    where
        Self: 'r;

    #[inline(always)]
    fn row<const STREAMS: bool>(&mut self, index: usize) -> ForwardRow<'_, 'a, T> {
        ForwardRow {
            inputs: row(&self.inputs, index),
            coeffs: row(&self.coeffs, index),
            outputs: self.outputs.row::<STREAMS>(index),
        }
    }
}

/// A row of the forward pass.
pub struct ForwardRow<'r, 'a, T: Element> {
    inputs: &'r [T],
    coeffs: &'r [T],
    outputs: Place<'r, 'a, T>,
}

impl<T: Element> Row<T> for ForwardRow<'_, '_, T> {
    const RESULTS: usize = 1;

    #[inline(always)]
    fn scan<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        &mut self,
        lanes: L,
        columns: Range<usize>,
        carry: T,
    ) -> T {
        let piece = scan::Forward {
            inputs: &self.inputs[columns.clone()],
            coeffs: &self.coeffs[columns.clone()],
            outputs: self.outputs.columns(columns),
        };
        let carry = scan::forward::<T, W, L, REVERSE>(lanes, piece, carry);
        self.outputs.send::<W, L>(lanes);
        carry
    }

    #[inline(always)]
    fn columns(&self) -> Range<usize> {
        0..self.inputs.len()
    }

    #[inline(always)]
    fn fetch<const REVERSE: bool>(&self, columns: &Range<usize>) {
        stream::fetch::<T, 2, REVERSE>([self.inputs, self.coeffs], columns);
    }
}

/// The backward pass. It walks against the recurrence, and its carry is the gradient of the state.
pub struct Backward<'a, T> {
    pub direction: Direction,
    pub log_coeffs: bool,
    pub d_outputs: ArrayView2<'a, T>,
    pub coeffs: ArrayView2<'a, T>,
    pub outputs: ArrayView2<'a, T>,
    /// The states before the rectangle's first step, one per row.
    pub states: ArrayView1<'a, T>,
    pub d_inputs: ArrayViewMut2<'a, T>,
    pub d_coeffs: ArrayViewMut2<'a, T>,
}

impl<'a, T: Element> Pass<T> for Backward<'a, T> {
    type Tile = BackwardTile<'a, T>;
    const ARRAYS: usize = 5;

    fn walk(&self) -> Direction {
        self.direction.reversed()
    }

    fn dim(&self) -> (usize, usize) {
        self.d_outputs.dim()
    }

    fn split_at(self, axis: Axis, index: usize) -> (Self, Self) {
        let Backward { direction, log_coeffs, states, .. } = self;
        let column = |index| self.outputs.index_axis_move(Axis(1), index);
        let states = match direction {
            _ if axis == Axis(0) => states.split_at(Axis(0), index),
            Direction::Forward if index > 0 => (states, column(index - 1)),
            Direction::Reverse if index < self.outputs.ncols() => (column(index), states),
            // One of the two is empty.
            _ => (states, states),
        };
        let d_outputs = self.d_outputs.split_at(axis, index);
        let coeffs = self.coeffs.split_at(axis, index);
        let outputs = self.outputs.split_at(axis, index);
        let d_inputs = self.d_inputs.split_at(axis, index);
        let d_coeffs = self.d_coeffs.split_at(axis, index);
        (
            Backward {
                direction,
                log_coeffs,
                d_outputs: d_outputs.0,
                coeffs: coeffs.0,
                outputs: outputs.0,
                states: states.0,
                d_inputs: d_inputs.0,
                d_coeffs: d_coeffs.0,
            },
            Backward {
                direction,
                log_coeffs,
                d_outputs: d_outputs.1,
                coeffs: coeffs.1,
                outputs: outputs.1,
                states: states.1,
                d_inputs: d_inputs.1,
                d_coeffs: d_coeffs.1,
            },
        )
    }

    fn is_loaded(&self) -> bool {
        let inputs = [&self.d_outputs, &self.coeffs, &self.outputs];
        let results = [&self.d_inputs.view(), &self.d_coeffs.view()];
        !self.log_coeffs && inputs.into_iter().chain(results).all(has_contiguous_rows)
    }

    fn results_adjoin(&self) -> bool {
        self.d_inputs.is_standard_layout() && self.d_coeffs.is_standard_layout()
    }

    fn load(self, stores: Stores) -> BackwardTile<'a, T> {
        let walk = self.walk();
        BackwardTile {
            walk,
            log_coeffs: self.log_coeffs,
            d_outputs: contiguous(self.d_outputs),
            coeffs: coefficients(self.coeffs, self.log_coeffs),
            outputs: contiguous(self.outputs),
            states: self.states,
            d_inputs: Target::new(self.d_inputs, stores, walk),
            d_coeffs: Target::new(self.d_coeffs, stores, walk),
        }
    }
}

/// A rectangle of the backward pass in contiguous rows.
pub struct BackwardTile<'a, T: Element> {
    walk: Direction,
    log_coeffs: bool,
    d_outputs: CowArray<'a, T, Ix2>,
    coeffs: CowArray<'a, T, Ix2>,
    outputs: CowArray<'a, T, Ix2>,
    states: ArrayView1<'a, T>,
    d_inputs: Target<'a, T>,
    d_coeffs: Target<'a, T>,
}

impl<'a, T: Element> Tile<T> for BackwardTile<'a, T> {
    type Rows<'r>
        = BackwardRows<'r, 'a, T>
    where
        Self: 'r;

    fn rows(&mut self, columns: Option<Range<usize>>) -> BackwardRows<'_, 'a, T> {
        // The states before the columns in the direction of the recurrence, which is opposite to
        // the walk's.
        let states = match (self.walk, &columns) {
            (Direction::Reverse, &Some(Range { start, .. })) if start > 0 => {
                self.outputs.column(start - 1)
            }
            (Direction::Forward, &Some(Range { end, .. })) if end < self.outputs.ncols() => {
                self.outputs.column(end)
            }
            _ => self.states.view(),
        };
        BackwardRows {
            log_coeffs: self.log_coeffs,
            d_outputs: part(&self.d_outputs, &columns),
            coeffs: part(&self.coeffs, &columns),
            outputs: part(&self.outputs, &columns),
            states,
            d_inputs: self.d_inputs.places(&columns),
            d_coeffs: self.d_coeffs.places(&columns),
        }
    }

    fn restart(&mut self) {
        self.d_inputs.restart();
        self.d_coeffs.restart();
    }

    fn store(self, simd: Simd) {
        self.d_inputs.store(simd);
        self.d_coeffs.store(simd);
    }
}

/// Columns of the rows of the backward pass.
pub struct BackwardRows<'r, 'a, T: Element> {
    log_coeffs: bool,
    d_outputs: ArrayView2<'r, T>,
    coeffs: ArrayView2<'r, T>,
    outputs: ArrayView2<'r, T>,
    states: ArrayView1<'r, T>,
    d_inputs: Places<'r, 'a, T>,
    d_coeffs: Places<'r, 'a, T>,
}

impl<'a, T: Element> Rows<T> for BackwardRows<'_, 'a, T> {
    type Row<'r>
        = BackwardRow<'r, 'a, T>
    where
        Self: 'r;

    #[inline(always)]
    fn row<const STREAMS: bool>(&mut self, index: usize) -> BackwardRow<'_, 'a, T> {
        BackwardRow {
            d_outputs: row(&self.d_outputs, index),
            coeffs: row(&self.coeffs, index),
            outputs: row(&self.outputs, index),
            state: self.states[index],
            d_inputs: self.d_inputs.row::<STREAMS>(index),
            d_coeffs: self.d_coeffs.row::<STREAMS>(index),
            log: self.log_coeffs,
        }
    }
}

/// A row of the backward pass.
pub struct BackwardRow<'r, 'a, T: Element> {
    d_outputs: &'r [T],
    coeffs: &'r [T],
    outputs: &'r [T],
    state: T,
    d_inputs: Place<'r, 'a, T>,
    d_coeffs: Place<'r, 'a, T>,
    log: bool,
}

impl<T: Element> Row<T> for BackwardRow<'_, '_, T> {
    const RESULTS: usize = 2;

    #[inline(always)]
    fn scan<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        &mut self,
        lanes: L,
        columns: Range<usize>,
        carry: T,
    ) -> T {
        // The state before the columns in the direction of the recurrence, which is opposite to the
        // walk's.
        let state = if REVERSE {
            self.outputs[..columns.start].last()
        } else {
            self.outputs[columns.end..].first()
        };
        let piece = scan::Backward {
            d_outputs: &self.d_outputs[columns.clone()],
            coeffs: &self.coeffs[columns.clone()],
            outputs: &self.outputs[columns.clone()],
            state: state.copied().unwrap_or(self.state),
            d_inputs: self.d_inputs.columns(columns.clone()),
            d_coeffs: self.d_coeffs.columns(columns),
            log: self.log,
        };
        let carry = scan::backward::<T, W, L, REVERSE>(lanes, piece, carry);
        self.d_inputs.send::<W, L>(lanes);
        self.d_coeffs.send::<W, L>(lanes);
        carry
    }

    #[inline(always)]
    fn columns(&self) -> Range<usize> {
        0..self.outputs.len()
    }

    #[inline(always)]
    fn fetch<const REVERSE: bool>(&self, columns: &Range<usize>) {
        let rows = [self.d_outputs, self.coeffs, self.outputs];
        stream::fetch::<T, 3, REVERSE>(rows, columns);
    }
}

/// All rows, or some columns of all rows.
fn part<'a, T>(
    array: &'a CowArray<'_, T, Ix2>,
    columns: &Option<Range<usize>>,
) -> ArrayView2<'a, T> {
    match columns {
        Some(columns) => array.slice(s![.., columns.clone()]),
        None => array.view(),
    }
}

/// A row of a tile, all of whose rows are contiguous.
#[inline(always)]
fn row<'a, T>(array: &'a ArrayView2<'_, T>, index: usize) -> &'a [T] {
    array.row(index).to_slice().unwrap_or_default()
}
