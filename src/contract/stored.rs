//! What it adds to the bound when arrays are stored in fewer bits than are computed with.

use ndarray::Array2;

use super::Data;
use crate::Element;
#[cfg(any(feature = "cuda", feature = "simt"))]
use crate::device::{Narrowing, Storage};

/// The rounding of what passes through memory, for numbers `T` that are computed with.
///
/// The engine is given arrays that the storage holds exactly, and so is the reference. Each of its
/// results is rounded once more: to nearest, by at most the storage's unit round-off times the
/// result, or half of its smallest subnormal.
#[derive(Debug, Clone, Copy)]
pub struct Stored<T> {
    /// A number as it is read back.
    round: fn(T) -> T,
    unit_roundoff: f64,
    smallest: f64,
    /// What is larger may become infinite.
    largest: f64,
}

impl<T: Element> Stored<T> {
    /// Nothing is rounded.
    pub fn exactly() -> Stored<T> {
        Stored { round: |x| x, unit_roundoff: 0.0, smallest: 0.0, largest: f64::INFINITY }
    }

    /// The rounding of a storage type.
    #[cfg(any(feature = "cuda", feature = "simt"))]
    pub fn as_in<S: Storage<Accum = T>>() -> Stored<T> {
        let Narrowing { unit_roundoff, smallest, largest } = S::NARROWING;
        Stored { round: |x| S::narrow(x).widen(), unit_roundoff, smallest, largest }
    }

    /// A number as it is read back.
    pub(super) fn number(&self, number: T) -> T {
        (self.round)(number)
    }

    /// An array as it is read back.
    pub fn array(&self, array: Array2<T>) -> Array2<T> {
        array.mapv_into(self.round)
    }

    /// The data of a case as it is read back; states are not stored in fewer bits.
    pub(super) fn data(&self, data: Data<T>) -> Data<T> {
        data.map(|array| self.array(array))
    }

    /// The bound of a result that is within `bound` of `exact` before it is stored.
    pub fn bound(&self, exact: f64, bound: f64) -> f64 {
        let largest = exact + bound;
        if largest >= self.largest {
            return f64::INFINITY;
        }
        bound + self.unit_roundoff * largest + self.smallest / 2.0
    }
}
