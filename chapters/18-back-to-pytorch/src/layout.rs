//! The layout of an array in memory: what a DLPack capsule describes, without the memory.

use std::collections::HashSet;

/// A view of some memory, in elements, as in DLPack.
#[derive(Debug, Clone, PartialEq, Eq)]
// ANCHOR: layout
pub struct Layout {
    /// The number of elements along each axis.
    pub shape: Vec<usize>,
    /// The distance to the next element along each axis.
    pub strides: Vec<isize>,
    /// The position of the first element.
    pub offset: isize,
}
// ANCHOR_END: layout

impl Layout {
    /// Makes a layout row after row, from the beginning.
    pub fn rows(shape: &[usize]) -> Layout {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis].max(1) as isize;
        }
        Layout { shape: shape.to_vec(), strides, offset: 0 }
    }

    /// Exchanges two axes without moving an element; does nothing if an axis is out of range.
    #[must_use]
    pub fn transposed(mut self, a: usize, b: usize) -> Layout {
        if a.max(b) < self.shape.len() {
            self.shape.swap(a, b);
            self.strides.swap(a, b);
        }
        self
    }

    /// Keeps every `step`-th element along an axis; a negative step starts from the end.
    #[must_use]
    // ANCHOR: every
    pub fn every(mut self, axis: usize, step: isize) -> Layout {
        let Some(size) = self.shape.get(axis).copied().filter(|_| step != 0) else { return self };
        if step < 0 && size > 0 {
            self.offset += (size - 1) as isize * self.strides[axis];
        }
        self.shape[axis] = size.div_ceil(step.unsigned_abs());
        self.strides[axis] *= step;
        self
    }
    // ANCHOR_END: every

    /// Adds an axis of length `size` in front, along which every index shows the same elements.
    #[must_use]
    pub fn repeated(mut self, size: usize) -> Layout {
        self.shape.insert(0, size);
        self.strides.insert(0, 0);
        self
    }

    /// Returns the number of indices.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns true if the view has no index.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the positions of the elements, in the order of their indices.
    pub fn places(&self) -> Vec<isize> {
        let mut places = vec![self.offset];
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            let along = |place: isize| (0..size as isize).map(move |i| place + i * stride);
            places = places.into_iter().flat_map(along).collect();
        }
        places
    }

    /// Returns true if two indices name the same element, by looking at all of them.
    pub fn meets_itself(&self) -> bool {
        let mut seen = HashSet::new();
        !self.places().into_iter().all(|place| seen.insert(place))
    }

    /// Returns true if two indices *may* name the same element, by looking only at the axes: from
    /// the smallest stride on, each stride has to exceed the reach of all axes before it.
    // ANCHOR: may_meet
    pub fn may_meet_itself(&self) -> bool {
        let axes = self.shape.iter().zip(&self.strides).filter(|(size, _)| **size > 1);
        let mut axes: Vec<_> = axes.map(|(&size, stride)| (stride.unsigned_abs(), size)).collect();
        axes.sort_unstable();
        let mut reached = 0;
        !self.is_empty()
            && axes.into_iter().any(|(stride, size)| {
                let meets = stride <= reached;
                reached += stride * (size - 1);
                meets
            })
    }
    // ANCHOR_END: may_meet
}
