//! Arrays of any strides, made contiguous along their rows where they are not.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, CowArray, Ix2, Zip, s};

use super::lanes::Lanes;
use super::simd::Simd;
use super::stream::{self, Stream};
use crate::{Direction, Element};

/// Whether the elements of each row are consecutive in memory.
pub fn has_contiguous_rows<T>(view: &ArrayView2<T>) -> bool {
    view.ncols() <= 1 || view.strides()[1] == 1
}

/// The view itself if its rows are contiguous, a copy in standard layout otherwise.
pub fn contiguous<T: Element>(view: ArrayView2<'_, T>) -> CowArray<'_, T, Ix2> {
    if has_contiguous_rows(&view) { view.into() } else { mapped(view, |element| element).into() }
}

/// The coefficients themselves, contiguous along their rows.
pub fn coefficients<T: Element>(view: ArrayView2<'_, T>, log: bool) -> CowArray<'_, T, Ix2> {
    if log { mapped(view, T::exp).into() } else { contiguous(view) }
}

/// A copy in standard layout.
fn mapped<T: Element>(view: ArrayView2<T>, map: impl Fn(T) -> T) -> Array2<T> {
    let mut copy = Array2::zeros(view.dim());
    Zip::from(&mut copy).and(&view).for_each(|to, from| *to = map(*from));
    copy
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// In any order, by ordinary stores.
    Ordinary,
    /// In any order, to a copy that goes past the caches when it is complete.
    Staged,
    /// Past the caches, in the order of the walk. Rows adjoin, or there is one.
    Streaming,
}

/// Where results go.
pub enum Target<'a, T: Element> {
    /// Into the caller's array.
    Array(ArrayViewMut2<'a, T>),
    /// Into a copy that is contiguous along its rows, and is [stored](Target::store) when it is
    /// complete.
    Copy(ArrayViewMut2<'a, T>, Array2<T>, Stores),
    /// Past the caches.
    Stream(Stream<'a, T>),
}

/// Where the results of columns of all rows go.
pub enum Places<'r, 'a, T: Element> {
    Memory(ArrayViewMut2<'r, T>),
    Stream(&'r mut Stream<'a, T>),
}

/// Where the results of a row go.
pub enum Place<'r, 'a, T: Element> {
    Memory(&'r mut [T]),
    Stream(&'r mut Stream<'a, T>),
}

impl<'a, T: Element> Target<'a, T> {
    pub fn new(array: ArrayViewMut2<'a, T>, stores: Stores, walk: Direction) -> Self {
        match stores {
            Stores::Streaming if array.is_standard_layout() => {
                Target::Stream(Stream::new(array.into_slice().unwrap_or_default(), walk))
            }
            Stores::Staged => {
                let copy = Array2::zeros(array.dim());
                Target::Copy(array, copy, stores)
            }
            _ if has_contiguous_rows(&array.view()) => Target::Array(array),
            _ => {
                let copy = Array2::zeros(array.dim());
                Target::Copy(array, copy, Stores::Ordinary)
            }
        }
    }

    /// The rows, or some columns of them, to write to; of a stream those that the walk has come to.
    pub fn places(&mut self, columns: &Option<Range<usize>>) -> Places<'_, 'a, T> {
        let all = match self {
            Target::Array(array) => array.view_mut(),
            Target::Copy(_, copy, _) => copy.view_mut(),
            Target::Stream(stream) => return Places::Stream(stream),
        };
        Places::Memory(match columns {
            Some(columns) => all.slice_move(s![.., columns.clone()]),
            None => all,
        })
    }

    /// Before some columns come again.
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

impl<'a, T: Element> Places<'_, 'a, T> {
    /// A row to write to; of a stream (if `STREAMS`) the one that the walk has come to.
    #[inline(always)]
    pub fn row<const STREAMS: bool>(&mut self, index: usize) -> Place<'_, 'a, T> {
        let row = match self {
            Places::Memory(array) => array.row_mut(index).into_slice(),
            Places::Stream(stream) if STREAMS => return Place::Stream(stream),
            Places::Stream(_) => None,
        };
        Place::Memory(row.unwrap_or_default())
    }
}

impl<T: Element> Place<'_, '_, T> {
    /// Where to write the results of some columns; to a stream they come in the order of the walk.
    #[inline(always)]
    pub fn columns(&mut self, columns: Range<usize>) -> &mut [T] {
        match self {
            Place::Memory(row) => &mut row[columns],
            Place::Stream(stream) => stream.slot(columns.len()),
        }
    }

    /// Says that those results are there.
    #[inline(always)]
    pub fn send<const W: usize, L: Lanes<T, W>>(&mut self, lanes: L) {
        if let Place::Stream(stream) = self {
            stream.send::<W, L>(lanes);
        }
    }
}
