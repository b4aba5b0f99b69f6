//! Arrays of any strides, made contiguous along their rows where they are not.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, CowArray, Ix2, Zip, s};

use super::lanes::Lanes;
use super::simd::Simd;
use super::stream::{self, ResultStream};
use crate::{Direction, Element};

/// True if the elements of each row are consecutive in memory.
pub fn is_contiguous<T>(view: &ArrayView2<T>) -> bool {
    view.ncols() <= 1 || view.strides()[1] == 1
}

/// The view itself if its rows are contiguous, a copy in standard layout otherwise.
pub fn contiguous<T: Element>(view: ArrayView2<'_, T>) -> CowArray<'_, T, Ix2> {
    if is_contiguous(&view) { view.into() } else { mapped(view, |element| element) }
}

/// `e^x` of every element, in standard layout.
pub fn exponentials<'a, T: Element>(view: ArrayView2<T>) -> CowArray<'a, T, Ix2> {
    mapped(view, T::exp)
}

fn mapped<'a, T: Element>(view: ArrayView2<T>, map: impl Fn(T) -> T) -> CowArray<'a, T, Ix2> {
    let mut copy = Array2::zeros(view.dim());
    Zip::from(&mut copy).and(&view).for_each(|to, from| *to = map(*from));
    copy.into()
}

/// The kind of stores that write results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// In any order, by ordinary stores.
    Ordinary,
    /// In any order, to a copy that goes past the caches when it is complete.
    Staged,
    /// Past the caches, in the order of the walk. Rows adjoin, or there is only one.
    Streaming,
}

/// The destination of an array of results.
pub enum Target<'a, T: Element> {
    /// Into the caller's array.
    Array(ArrayViewMut2<'a, T>),
    /// Into a copy that is contiguous along its rows, and is [stored](Target::store) when it is
    /// complete.
    Copy(ArrayViewMut2<'a, T>, Array2<T>, Stores),
    /// Past the caches.
    Stream(ResultStream<'a, T>),
}

/// The destination of the results of some columns of all rows.
pub enum Targets<'r, 'a, T: Element> {
    Memory(ArrayViewMut2<'r, T>),
    Stream(&'r mut ResultStream<'a, T>),
}

impl<'a, T: Element> Target<'a, T> {
    pub fn new(array: ArrayViewMut2<'a, T>, stores: Stores, walk: Direction) -> Self {
        match stores {
            Stores::Streaming if array.is_standard_layout() => {
                Target::Stream(ResultStream::new(array.into_slice().unwrap_or_default(), walk))
            }
            Stores::Ordinary | Stores::Streaming if is_contiguous(&array.view()) => {
                Target::Array(array)
            }
            _ => {
                let copy = Array2::zeros(array.dim());
                Target::Copy(array, copy, stores)
            }
        }
    }

    /// Returns all columns, or some, to write to; of a stream the columns that the walk meets next.
    pub fn columns(&mut self, columns: &Option<Range<usize>>) -> Targets<'_, 'a, T> {
        let all = match self {
            Target::Array(array) => array.view_mut(),
            Target::Copy(_, copy, _) => copy.view_mut(),
            Target::Stream(stream) => return Targets::Stream(stream),
        };
        Targets::Memory(match columns {
            Some(columns) => all.slice_move(s![.., columns.clone()]),
            None => all,
        })
    }

    /// Begins again: some columns are written a second time.
    pub fn restart(&mut self) {
        if let Target::Stream(stream) = self {
            stream.restart();
        }
    }

    /// Hands the results to the caller.
    pub fn store(self, simd: Simd) {
        if let Target::Copy(mut array, copy, stores) = self {
            match (copy.as_slice(), array.as_slice_mut()) {
                (Some(from), Some(to)) if stores == Stores::Staged => {
                    T::dispatch(simd, stream::Copy { from, to });
                }
                _ => array.assign(&copy),
            }
        }
    }
}

impl<T: Element> Targets<'_, '_, T> {
    /// Returns where to write the results of some columns of a row. A stream (if `STREAMS`) takes
    /// them in the order of the walk.
    #[inline(always)]
    pub fn slot<const STREAMS: bool>(&mut self, row: usize, columns: Range<usize>) -> &mut [T] {
        match self {
            Targets::Memory(array) => {
                &mut array.row_mut(row).into_slice().unwrap_or_default()[columns]
            }
            Targets::Stream(stream) if STREAMS => stream.slot(columns.len()),
            Targets::Stream(_) => &mut [],
        }
    }

    /// Passes on the results that were written there.
    #[inline(always)]
    pub fn send<const STREAMS: bool, const W: usize, L: Lanes<T, W>>(&mut self, lanes: L) {
        if let Targets::Stream(stream) = self
            && STREAMS
        {
            stream.send::<W, L>(lanes);
        }
    }
}
