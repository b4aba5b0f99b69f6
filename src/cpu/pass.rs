//! One pass over rectangles of arrays, of which the forward and the backward pass are two
//! instances.
//!
//! A pass reads `I` arrays and writes `O`: `[inputs, coeffs]` to `[outputs]` forward, and
//! `[d_outputs, coeffs, outputs]` to `[d_inputs, d_coeffs]` backward. What differs between the two
//! is a [`Formula`], which computes one vector of steps. Everything else is written once, and is
//! compiled for each formula. The data flows through four forms:
//!
//! - [`Rectangle`]: views of the caller's arrays with any strides. It can be cut along both axes,
//!   so that threads share it.
//! - [`Tile`]: the same in contiguous rows, with plain coefficients.
//! - [`TileRows`]: all or some of the tile's columns.
//! - [`TileRow`]: slices of one row, of which [`scan`] takes pieces.
//!
//! The tests are in `tests/suite`: `cpu.rs` and `streaming.rs`.

use std::array::from_fn;
use std::marker::PhantomData;
use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, CowArray, Ix2, s};

use super::lanes::{LaneJob, Lanes};
use super::memory::{Stores, Target, Targets, contiguous, exponentials, is_contiguous};
use super::scan::{self, Backward, COEFFS, Formula, Forward, Piece};
use super::simd::Simd;
use super::stream;
use crate::{Direction, Element, Options};

/// The forward pass. Its carry is the state.
pub type ForwardPass<'a, T> = Rectangle<'a, T, Forward, 2, 1>;

/// The backward pass. It walks against the recurrence, and its carry is the gradient of the state.
pub type BackwardPass<'a, T> = Rectangle<'a, T, Backward, 3, 2>;

