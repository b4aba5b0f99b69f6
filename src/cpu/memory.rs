//! Arrays of any strides, made contiguous along their rows where they are not.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, CowArray, Ix2, Zip, s};

use super::lanes::Lanes;
use super::simd::Simd;
use super::stream::{self, Stream};
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

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// In any order, by ordinary stores.
    Ordinary,
    /// In any order, to a copy that goes past the caches when it is complete.
    Staged,
    /// Past the caches, in the order of the walk. Rows adjoin, or there is only one.
    Streaming,
}

/// Where an array of results goes.
pub enum Target<'a, T: Element> {
    /// Into the caller's array.
    Array(ArrayViewMut2<'a, T>),
    /// Into a copy that is contiguous along its rows, and is [stored](Target::store) when it is
    /// complete.
    Copy(ArrayViewMut2<'a, T>, Array2<T>, Stores),
    /// Past the caches.
    Stream(Stream<'a, T>),
}

/// Where the results of some columns of all rows go.
pub enum Targets<'r, 'a, T: Element> {
    Memory(ArrayViewMut2<'r, T>),
    Stream(&'r mut Stream<'a, T>),
}

/// Where the results of a row go.
pub enum RowTarget<'r, 'a, T: Element> {
    Memory(&'r mut [T]),
    Stream(&'r mut Stream<'a, T>),
}

impl<'a, T: Element> Target<'a, T> {
    pub fn new(array: ArrayViewMut2<'a, T>, stores: Stores, walk: Direction) -> Self {
        match stores {
            Stores::Streaming if array.is_standard_layout() => {
                Target::Stream(Stream::new(array.into_slice().unwrap_or_default(), walk))
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

impl<'a, T: Element> Targets<'_, 'a, T> {
    /// Returns a row to write to; of a stream (if `STREAMS`) the row that the walk meets next.
    #[inline(always)]
    pub fn row<const STREAMS: bool>(&mut self, index: usize) -> RowTarget<'_, 'a, T> {
        let row = match self {
            Targets::Memory(array) => array.row_mut(index).into_slice(),
            Targets::Stream(stream) if STREAMS => return RowTarget::Stream(stream),
            Targets::Stream(_) => None,
        };
        RowTarget::Memory(row.unwrap_or_default())
    }
}

impl<T: Element> RowTarget<'_, '_, T> {
    /// Returns where to write the results of some columns; a stream takes them in the order of the
    /// walk.
    #[inline(always)]
    pub fn columns(&mut self, columns: Range<usize>) -> &mut [T] {
        match self {
            RowTarget::Memory(row) => &mut row[columns],
            RowTarget::Stream(stream) => stream.slot(columns.len()),
        }
    }

    /// Passes on the results that were written there.
    #[inline(always)]
    pub fn send<const W: usize, L: Lanes<T, W>>(&mut self, lanes: L) {
        if let RowTarget::Stream(stream) = self {
            stream.send::<W, L>(lanes);
        }
    }
}
