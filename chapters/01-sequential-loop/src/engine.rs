//! The loop as an engine.

use linrec::{Element, Engine, Error, Gradients, Options, Outputs};
use ndarray::ArrayView2;

use crate::{linrec_into, rows};

/// The sequential loop: row by row, element by element.
#[derive(Debug, Clone, Copy, Default)]
pub struct Loop;

impl<T: Element> Engine<T> for Loop {
    fn name(&self) -> &str {
        "loop"
    }

    // ANCHOR: engine
    fn forward(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<T>, Error> {
        rows::forward(inputs, coeffs, options, |x, c, initial, y| Ok(linrec_into(x, c, initial, y)))
    }
    // ANCHOR_END: engine

    fn backward(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<T>, Error> {
        rows::backward(d_outputs, coeffs, outputs, options, |x, c, initial, y| {
            Ok(linrec_into(x, c, initial, y))
        })
    }
}
