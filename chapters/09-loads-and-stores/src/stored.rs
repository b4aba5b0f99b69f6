//! The recurrence in numbers of 2 to 16 bytes, and its errors.

use linrec::device::{Device, KernelEngine, Storage};
use linrec::kernels::Memcode;
use linrec::reference;
use linrec::{Element, Engine, Error, Options};
use ndarray::{Array2, ArrayView2};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The largest errors of the outputs, relative to the largest output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// The error of the kernel, which stores numbers as `S` and computes in `S::Accum`.
    pub kernel: f64,
    /// The error of a loop whose state is rounded to `S` at every step.
    pub narrow_state: f64,
}

/// Runs the recurrence over random inputs, with coefficients near one; both are rounded to `S`. The
/// exact outputs come from a loop in double precision over the same numbers.
///
/// # Errors
///
/// Returns the device's error.
pub fn errors<S: Storage>(
    engine: &KernelEngine<S>,
    shape: (usize, usize),
) -> Result<Errors, Error> {
    let mut rng = StdRng::seed_from_u64(85);
    let mut draw = |low: f64, high: f64| {
        let stored = |number: f64| S::narrow(S::Accum::from_real(number));
        Array2::from_shape_simple_fn(shape, || stored(rng.random_range(low..high)).widen())
    };
    let (inputs, coeffs) = (draw(-1.0, 1.0), draw(0.98, 1.0));
    let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
    let exact = reference::forward(x, c, &options)?.outputs;
    let kernel = engine.forward(x, c, &options)?.outputs;
    let narrow = narrow_state::<S>(x, c);
    let scale = exact.iter().map(|y| y.modulus()).fold(f64::MIN_POSITIVE, f64::max);
    let most = |outputs: &Array2<S::Accum>| {
        let pairs = outputs.iter().zip(&exact);
        let errors = pairs.map(|(y, exact)| (Element::widen(*y) - *exact).modulus());
        errors.fold(0.0, f64::max) / scale
    };
    Ok(Errors { kernel: most(&kernel), narrow_state: most(&narrow) })
}

/// Runs the loop of chapter 1 with the state rounded to the format of the arrays as well.
// ANCHOR: narrow
fn narrow_state<S: Storage>(
    inputs: ArrayView2<S::Accum>,
    coeffs: ArrayView2<S::Accum>,
) -> Array2<S::Accum> {
    let mut outputs = inputs.to_owned();
    for (mut outputs, coeffs) in outputs.rows_mut().into_iter().zip(coeffs.rows()) {
        let mut state = S::Accum::from_real(0.0);
        for (output, &coeff) in outputs.iter_mut().zip(coeffs) {
            state = S::narrow(state.mul_add(coeff, *output)).widen();
            *output = state;
        }
    }
    outputs
}
// ANCHOR_END: narrow

/// Makes an engine of the pipe kernel that stores numbers as `S`.
///
/// # Errors
///
/// Returns the device's error.
pub fn engine<S: Storage>(device: &Device) -> Result<KernelEngine<S>, Error> {
    KernelEngine::new(device, ch08_reverse_and_backward::pipe(Memcode::Direct))
}

#[cfg(test)]
mod tests {
    use super::{engine, errors};
    use half::{bf16, f16};
    use linrec::device::under_test;

    #[test]
    fn a_narrow_state_loses_more_than_narrow_arrays() {
        for device in under_test() {
            let shape = (3, 1000);
            let narrow = errors(&engine::<bf16>(&device).unwrap(), shape).unwrap();
            // Half a unit in the last place of 8 bits, and little more.
            assert!(narrow.kernel < 0.00391 && narrow.narrow_state > 3.0 * narrow.kernel);
            let half = errors(&engine::<f16>(&device).unwrap(), shape).unwrap();
            assert!(half.kernel < 0.0005 && half.narrow_state > half.kernel);
            let single = errors(&engine::<f32>(&device).unwrap(), shape).unwrap();
            assert!(single.kernel < 1e-6);
        }
    }
}
