//! One thread's part of a sequence.

use linrec::{Element, Error, validate};
use ndarray::{ArrayView1, ArrayViewMut1, Axis, Zip};

use crate::Transition;

/// A part of a sequence, from its own first element to its own last: the inputs and coefficients to
/// read, and the outputs to write.
#[derive(Debug)]
pub struct Part<'a, T> {
    inputs: ArrayView1<'a, T>,
    coeffs: ArrayView1<'a, T>,
    outputs: ArrayViewMut1<'a, T>,
    /// For every element, the product of the part's coefficients up to and with its own.
    products: Vec<T>,
    /// The state before the first element, or what is known of it.
    pub(crate) before: T,
    /// How many elements the last loop over this part has handled.
    pub(crate) steps: usize,
}

impl<'a, T: Element> Part<'a, T> {
    /// A whole sequence as one part.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] if the three do not have the same length.
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

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first `split` elements, and the rest.
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

    /// Parts of `⌈L/T⌉` elements (the last one may be shorter): at most `threads` of them, and none
    /// of them empty.
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
    /// The loop over this part, as if the state before it were `initial`. Keeps the products
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
    /// Adds what the state before this part contributes, after a scan from zero.
    pub fn combine(&mut self, before: T) {
        self.steps = 0;
        Zip::from(&mut self.outputs).and(&self.products).for_each(|y, &product| {
            *y = before * product + *y;
            self.steps += 1;
        });
    }
    // ANCHOR_END: combine

    /// The state after the part, once it is scanned and combined; `None` for a part of no elements.
    pub fn last_output(&self) -> Option<T> {
        self.outputs.last().copied()
    }

    // ANCHOR: transition
    /// What a scanned part does to the state before it.
    pub fn transition(&self) -> Transition<T> {
        let coeff = self.products.last().copied().unwrap_or(T::one());
        let state = self.outputs.last().copied().unwrap_or(T::zero());
        Transition { coeff, state }
    }
    // ANCHOR_END: transition
}
