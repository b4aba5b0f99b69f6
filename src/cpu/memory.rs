//! Arrays of any strides, made contiguous along their rows where they are not.

use ndarray::{Array2, ArrayView2, ArrayViewMut2, CowArray, Ix2, Zip};

use super::stream::Outbox;
use crate::Element;

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

/// Where results go: into the caller's array, or into a copy that is contiguous along its rows and
/// [stored](Target::store) when it is complete.
pub struct Target<'a, T> {
    array: ArrayViewMut2<'a, T>,
    copy: Option<Array2<T>>,
}

impl<'a, T: Element> Target<'a, T> {
    /// With an outbox the copy is one of its stages.
    pub fn new(array: ArrayViewMut2<'a, T>, outbox: Option<&mut Outbox<'a, T>>) -> Self {
        let copy = match outbox {
            Some(outbox) => Some(outbox.stage(array.dim())),
            None if has_contiguous_rows(&array.view()) => None,
            None => Some(Array2::zeros(array.dim())),
        };
        Target { array, copy }
    }

    /// A row to write to.
    #[inline(always)]
    pub fn row(&mut self, index: usize) -> &mut [T] {
        let row = match &mut self.copy {
            Some(copy) => copy.row_mut(index),
            None => self.array.row_mut(index),
        };
        row.into_slice().unwrap_or_default()
    }

    /// Hands the results to the caller, or to the outbox that does.
    pub fn store(mut self, outbox: Option<&mut Outbox<'a, T>>) {
        match (self.copy, outbox) {
            (Some(copy), Some(outbox)) => outbox.post(copy, self.array),
            (Some(copy), None) => self.array.assign(&copy),
            (None, _) => {}
        }
    }
}
