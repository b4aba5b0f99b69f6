//! What the forward and the backward pass have in common: rectangles of arrays that can be cut along
//! both axes, and tiles in contiguous memory that can be scanned.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis, CowArray, Ix2};

use super::lanes::Lanes;
use super::memory::{Target, coefficients, contiguous, has_contiguous_rows};
use super::scan;
use super::stream::{self, Outbox};
use crate::{Direction, Element};

/// A rectangle of a problem: some of the rows, and of each the same range of columns.
pub trait Pass<'a, T: Element>: Send + Sized {
    /// The rectangle in memory that can be scanned.
    type Tile: Tile<'a, T>;

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

    /// How the rows of results lie.
    fn results(&self) -> Rows;

    /// Makes the rows contiguous and the coefficients plain. With an outbox, results are written to its stages.
    fn load(self, outbox: Option<&mut Outbox<'a, T>>) -> Self::Tile;
}

/// How rows lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rows {
    /// With strides along them.
    Strided,
    /// Contiguous each.
    Contiguous,
    /// Contiguous all together.
    Adjoining,
}

impl Rows {
    fn of<T>(view: &ArrayView2<T>) -> Self {
        if view.is_standard_layout() {
            Rows::Adjoining
        } else if has_contiguous_rows(view) {
            Rows::Contiguous
        } else {
            Rows::Strided
        }
    }
}

/// A rectangle in contiguous rows.
pub trait Tile<'a, T: Element>: Sized {
    /// The arrays of results.
    const RESULTS: usize;

    /// Computes some columns of a row from the carry before them; returns that after them.
    fn scan<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        &mut self,
        lanes: L,
        row: usize,
        columns: Range<usize>,
        carry: T,
    ) -> T;

    /// [Fetches](stream::fetch) what the scan will read a while after these columns.
    fn fetch<const REVERSE: bool>(&self, row: usize, columns: &Range<usize>);

    /// Hands the results to the caller, or to the outbox that does.
    fn store(self, outbox: Option<&mut Outbox<'a, T>>);

    /// [Scans](Tile::scan) columns; with an outbox step by step, and results of earlier tiles leave between the steps.
    #[inline(always)]
    fn walk<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        &mut self,
        lanes: L,
        row: usize,
        columns: Range<usize>,
        mut carry: T,
        mut outbox: Option<&mut Outbox<'a, T>>,
    ) -> T {
        let width = if outbox.is_some() { stream::step::<T>() } else { columns.len() };
        let mut rest = columns;
        while !rest.is_empty() {
            let step;
            (step, rest) = first::<REVERSE>(rest, width);
            if outbox.is_some() {
                self.fetch::<REVERSE>(row, &step);
            }
            carry = self.scan::<W, L, REVERSE>(lanes, row, step.clone(), carry);
            if let Some(outbox) = &mut outbox {
                outbox.send(Self::RESULTS * step.len());
            }
        }
        carry
    }
}

