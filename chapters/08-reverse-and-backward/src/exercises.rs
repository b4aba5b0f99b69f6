//! Solutions to the exercises that ask for code.

use ch04_gradient::shift::shift;
use linrec::{Direction, Element, Engine, Error, Gradients, Options};
use ndarray::{Array1, Array2, ArrayView2};

/// Computes the gradient of the inputs, with `fill` in place of the coefficient after the last
/// step.
///
/// # Errors
///
/// Returns the engine's error.
// ANCHOR: fill
pub fn d_inputs_with(
    engine: &dyn Engine<f32>,
    d_outputs: ArrayView2<f32>,
    coeffs: ArrayView2<f32>,
    fill: f32,
) -> Result<Array2<f32>, Error> {
    let back = Options { direction: Direction::Reverse, ..Options::default() };
    let fill = Array1::from_elem(coeffs.nrows(), fill);
    let next_coeffs = shift(coeffs, Direction::Reverse, fill.view())?;
    Ok(engine.forward(d_outputs, next_coeffs.view(), &back)?.outputs)
}
// ANCHOR_END: fill

/// The recurrence in both directions, with the same coefficients and from zero.
// ANCHOR: both
#[derive(Debug, Clone)]
pub struct BothWays<T> {
    /// The outputs of each direction, `[num_seqs, seq_len]`.
    outputs: [(Direction, Array2<T>); 2],
}

impl<T: Element> BothWays<T> {
    /// Computes both directions.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    pub fn forward(
        engine: &dyn Engine<T>,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
    ) -> Result<BothWays<T>, Error> {
        let one = |direction| -> Result<_, Error> {
            let options = Options { direction, ..Options::default() };
            Ok((direction, engine.forward(inputs, coeffs, &options)?.outputs))
        };
        Ok(BothWays { outputs: [one(Direction::Forward)?, one(Direction::Reverse)?] })
    }

    /// Returns the sum of both directions, in which every step depends on both sides.
    pub fn sum(&self) -> Array2<T> {
        &self.outputs[0].1 + &self.outputs[1].1
    }

    /// Computes the gradients of the inputs and of the coefficients, given the gradient of the sum.
    ///
    /// # Errors
    ///
    /// Returns the engine's error.
    pub fn backward(
        &self,
        engine: &dyn Engine<T>,
        d_sum: ArrayView2<T>,
        coeffs: ArrayView2<T>,
    ) -> Result<[Array2<T>; 2], Error> {
        // A sum passes its gradient to both of its terms.
        let one = |(direction, outputs): &(Direction, Array2<T>)| {
            let options = Options { direction: *direction, ..Options::default() };
            engine.backward(d_sum, coeffs, outputs.view(), &options)
        };
        let [Gradients { d_inputs, d_coeffs, .. }, other] =
            [one(&self.outputs[0])?, one(&self.outputs[1])?];
        Ok([d_inputs + other.d_inputs, d_coeffs + other.d_coeffs])
    }
}
// ANCHOR_END: both

#[cfg(test)]
mod tests {
    use super::{BothWays, d_inputs_with};
    use crate::pipe;
    use approx::assert_abs_diff_eq;
    use linrec::device::{KernelEngine, under_test};
    use linrec::kernels::{KernelChoice, Memcode};
    use ndarray::Array2;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    fn data(shape: (usize, usize)) -> [Array2<f64>; 3] {
        let mut rng = StdRng::seed_from_u64(88);
        let mut draw = |low: f64, high: f64| {
            Array2::from_shape_simple_fn(shape, || rng.random_range(low..high))
        };
        [draw(-1.0, 1.0), draw(0.9, 1.0), draw(-1.0, 1.0)]
    }

    #[test]
    fn no_gradient_depends_on_the_missing_coefficient() {
        let [d_outputs, coeffs, _] = data((3, 700)).map(|array| array.mapv(|x| x as f32));
        for device in under_test() {
            let engine = KernelEngine::<f32>::new(&device, pipe(Memcode::Direct)).unwrap();
            let with =
                |fill| d_inputs_with(&engine, d_outputs.view(), coeffs.view(), fill).unwrap();
            let usual = with(1.0);
            for fill in [0.0, -3.0, 1e30] {
                assert_eq!(with(fill), usual);
            }
            assert!(with(f32::NAN).iter().all(|delta| delta.is_nan()));
            // The fill affects only products of coefficients, and no output that could have been
            // finite otherwise.
            assert!(usual.iter().all(|delta| delta.is_finite()));
        }
    }

    #[test]
    fn both_ways_have_the_slopes_of_the_sum() {
        let [inputs, coeffs, weights] = data((2, 33));
        for device in under_test() {
            let engine =
                KernelEngine::<f64>::new(&device, KernelChoice::Pipe(Default::default())).unwrap();
            let loss = |inputs: &Array2<f64>, coeffs: &Array2<f64>| {
                let both = BothWays::forward(&engine, inputs.view(), coeffs.view()).unwrap();
                (&both.sum() * &weights).sum()
            };
            let both = BothWays::forward(&engine, inputs.view(), coeffs.view()).unwrap();
            let [d_inputs, d_coeffs] =
                both.backward(&engine, weights.view(), coeffs.view()).unwrap();
            let h = 1e-6;
            for place in [(0, 0), (0, 16), (1, 31), (1, 32)] {
                let slope = |change: &dyn Fn(f64) -> f64| (change(h) - change(-h)) / (2.0 * h);
                let moved = |array: &Array2<f64>, by: f64| {
                    let mut array = array.clone();
                    array[place] += by;
                    array
                };
                let by_input = slope(&|by| loss(&moved(&inputs, by), &coeffs));
                let by_coeff = slope(&|by| loss(&inputs, &moved(&coeffs, by)));
                assert_abs_diff_eq!(by_input, d_inputs[place], epsilon = 1e-7);
                assert_abs_diff_eq!(by_coeff, d_coeffs[place], epsilon = 1e-6);
            }
        }
    }
}