/// A rectangle of a problem: some of the rows, and the same range of columns of each.
pub struct Rectangle<'a, T, F, const I: usize, const O: usize> {
    /// The direction in which the pass walks along the rows.
    pub walk: Direction,
    log_coeffs: bool,
    inputs: [ArrayView2<'a, T>; I],
    results: [ArrayViewMut2<'a, T>; O],
    /// For the backward pass: the states before the rectangle's first step, one per row.
    states: ArrayView1<'a, T>,
    formula: PhantomData<F>,
}

impl<'a, T, F, const I: usize, const O: usize> Rectangle<'a, T, F, I, O>
where
    T: Element,
    F: Formula<I, O>,
{
    /// The number of arrays that are read and written.
    pub const ARRAYS: usize = I + O;

    /// A whole pass; `states` are the initial states of a backward pass, and are not read forward.
    pub fn new(
        options: &Options<T>,
        inputs: [ArrayView2<'a, T>; I],
        states: ArrayView1<'a, T>,
        results: [ArrayViewMut2<'a, T>; O],
    ) -> Self {
        let Options { direction, log_coeffs, .. } = *options;
        let walk = if F::IS_GRADIENT { direction.reversed() } else { direction };
        Rectangle { walk, log_coeffs, inputs, results, states, formula: PhantomData }
    }

    /// The number of rows and of columns.
    pub fn dim(&self) -> (usize, usize) {
        self.inputs[0].dim()
    }

    /// Cuts the rectangle in two, before row or column `index`.
    pub fn split_at(self, axis: Axis, index: usize) -> (Self, Self) {
        let (first_states, second_states) = self.split_states(axis, index);
        let Rectangle { walk, log_coeffs, formula, .. } = self;
        let part = |inputs, results, states| Rectangle {
            walk,
            log_coeffs,
            inputs,
            results,
            states,
            formula,
        };
        let (first, second) = unzip(self.inputs.map(|array| array.split_at(axis, index)));
        let results = unzip(self.results.map(|array| array.split_at(axis, index)));
        (part(first, results.0, first_states), part(second, results.1, second_states))
    }

    /// The states before each of the two parts.
    fn split_states(&self, axis: Axis, index: usize) -> (ArrayView1<'a, T>, ArrayView1<'a, T>) {
        let (states, outputs) = (self.states, self.inputs[I - 1]);
        if !F::IS_GRADIENT {
            return (states, states);
        }
        let column = |index| outputs.index_axis_move(Axis(1), index);
        match self.walk {
            _ if axis == Axis(0) => states.split_at(Axis(0), index),
            Direction::Reverse if index > 0 => (states, column(index - 1)),
            Direction::Forward if index < outputs.ncols() => (column(index), states),
            // One of the two is empty.
            _ => (states, states),
        }
    }

    /// True if [`load`](Rectangle::load) copies nothing.
    pub fn is_loaded(&self) -> bool {
        !self.log_coeffs
            && self.inputs.iter().all(is_contiguous)
            && self.results.iter().all(|array| is_contiguous(&array.view()))
    }

    /// True if each row of results begins where the row before it ends.
    pub fn results_adjoin(&self) -> bool {
        self.results.iter().all(|array| array.is_standard_layout())
    }

    /// Makes the rows contiguous and the coefficients plain.
    pub fn load(self, stores: Stores) -> Tile<'a, T, F, I, O> {
        let Rectangle { walk, log_coeffs, inputs, states, formula, .. } = self;
        Tile {
            walk,
            log_coeffs,
            inputs: from_fn(|i| match i {
                COEFFS if log_coeffs => exponentials(inputs[i]),
                _ => contiguous(inputs[i]),
            }),
            results: self.results.map(|array| Target::new(array, stores, walk)),
            states,
            formula,
        }
    }
}

/// An array of pairs as a pair of arrays.
fn unzip<A, B, const N: usize>(pairs: [(A, B); N]) -> ([A; N], [B; N]) {
    let mut pairs = pairs.map(|(first, second)| (Some(first), Some(second)));
    let firsts = pairs.each_mut().map(|pair| pair.0.take());
    let seconds = pairs.map(|pair| pair.1);
    (firsts.map(|one| one.expect("there")), seconds.map(|one| one.expect("there")))
}

/// A rectangle in contiguous rows.
pub struct Tile<'a, T: Element, F, const I: usize, const O: usize> {
    walk: Direction,
    log_coeffs: bool,
    inputs: [CowArray<'a, T, Ix2>; I],
    results: [Target<'a, T>; O],
    states: ArrayView1<'a, T>,
    formula: PhantomData<F>,
}

impl<'a, T, F, const I: usize, const O: usize> Tile<'a, T, F, I, O>
where
    T: Element,
    F: Formula<I, O>,
{
    /// All rows, or some columns of all rows.
    pub fn rows(&mut self, columns: Option<Range<usize>>) -> TileRows<'_, 'a, T, F, I, O> {
        let inputs = self.inputs.each_ref().map(|array| match &columns {
            Some(columns) => array.slice(s![.., columns.clone()]),
            None => array.view(),
        });
        // The states before the columns in the direction of the recurrence, which is opposite to
        // the walk's.
        let outputs = &self.inputs[I - 1];
        let states = match (self.walk, &columns) {
            _ if !F::IS_GRADIENT => self.states,
            (Direction::Reverse, &Some(Range { start, .. })) if start > 0 => {
                outputs.column(start - 1)
            }
            (Direction::Forward, &Some(Range { end, .. })) if end < outputs.ncols() => {
                outputs.column(end)
            }
            _ => self.states,
        };
        TileRows {
            log_coeffs: self.log_coeffs,
            inputs,
            results: self.results.each_mut().map(|target| target.columns(&columns)),
            states,
            formula: PhantomData,
        }
    }

    /// Begins again: some columns are scanned a second time.
    pub fn restart(&mut self) {
        self.results.iter_mut().for_each(Target::restart);
    }

    /// Computes all columns of all rows; `carries` holds the carries before them, and then those
    /// after them.
    pub fn walk(mut self, simd: Simd, streams: bool, carries: ArrayViewMut1<T>) {
        scan_rows(simd, streams, self.walk, self.rows(None), carries);
        self.store(simd);
    }

    /// Hands the results to the caller.
    pub fn store(self, simd: Simd) {
        self.results.into_iter().for_each(|target| target.store(simd));
    }
}

/// Columns of the rows of a tile. A value with nothing behind a reference but elements: so a scan
/// of many short rows looks once at what they have in common.
pub struct TileRows<'r, 'a, T: Element, F, const I: usize, const O: usize> {
    log_coeffs: bool,
    inputs: [ArrayView2<'r, T>; I],
    results: [Targets<'r, 'a, T>; O],
    states: ArrayView1<'r, T>,
    formula: PhantomData<F>,
}

impl<T, F, const I: usize, const O: usize> TileRows<'_, '_, T, F, I, O>
where
    T: Element,
    F: Formula<I, O>,
{
    /// Walks all columns of a row from the carry before them; returns the carry after them.
    #[inline(always)]
    fn walk<const W: usize, L: Lanes<T, W>, const REVERSE: bool, const STREAMS: bool>(
        &mut self,
        lanes: L,
        row: usize,
        mut carry: T,
    ) -> T {
        // All rows are contiguous, and of one length: so a scan of many short rows computes once
        // how many vectors they have.
        let len = self.inputs[0].ncols();
        let Some(inputs) = contiguous_row(&self.inputs[0], row, len) else { return carry };
        let Some(coeffs) = contiguous_row(&self.inputs[COEFFS], row, len) else { return carry };
        let (mut outputs, mut state) = (&[][..], T::zero());
        if F::IS_GRADIENT {
            let Some(found) = contiguous_row(&self.inputs[I - 1], row, len) else { return carry };
            (outputs, state) = (found, self.states[row]);
        }
        let row = TileRow { log_coeffs: self.log_coeffs, row, inputs, coeffs, outputs, state };
        let (results, mut rest) = (&mut self.results, 0..len);
        if !STREAMS {
            return row.scan::<F, W, L, REVERSE, STREAMS, I, O>(lanes, results, rest, carry);
        }
        // Where results stream, step by step.
        while !rest.is_empty() {
            let step;
            (step, rest) = first(REVERSE, rest, stream::step::<T>(O));
            if F::IS_GRADIENT {
                stream::fetch::<T, 3, REVERSE>([inputs, coeffs, outputs], &step);
            } else {
                stream::fetch::<T, 2, REVERSE>([inputs, coeffs], &step);
            }
            carry = row.scan::<F, W, L, REVERSE, STREAMS, I, O>(lanes, results, step, carry);
        }
        carry
    }
}

/// A row of a tile, `len` elements; `None` if it is not contiguous, which does not happen.
#[inline(always)]
fn contiguous_row<'r, T>(array: &'r ArrayView2<'_, T>, row: usize, len: usize) -> Option<&'r [T]> {
    array.row(row).to_slice()?.get(..len)
}

/// The arrays of a row that a scan reads. Forward, `outputs` is empty.
struct TileRow<'r, T> {
    log_coeffs: bool,
    row: usize,
    inputs: &'r [T],
    coeffs: &'r [T],
    outputs: &'r [T],
    state: T,
}

impl<T: Element> TileRow<'_, T> {
    /// Computes some columns from the carry before them; returns the carry after them.
    #[inline(always)]
    fn scan<
        F,
        const W: usize,
        L,
        const REVERSE: bool,
        const STREAMS: bool,
        const I: usize,
        const O: usize,
    >(
        &self,
        lanes: L,
        targets: &mut [Targets<T>; O],
        columns: Range<usize>,
        carry: T,
    ) -> T
    where
        F: Formula<I, O>,
        L: Lanes<T, W>,
    {
        // The state before the columns in the direction of the recurrence, which is opposite to the
        // walk's.
        let state = match F::IS_GRADIENT {
            false => None,
            true if REVERSE => self.outputs[..columns.start].last(),
            true => self.outputs[columns.end..].first(),
        };
        let (first, others) = targets.split_at_mut(1);
        let d_coeffs: &mut [T] = match others {
            [target] => target.slot::<STREAMS>(self.row, columns.clone()),
            _ => &mut [],
        };
        let piece = Piece {
            inputs: &self.inputs[columns.clone()],
            coeffs: &self.coeffs[columns.clone()],
            outputs: if F::IS_GRADIENT { &self.outputs[columns.clone()] } else { &[] },
            state: state.copied().unwrap_or(self.state),
            results: first[0].slot::<STREAMS>(self.row, columns),
            d_coeffs,
            log_coeffs: self.log_coeffs,
        };
        let carry = scan::scan::<T, F, W, L, REVERSE, I, O>(lanes, piece, carry);
        // Not by a loop: for short rows, this must stay in registers.
        if STREAMS {
            first[0].send::<STREAMS, W, L>(lanes);
            if let [target] = others {
                target.send::<STREAMS, W, L>(lanes);
            }
        }
        carry
    }
}

/// Scans rows; `carries` holds the carries before the rows, and then those after them.
///
/// Only this is compiled for every instruction set. The code that deals out rows, cuts tiles and
/// copies them is compiled once.
pub fn scan_rows<T, F, const I: usize, const O: usize>(
    simd: Simd,
    streams: bool,
    walk: Direction,
    rows: TileRows<T, F, I, O>,
    carries: ArrayViewMut1<T>,
) where
    T: Element,
    F: Formula<I, O>,
{
    // Each is compiled by itself: short rows have no time for the other's questions.
    if streams {
        T::dispatch(simd, Scan::<_, _, true> { walk, rows, carries });
    } else {
        T::dispatch(simd, Scan::<_, _, false> { walk, rows, carries });
    }
}

/// Rows that are walked one after the other.
struct Scan<R, C, const STREAMS: bool> {
    walk: Direction,
    rows: R,
    carries: C,
}

impl<T, F, const I: usize, const O: usize, const STREAMS: bool> LaneJob<T>
    for Scan<TileRows<'_, '_, T, F, I, O>, ArrayViewMut1<'_, T>, STREAMS>
where
    T: Element,
    F: Formula<I, O>,
{
    type Output = ();
    const TAKES_STEPS: bool = true;

    #[inline(always)]
    fn run<const W: usize, L: Lanes<T, W>>(self, lanes: L) {
        match self.walk {
            Direction::Forward => self.walk::<W, L, false>(lanes),
            Direction::Reverse => self.walk::<W, L, true>(lanes),
        }
    }
}

impl<T, F, const I: usize, const O: usize, const STREAMS: bool>
    Scan<TileRows<'_, '_, T, F, I, O>, ArrayViewMut1<'_, T>, STREAMS>
where
    T: Element,
    F: Formula<I, O>,
{
    #[inline(always)]
    fn walk<const W: usize, L: Lanes<T, W>, const REVERSE: bool>(self, lanes: L) {
        let Scan { mut rows, mut carries, .. } = self;
        let height = carries.len();
        for i in 0..height {
            let row = if REVERSE { height - 1 - i } else { i };
            let carry = &mut carries[row];
            *carry = rows.walk::<W, L, REVERSE, STREAMS>(lanes, row, *carry);
        }
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
