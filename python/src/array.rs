//! Arrays that belong to the caller: the places of their elements, and views of them.
//!
//! An [`Array`] is a description that somebody else gave: it may be wrong. [`Array::new`] refuses
//! what no memory can be, and [`check_results`] results that overlap. Views are then made of it for
//! the duration of a call, with any strides, also negative ones. `python/tests/test_native.py`
//! tries wrong descriptions.
#![allow(unsafe_code)]

use std::fmt;
use std::ops::Range;

use linrec::kernels::ElementType;
use ndarray::{ArrayViewD, ArrayViewMutD, Axis, IxDyn, ShapeBuilder};
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;

/// The type of elements: numbers that the library computes with, or flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    Number(ElementType),
    /// A byte that is 0 or not: `bool` or `uint8`.
    Flag,
}

impl Dtype {
    pub const F32: Dtype = Dtype::Number(ElementType::F32);
    pub const F64: Dtype = Dtype::Number(ElementType::F64);
    pub const F16: Dtype = Dtype::Number(ElementType::F16);
    pub const BF16: Dtype = Dtype::Number(ElementType::Bf16);
    pub const COMPLEX64: Dtype = Dtype::Number(ElementType::Complex64);
    pub const COMPLEX128: Dtype = Dtype::Number(ElementType::Complex128);

    pub fn bytes(self) -> usize {
        match self {
            Dtype::Number(element) => element.bytes(),
            Dtype::Flag => 1,
        }
    }

    /// Returns the type in which elements are computed.
    pub fn accumulator(self) -> Dtype {
        match self {
            Dtype::Number(element) => Dtype::Number(element.accumulator()),
            Dtype::Flag => self,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dtype::Number(element) => element.fmt(f),
            Dtype::Flag => f.write_str("u8"),
        }
    }
}

/// The memory that elements are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Cpu,
    Cuda(usize),
}

/// An array that the caller lends for the duration of a call.
#[derive(Debug)]
pub struct Array {
    pub name: &'static str,
    pub place: Place,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    /// The strides, in elements.
    strides: Vec<isize>,
    data: *mut u8,
    read_only: bool,
}

// SAFETY: the owner keeps the memory for the duration of the call, and any thread may read and
// write there.
unsafe impl Send for Array {}
// SAFETY: as above; through shared references it is only read.
unsafe impl Sync for Array {}

impl Array {
    /// Describes an array as its owner does; an error if it is larger than any memory.
    pub fn new(
        name: &'static str,
        data: *mut u8,
        place: Place,
        dtype: Dtype,
        shape: Vec<usize>,
        strides: Option<Vec<isize>>,
        read_only: bool,
    ) -> PyResult<Array> {
        let strides = strides.unwrap_or_else(|| row_after_row(&shape));
        let array = Array { name, place, dtype, shape, strides, data, read_only };
        let elements = array.shape.iter().filter(|&&size| size > 0);
        let all = elements.fold(array.dtype.bytes(), |all, &size| all.saturating_mul(size));
        if isize::try_from(all).is_err() || array.reach().is_none() {
            return Err(array.refused("is larger than any memory"));
        }
        if !array.is_empty() && array.data.is_null() {
            return Err(array.refused("has no memory: its owner has given it back"));
        }
        if array.bytes().is_none() {
            return Err(array.refused("reaches beyond the last address"));
        }
        let alignment = match array.dtype {
            Dtype::COMPLEX64 => 4,
            Dtype::COMPLEX128 => 8,
            real => real.bytes(),
        };
        if !array.is_empty() && !(array.data as usize).is_multiple_of(alignment) {
            return Err(array.refused("does not begin at a multiple of its elements' size"));
        }
        Ok(array)
    }

    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns an array of three axes with a second axis of length one, and any other as it is.
    pub fn in_groups(mut self) -> Array {
        if self.shape.len() == 3 {
            self.shape.insert(1, 1);
            self.strides.insert(1, 0);
        }
        self
    }

    /// Returns the address of the first element; an error unless the rows follow one another.
    pub fn address(&self) -> PyResult<u64> {
        let compact = row_after_row(&self.shape);
        let axes = self.shape.iter().zip(self.strides.iter().zip(&compact));
        if self.is_empty() || axes.into_iter().all(|(&size, (a, b))| size == 1 || a == b) {
            return Ok(if self.is_empty() { 0 } else { self.data as u64 });
        }
        Err(self
            .refused(&format!("has strides {:?}; on a GPU arrays lie row after row", self.strides)))
    }

    /// Returns an exception that names the array.
    pub fn refused(&self, what: &str) -> pyo3::PyErr {
        let Array { name, shape, dtype, .. } = self;
        PyValueError::new_err(format!("{name} {shape:?} of {dtype} {what}"))
    }

