//! What the forward and the backward pass have in common: rectangles of arrays that can be cut along
//! both axes, and tiles in contiguous memory that can be scanned.

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis, CowArray, Ix2};

use super::lanes::Lanes;
use super::memory::{Target, coefficients, contiguous, has_contiguous_rows};
use super::scan;
use crate::{Direction, Element};

/// A rectangle of a problem: some of the rows, and of each the same range of columns.
pub trait Pass<T: Element>: Send + Sized {
    /// The rectangle in memory that can be scanned.
    type Tile: Tile<T>;

    /// The direction in which this pass walks along the rows.
    fn walk(&self) -> Direction;

    /// The number of rows and of columns.
    fn dim(&self) -> (usize, usize);

    /// Cuts the rectangle in two, before row or column `index`.
    fn split_at(self, axis: Axis, index: usize) -> (Self, Self);

    /// Whether [`load`](Pass::load) is free: nothing is copied.
    fn is_loaded(&self) -> bool;

    /// Makes the rows contiguous and the coefficients plain.
    fn load(self) -> Self::Tile;
}

/// A rectangle in contiguous rows.
pub trait Tile<T: Element>: Sized {
    /// Computes a row from the carry before it; returns that after it.
    fn scan<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        &mut self,
        lanes: L,
        row: usize,
        carry: T,
    ) -> T;

    /// Hands the results to the caller.
    fn store(self);
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

    fn load(self) -> ForwardTile<'a, T> {
        ForwardTile {
            inputs: contiguous(self.inputs),
            coeffs: coefficients(self.coeffs, self.log_coeffs),
            outputs: Target::new(self.outputs),
        }
    }
}

/// A rectangle of the forward pass in contiguous rows.
pub struct ForwardTile<'a, T> {
    inputs: CowArray<'a, T, Ix2>,
    coeffs: CowArray<'a, T, Ix2>,
    outputs: Target<'a, T>,
}

impl<T: Element> Tile<T> for ForwardTile<'_, T> {
    #[inline(always)]
    fn scan<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        &mut self,
        lanes: L,
        index: usize,
        carry: T,
    ) -> T {
        let piece = scan::Forward {
            inputs: row(&self.inputs, index),
            coeffs: row(&self.coeffs, index),
            outputs: self.outputs.row(index),
        };
        scan::forward::<T, W, L, REVERSE>(lanes, piece, carry)
    }

    fn store(self) {
        self.outputs.store();
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

    fn load(self) -> BackwardTile<'a, T> {
        BackwardTile {
            log_coeffs: self.log_coeffs,
            d_outputs: contiguous(self.d_outputs),
            coeffs: coefficients(self.coeffs, self.log_coeffs),
            outputs: contiguous(self.outputs),
            states: self.states,
            d_inputs: Target::new(self.d_inputs),
            d_coeffs: Target::new(self.d_coeffs),
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

impl<T: Element> Tile<T> for BackwardTile<'_, T> {
    #[inline(always)]
    fn scan<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        &mut self,
        lanes: L,
        index: usize,
        carry: T,
    ) -> T {
        let piece = scan::Backward {
            d_outputs: row(&self.d_outputs, index),
            coeffs: row(&self.coeffs, index),
            outputs: row(&self.outputs, index),
            state: self.states[index],
            d_inputs: self.d_inputs.row(index),
            d_coeffs: self.d_coeffs.row(index),
            log: self.log_coeffs,
        };
        scan::backward::<T, W, L, REVERSE>(lanes, piece, carry)
    }

    fn store(self) {
        self.d_inputs.store();
        self.d_coeffs.store();
    }
}

/// A row of a tile, all of whose rows are contiguous.
#[inline(always)]
fn row<'a, T>(array: &'a CowArray<'_, T, Ix2>, index: usize) -> &'a [T] {
    array.row(index).to_slice().unwrap_or_default()
}
