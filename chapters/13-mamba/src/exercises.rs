//! Solutions to the exercises that ask for code.

use linrec::{Error, Options};
use ndarray::{Array2, Array3, ArrayView2, s};

use crate::{Arguments, Output, Real, dissection};

/// One step of a scan for every channel of a sequence: takes the states `[channels, states]` one step on, and returns
/// `y` at this position.
// ANCHOR: step
pub fn step(arguments: &Arguments<f64>, l: usize, states: &mut Array2<f64>) -> Vec<f64> {
    let channels = states.nrows();
    let group = channels / arguments.b.dim().1.max(1);
    let of_channel = |(j, mut states): (usize, ndarray::ArrayViewMut1<f64>)| {
        let (u, delta) = (arguments.u[[0, j, l]], arguments.delta[[0, j, l]]);
        let mut y = 0.0;
        for (n, state) in states.iter_mut().enumerate() {
            let coeff = (delta * arguments.a[[j, n]]).exp();
            *state = *state * coeff + delta * u * arguments.b[[0, j / group, n, l]];
            y += arguments.c[[0, j / group, n, l]] * *state;
        }
        y
    };
    states.rows_mut().into_iter().enumerate().map(of_channel).collect()
}
// ANCHOR_END: step

/// Goes through a sequence position by position, as a model does that writes text.
///
/// # Errors
///
/// If the shapes do not fit together.
pub fn step_by_step(arguments: &Arguments<f64>) -> Result<Output<f64>, Error> {
    let sizes = arguments.sizes()?;
    let mut y = Array3::zeros((1, sizes.channels, sizes.len));
    let mut states = Array2::zeros((sizes.channels, sizes.states));
    for l in 0..sizes.len {
        let values = step(arguments, l, &mut states);
        y.slice_mut(s![0, .., l]).iter_mut().zip(values).for_each(|(y, value)| *y = value);
    }
    Ok(Output { y, last_state: states.insert_axis(ndarray::Axis(0)) })
}

/// The gradient of `A` `[channels, states]` from that of the states `[channels · states, len]`, for one sequence,
/// with the coefficients given to the library as logarithms.
///
/// # Errors
///
/// If the shapes do not fit together.
// ANCHOR: logarithms
pub fn d_a(arguments: &Arguments<f64>, d_states: ArrayView2<f64>) -> Result<Array2<f64>, Error> {
    let sizes = arguments.sizes()?;
    let (states, len) = (sizes.states, sizes.len);
    let [inputs, _] = dissection::expand(arguments)?;
    let inputs = inputs.into_shape_with_order((sizes.channels * states, len)).unwrap_or_default();
    let exponents = Array2::from_shape_fn(inputs.dim(), |(row, l)| {
        arguments.delta[[0, row / states, l]] * arguments.a[[row / states, row % states]]
    });
    let options = Options { log_coeffs: true, ..Options::default() };
    let h = linrec::forward(inputs.view(), exponents.view(), &options)?.outputs;
    let d = linrec::backward(d_states, exponents.view(), h.view(), &options)?;
    // d_coeffs is the gradient of the exponents, and an exponent is Δ A.
    Ok(Array2::from_shape_fn((sizes.channels, states), |(j, n)| {
        (0..len).map(|l| arguments.delta[[0, j, l]] * d.d_coeffs[[j * states + n, l]]).sum()
    }))
}
// ANCHOR_END: logarithms

/// `Δ` and `B` of a scan with `A = -1` and `C = 1` that is a gated memory: `h = (1 - σ(s)) h + σ(s) u`.
// ANCHOR: gate
pub fn gate<T: Real>(s: T) -> (T, T) {
    let delta = crate::activation::softplus(s.widen());
    let opened = crate::activation::sigmoid(s.widen());
    // Where the gate is shut both vanish, and their quotient goes to one.
    let b = if delta > 0.0 { opened / delta } else { 1.0 };
    (T::narrow(delta), T::narrow(b))
}
// ANCHOR_END: gate

#[cfg(test)]
mod tests {
    use super::{d_a, gate, step_by_step};
    use crate::activation::sigmoid;
    use crate::golden::cases;
    use crate::{dissection, selective_scan_backward};
    use approx::assert_relative_eq;
    use linrec::contract::golden::array_distance;
    use linrec::cpu::Cpu;
    use ndarray::Array2;

    #[test]
    fn token_by_token_is_the_same() {
        let case = &cases().unwrap()[0];
        let got = step_by_step(&case.given.arguments()).unwrap();
        assert!(array_distance(&got.y, &case.output.y) <= 1e-11);
        assert!(array_distance(&got.last_state, &case.output.last_state) <= 1e-11);
    }

    #[test]
    fn logarithms_give_the_gradient_of_a() {
        let case = &cases().unwrap()[0];
        let arguments = case.given.arguments();
        let (states, len) = (arguments.a.ncols(), arguments.u.dim().2);
        let rows = arguments.a.len();
        let d_states = Array2::from_shape_fn((rows, len), |(row, l)| {
            case.d_y[[0, row / states, l]] * arguments.c[[0, 0, row % states, l]]
        });
        let got = d_a(&arguments, d_states.view()).unwrap();
        assert!(array_distance(&got, &case.gradients.d_a) <= 1e-11);
        let scan = selective_scan_backward(&Cpu::new(), &arguments, case.d_y.view(), None).unwrap();
        assert!(array_distance(&got, &scan.d_a) <= 1e-11);
    }

    #[test]
    fn a_gated_memory_is_a_selective_scan() {
        assert_eq!(gate(-1000.0), (0.0, 1.0));
        let mut given = cases().unwrap().swap_remove(0).given;
        given.a.fill(-1.0);
        given.c.fill(1.0);
        // One channel and one state.
        given.u = given.u.slice(ndarray::s![.., ..1, ..]).to_owned();
        given.delta = given.delta.slice(ndarray::s![.., ..1, ..]).to_owned();
        given.a = given.a.slice(ndarray::s![..1, ..1]).to_owned();
        given.b = given.b.slice(ndarray::s![.., .., ..1, ..]).to_owned();
        given.c = given.c.slice(ndarray::s![.., .., ..1, ..]).to_owned();
        let signal = |l: usize| 6.0 * (l as f64 * 0.7).sin();
        for l in 0..given.u.dim().2 {
            let (delta, b) = gate(signal(l));
            given.delta[[0, 0, l]] = delta;
            given.b[[0, 0, 0, l]] = b;
        }
        let y = dissection::scan(&given.arguments()).unwrap();
        let mut state = 0.0;
        for l in 0..given.u.dim().2 {
            let opened = sigmoid(signal(l));
            state = (1.0 - opened) * state + opened * given.u[[0, 0, l]];
            assert_relative_eq!(state, y[[0, 0, l]], epsilon = 1e-14, max_relative = 1e-14);
        }
    }
}