    /// Returns the distances of the first and the last element in memory from `data`, in elements;
    /// `None` if an `isize` does not hold them.
    fn reach(&self) -> Option<(isize, isize)> {
        let (mut low, mut high) = (0_isize, 0_isize);
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            let last = isize::try_from(size.saturating_sub(1)).ok()?.checked_mul(stride)?;
            let end = if last < 0 { &mut low } else { &mut high };
            *end = end.checked_add(last)?;
        }
        let bytes = isize::try_from(self.dtype.bytes()).ok()?;
        high.checked_add(1)?.checked_sub(low)?.checked_mul(bytes)?;
        Some((low, high))
    }

    /// Returns the addresses from the first element to the last; `None` if they wrap around.
    fn bytes(&self) -> Option<Range<usize>> {
        if self.is_empty() {
            return Some(0..0);
        }
        let (low, high) = self.reach()?;
        let bytes = self.dtype.bytes() as isize;
        let at = |element: isize| (self.data as usize).checked_add_signed(element * bytes);
        Some(at(low)?..at(high + 1)?)
    }

    /// Returns the strides without their signs, and the address of the first element in memory.
    fn laid_out<T>(&self) -> (ndarray::StrideShape<IxDyn>, *mut T) {
        let (low, strides) = match self.is_empty() {
            true => (0, vec![0; self.shape.len()]),
            false => {
                let (low, _) = self.reach().unwrap_or_default(); // `new` has checked it
                (low, self.strides.iter().map(|stride| stride.unsigned_abs()).collect())
            }
        };
        let first = match self.is_empty() {
            true => std::ptr::NonNull::<T>::dangling().as_ptr(),
            false => self.data.cast::<T>().wrapping_offset(low),
        };
        // The stride of an axis with one element has no effect.
        let strides: Vec<usize> = self
            .shape
            .iter()
            .zip(strides)
            .map(|(&size, s)| if size == 1 { 0 } else { s })
            .collect();
        (IxDyn(&self.shape).strides(IxDyn(&strides)), first)
    }

    fn backwards(&self) -> impl Iterator<Item = Axis> {
        let strides = self.strides.iter().zip(&self.shape).enumerate();
        let strides = strides.filter(|(_, (stride, size))| **stride < 0 && **size > 1);
        strides.map(|(axis, _)| Axis(axis)).collect::<Vec<_>>().into_iter()
    }

    /// Returns a view of the elements for reading.
    ///
    /// # Safety
    ///
    /// 1. The array's elements are of type `T` and on the CPU.
    /// 2. Nothing writes there while the view is used.
    pub unsafe fn view<T>(&self) -> ArrayViewD<'_, T> {
        let (shape, first) = self.laid_out::<T>();
        // SAFETY: (1) the owner has initialised these elements, and keeps them; (2) as the caller
        // promises; (3) they are in one allocation, whose size an `isize` holds, and aligned: `new`
        // has checked it.
        let mut view = unsafe { ArrayViewD::from_shape_ptr(shape, first) };
        self.backwards().for_each(|axis| view.invert_axis(axis));
        view
    }

    /// Returns a view of the elements for writing.
    ///
    /// # Safety
    ///
    /// 1. The array's elements are of type `T` and on the CPU.
    /// 2. Nothing else reads or writes there while the view is used, and no two elements are at one
    ///    address: [`check_results`] has found no error.
    pub unsafe fn view_mut<T>(&mut self) -> ArrayViewMutD<'_, T> {
        let (shape, first) = self.laid_out::<T>();
        let backwards = self.backwards();
        // SAFETY: as for `view`.
        let mut view = unsafe { ArrayViewMutD::from_shape_ptr(shape, first) };
        backwards.for_each(|axis| view.invert_axis(axis));
        view
    }

    /// Returns whether two indices may mean the same element in memory.
    fn meets_itself(&self) -> bool {
        let axes = self.shape.iter().zip(&self.strides).filter(|(size, _)| **size > 1);
        let mut axes: Vec<_> = axes.map(|(&size, &stride)| (stride.unsigned_abs(), size)).collect();
        axes.sort_unstable();
        let mut reached = 0; // by the axes so far
        axes.into_iter().any(|(stride, size)| {
            let meets = stride <= reached;
            reached += stride * (size - 1);
            meets
        })
    }
}

/// Checks that results can be written, and that their memory does not overlap other arrays.
// ANCHOR: results
pub fn check_results(inputs: &[&Array], results: &[&Array]) -> PyResult<()> {
    for (number, result) in results.iter().enumerate() {
        if result.is_empty() {
            continue;
        }
        if result.read_only {
            return Err(result.refused("is read-only"));
        }
        if result.meets_itself() {
            return Err(
                result.refused("is a result, and several of its elements are one in memory")
            );
        }
        let bytes = result.bytes().unwrap_or_default(); // `new` has checked it
        for other in inputs.iter().chain(&results[..number]) {
            let others = other.bytes().unwrap_or_default();
            if other.place == result.place && others.start < bytes.end && bytes.start < others.end {
                return Err(result.refused(&format!("overlaps {}", other.name)));
            }
        }
    }
    Ok(())
}
// ANCHOR_END: results

/// Returns the strides, in elements, of an array whose rows follow one another.
fn row_after_row(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut next = 1_usize;
    for (stride, &size) in strides.iter_mut().zip(shape).rev() {
        *stride = isize::try_from(next).unwrap_or(isize::MAX);
        next = next.saturating_mul(size.max(1));
    }
    strides
}
