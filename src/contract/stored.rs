//! The rounding of arrays that are stored in fewer bits than are computed with.

use ndarray::Array2;

use super::Data;
use crate::Element;
#[cfg(any(feature = "cuda", feature = "simt"))]
use crate::device::{Narrowing, Storage};

/// The rounding of numbers that pass through memory, if `T` is the type of computation.
///
/// The engine and the reference are given arrays that the storage holds exactly. Each result of the
/// engine is rounded once more: to nearest, by at most the storage's unit round-off times the
/// result, or half of its smallest subnormal.
#[derive(Debug, Clone, Copy)]
pub struct Stored<T> {
    /// Returns a number as it is read back from memory.
    round: fn(T) -> T,
    unit_roundoff: f64,
    smallest: f64,
    /// The largest finite number; larger ones may become infinite.
    largest: f64,
}

impl<T: Element> Stored<T> {
    /// Storage that rounds nothing.
    pub fn exactly() -> Stored<T> {
        Stored { round: |x| x, unit_roundoff: 0.0, smallest: 0.0, largest: f64::INFINITY }
    }

    /// Storage of the type `S`.
    #[cfg(any(feature = "cuda", feature = "simt"))]
    pub fn as_in<S: Storage<Accum = T>>() -> Stored<T> {
        let Narrowing { unit_roundoff, smallest, largest } = S::NARROWING;
        Stored { round: |x| S::narrow(x).widen(), unit_roundoff, smallest, largest }
    }

    /// Returns a number as it is read back from memory.
    pub(super) fn number(&self, number: T) -> T {
        (self.round)(number)
    }

    /// Returns an array as it is read back from memory.
    pub fn array(&self, array: Array2<T>) -> Array2<T> {
        array.mapv_into(self.round)
    }

    /// Returns the data of a case as it is read back; states are stored in full.
    pub(super) fn data(&self, data: Data<T>) -> Data<T> {
        data.map(|array| self.array(array))
    }

    /// Returns the bound of a result that is within `bound` of `exact` before it is stored.
    pub fn bound(&self, exact: f64, bound: f64) -> f64 {
        let largest = exact + bound;
        if largest >= self.largest {
            return f64::INFINITY;
        }
        bound + self.unit_roundoff * largest + self.smallest / 2.0
    }
}