/// The columns that a walk meets first, at most `width`, and the rest.
///
/// The cut is at a multiple of `width` from the first column, whatever the walk: so vectors begin at the
/// same columns as without it, and the result has the same bits.
#[inline(always)]
pub fn first<const REVERSE: bool>(
    Range { start, end }: Range<usize>,
    width: usize,
) -> (Range<usize>, Range<usize>) {
    if REVERSE {
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

impl<'a, T: Element> Pass<'a, T> for Forward<'a, T> {
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

    fn results(&self) -> Rows {
        Rows::of(&self.outputs.view())
    }

    fn load(self, outbox: Option<&mut Outbox<'a, T>>) -> ForwardTile<'a, T> {
        ForwardTile {
            inputs: contiguous(self.inputs),
            coeffs: coefficients(self.coeffs, self.log_coeffs),
            outputs: Target::new(self.outputs, outbox),
        }
    }
}

/// A rectangle of the forward pass in contiguous rows.
pub struct ForwardTile<'a, T> {
    inputs: CowArray<'a, T, Ix2>,
    coeffs: CowArray<'a, T, Ix2>,
    outputs: Target<'a, T>,
}

impl<'a, T: Element> Tile<'a, T> for ForwardTile<'a, T> {
    const RESULTS: usize = 1;

    #[inline(always)]
    fn scan<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        &mut self,
        lanes: L,
        index: usize,
        columns: Range<usize>,
        carry: T,
    ) -> T {
        let piece = scan::Forward {
            inputs: &row(&self.inputs, index)[columns.clone()],
            coeffs: &row(&self.coeffs, index)[columns.clone()],
            outputs: &mut self.outputs.row(index)[columns],
        };
        scan::forward::<T, W, L, REVERSE>(lanes, piece, carry)
    }

    #[inline(always)]
    fn fetch<const REVERSE: bool>(&self, index: usize, columns: &Range<usize>) {
        for array in [&self.inputs, &self.coeffs] {
            stream::fetch::<T, REVERSE>(row(array, index), columns);
        }
    }

    fn store(self, outbox: Option<&mut Outbox<'a, T>>) {
        self.outputs.store(outbox);
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

impl<'a, T: Element> Pass<'a, T> for Backward<'a, T> {
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

    fn results(&self) -> Rows {
        Rows::of(&self.d_inputs.view()).min(Rows::of(&self.d_coeffs.view()))
    }

    fn load(self, mut outbox: Option<&mut Outbox<'a, T>>) -> BackwardTile<'a, T> {
        BackwardTile {
            log_coeffs: self.log_coeffs,
            d_outputs: contiguous(self.d_outputs),
            coeffs: coefficients(self.coeffs, self.log_coeffs),
            outputs: contiguous(self.outputs),
            states: self.states,
            d_inputs: Target::new(self.d_inputs, outbox.as_deref_mut()),
            d_coeffs: Target::new(self.d_coeffs, outbox),
        }
    }
}

/// A rectangle of the backward pass in contiguous rows.
pub struct BackwardTile<'a, T> {
    log_coeffs: bool,
    d_outputs: CowArray<'a, T, Ix2>,
    coeffs: CowArray<'a, T, Ix2>,
    outputs: CowArray<'a, T, Ix2>,
    states: ArrayView1<'a, T>,
    d_inputs: Target<'a, T>,
    d_coeffs: Target<'a, T>,
}

impl<'a, T: Element> Tile<'a, T> for BackwardTile<'a, T> {
    const RESULTS: usize = 2;

    #[inline(always)]
    fn scan<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        &mut self,
        lanes: L,
        index: usize,
        columns: Range<usize>,
        carry: T,
    ) -> T {
        let outputs = row(&self.outputs, index);
        // Before the columns in the direction of the recurrence, which is opposite to the walk's.
        let before =
            if REVERSE { outputs[..columns.start].last() } else { outputs[columns.end..].first() };
        let piece = scan::Backward {
            d_outputs: &row(&self.d_outputs, index)[columns.clone()],
            coeffs: &row(&self.coeffs, index)[columns.clone()],
            outputs: &outputs[columns.clone()],
            state: before.copied().unwrap_or(self.states[index]),
            d_inputs: &mut self.d_inputs.row(index)[columns.clone()],
            d_coeffs: &mut self.d_coeffs.row(index)[columns],
            log: self.log_coeffs,
        };
        scan::backward::<T, W, L, REVERSE>(lanes, piece, carry)
    }

    #[inline(always)]
    fn fetch<const REVERSE: bool>(&self, index: usize, columns: &Range<usize>) {
        for array in [&self.d_outputs, &self.coeffs, &self.outputs] {
            stream::fetch::<T, REVERSE>(row(array, index), columns);
        }
    }

    fn store(self, mut outbox: Option<&mut Outbox<'a, T>>) {
        self.d_inputs.store(outbox.as_deref_mut());
        self.d_coeffs.store(outbox);
    }
}

/// A row of a tile, all of whose rows are contiguous.
#[inline(always)]
fn row<'a, T>(array: &'a CowArray<'_, T, Ix2>, index: usize) -> &'a [T] {
    array.row(index).to_slice().unwrap_or_default()
}
