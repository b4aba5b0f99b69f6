//! Where the elements of an array lie: what a DLPack capsule says, without the memory.

use std::collections::HashSet;

/// A view of some memory: in elements, as DLPack counts.
#[derive(Debug, Clone, PartialEq, Eq)]
// ANCHOR: layout
pub struct Layout {
    /// How many elements along each axis.
    pub shape: Vec<usize>,
    /// How far it is to the next element along each axis.
    pub strides: Vec<isize>,
    /// Where the first element is.
    pub offset: isize,
}
// ANCHOR_END: layout

impl Layout {
    /// Row after row, from the beginning.
    pub fn rows(shape: &[usize]) -> Layout {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis].max(1) as isize;
        }
        Layout { shape: shape.to_vec(), strides, offset: 0 }
    }

    /// This view with two axes exchanged, and no element moved; as it is, if there are no such
    /// axes.
    #[must_use]
    pub fn transposed(mut self, a: usize, b: usize) -> Layout {
        if a.max(b) < self.shape.len() {
            self.shape.swap(a, b);
            self.strides.swap(a, b);
        }
        self
    }

    /// Every `step`-th element along an axis, from its end where the step is negative.
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

    /// This view with one more axis in front, of length `size`, along which every index shows the
    /// same elements.
    #[must_use]
    pub fn repeated(mut self, size: usize) -> Layout {
        self.shape.insert(0, size);
        self.strides.insert(0, 0);
        self
    }

    /// How many indices there are.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the elements lie, in the order of their indices.
    pub fn places(&self) -> Vec<isize> {
        let mut places = vec![self.offset];
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            let along = |place: isize| (0..size as isize).map(move |i| place + i * stride);
            places = places.into_iter().flat_map(along).collect();
        }
        places
    }

    /// Whether two indices name one element, found by looking at all of them.
    pub fn meets_itself(&self) -> bool {
        let mut seen = HashSet::new();
        !self.places().into_iter().all(|place| seen.insert(place))
    }

    /// Whether two indices *may* name one element, found by looking at the axes alone: the smallest
    /// stride first, each one has to step over all that the axes before it reach.
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
