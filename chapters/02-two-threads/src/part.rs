//! One thread's part of a sequence.

use linrec::{Element, Error, validate};
use ndarray::{ArrayView1, ArrayViewMut1, Axis, Zip};

use crate::Transition;

/// A part of a sequence: the inputs and coefficients to read, and the outputs to write.
#[derive(Debug)]
pub struct Part<'a, T> {
    inputs: ArrayView1<'a, T>,
    coeffs: ArrayView1<'a, T>,
    outputs: ArrayViewMut1<'a, T>,
    /// The products of the part's coefficients up to and including each element's.
    products: Vec<T>,
    /// The state before the first element; zero until it is known.
    pub(crate) before: T,
    /// The number of elements that the last loop over this part has handled.
    pub(crate) steps: usize,
}

impl<'a, T: Element> Part<'a, T> {
    /// Makes a part of a whole sequence.
    ///
    /// # Errors
    ///
    /// Returns [`Error::ShapeMismatch`] if the three arrays differ in length.
    pub fn new(
        inputs: ArrayView1<'a, T>,
        coeffs: ArrayView1<'a, T>,
        outputs: ArrayViewMut1<'a, T>,
    ) -> Result<Self, Error> {
        let expected = ("inputs", inputs.shape());
        validate::same_shape("forward", expected, ("coeffs", coeffs.shape()))?;
        validate::same_shape("forward", expected, ("outputs", outputs.shape()))?;
        Ok(Part { inputs, coeffs, outputs, products: Vec::new(), before: T::zero(), steps: 0 })
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Returns true if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Splits the part into the first `split` elements and the rest.
    pub fn split_at(self, split: usize) -> (Self, Self) {
        let split = split.min(self.len());
        let (x1, x2) = self.inputs.split_at(Axis(0), split);
        let (c1, c2) = self.coeffs.split_at(Axis(0), split);
        let (y1, y2) = self.outputs.split_at(Axis(0), split);
        let part = |inputs, coeffs, outputs| Part {
            inputs,
            coeffs,
            outputs,
            products: Vec::new(),
            before: T::zero(),
            steps: 0,
        };
        (part(x1, c1, y1), part(x2, c2, y2))
    }

    /// Splits the part into parts of `⌈L/T⌉` elements (the last one may be shorter). There are at
    /// most `threads` parts, and none of them is empty.
    pub fn split_into(self, threads: usize) -> Vec<Self> {
        let len = self.len().div_ceil(threads.max(1));
        let mut parts = Vec::new();
        let mut rest = self;
        while !rest.is_empty() {
            let (part, later) = rest.split_at(len);
            parts.push(part);
            rest = later;
        }
        parts
    }

    // ANCHOR: scan
    /// Runs the loop over this part, as if the state before it were `initial`. Stores the products
    /// of the coefficients, and returns the final state.
    pub fn scan(&mut self, initial: T) -> T {
        let (mut state, mut product) = (initial, T::one());
        self.products = vec![T::zero(); self.inputs.len()];
        self.steps = 0;
        let written = self.outputs.iter_mut().zip(&mut self.products);
        for ((&x, &c), (y, c_so_far)) in self.inputs.iter().zip(self.coeffs).zip(written) {
            state = state * c + x;
            *y = state;
            product = product * c;
            *c_so_far = product;
            self.steps += 1;
        }
        state
    }
    // ANCHOR_END: scan

    // ANCHOR: combine
    /// Adds the contribution of the state before this part, after a scan from zero.
    pub fn combine(&mut self, before: T) {
        self.steps = 0;
        Zip::from(&mut self.outputs).and(&self.products).for_each(|y, &product| {
            *y = before * product + *y;
            self.steps += 1;
        });
    }
    // ANCHOR_END: combine

    /// Returns the state after the part, once it is scanned and combined, or `None` if the part is
    /// empty.
    pub fn last_output(&self) -> Option<T> {
        self.outputs.last().copied()
    }

    // ANCHOR: transition
    /// Returns the effect of a scanned part on the state before it.
    pub fn transition(&self) -> Transition<T> {
        let coeff = self.products.last().copied().unwrap_or(T::one());
        let state = self.outputs.last().copied().unwrap_or(T::zero());
        Transition { coeff, state }
    }
    // ANCHOR_END: transition
}
