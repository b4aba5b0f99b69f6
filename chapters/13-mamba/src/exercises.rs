//! Solutions to the exercises that ask for code.

use linrec::cpu::Cpu;
use linrec::{Error, Options};
use ndarray::{Array2, Array3, ArrayView2, s};

use crate::golden::Given;
use crate::{
    Arguments, Mixing, MixingArray, Real, dissection, selective_scan, selective_scan_backward,
};

/// Computes the gradient of `A` over a sequence that is cut in two before position `at`: the second
/// half begins with the last states of the first half.
///
/// # Errors
///
/// Returns an error if the shapes do not fit together, or if the sequence has no such position.
// ANCHOR: in_two
pub fn in_two(
    cpu: &Cpu,
    given: &Given<f64>,
    at: usize,
    d_y: &Array3<f64>,
) -> Result<Array2<f64>, Error> {
    let [first, mut second] = [part(given, 0, at), part(given, at, d_y.dim().2)];
    second.initial = Some(selective_scan(cpu, &first.arguments())?.last_state);
    // The backward pass takes the second half first. Its gradient of the states between the halves
    // is the gradient of the first half's last states.
    let d_y = [d_y.slice(s![.., .., ..at]), d_y.slice(s![.., .., at..])];
    let behind = selective_scan_backward(cpu, &second.arguments(), d_y[1], None)?;
    let between = Some(behind.d_initial.view());
    let before = selective_scan_backward(cpu, &first.arguments(), d_y[0], between)?;
    Ok(before.d_a + behind.d_a)
}
// ANCHOR_END: in_two

/// Copies positions `from..to` of a problem.
fn part(given: &Given<f64>, from: usize, to: usize) -> Given<f64> {
    let along = |array: &Array3<f64>| array.slice(s![.., .., from..to]).to_owned();
    let mixing = |mixing: &MixingArray<f64>| match mixing {
        Mixing::Varying(array) => array.slice(s![.., .., .., from..to]).to_owned().into(),
        Mixing::Fixed(array) => array.clone().into(),
    };
    Given {
        u: along(&given.u),
        delta: along(&given.delta),
        b: mixing(&given.b),
        c: mixing(&given.c),
        z: given.z.as_ref().map(along),
        ..given.clone()
    }
}

/// Computes the gradient of `A` `[channels, states]` from the gradient of the states
/// `[channels · states, len]`, for one sequence. The library receives the coefficients as
/// logarithms.
///
/// # Errors
///
/// Returns an error if the shapes do not fit together.
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

/// Returns `Δ` and `B` of a scan with `A = -1` and `C = 1` that is a gated memory:
/// `h = (1 - σ(s)) h + σ(s) u`.
// ANCHOR: gate
pub fn gate<T: Real>(s: T) -> (T, T) {
    let delta = crate::activation::softplus(s.widen());
    let opened = crate::activation::sigmoid(s.widen());
    // With a shut gate both vanish, and their quotient tends to one.
    let b = if delta > 0.0 { opened / delta } else { 1.0 };
    (T::narrow(delta), T::narrow(b))
}
// ANCHOR_END: gate

#[cfg(test)]
mod tests {
    use super::{d_a, gate, in_two};
    use crate::activation::sigmoid;
    use crate::golden::cases;
    use crate::{dissection, selective_scan_backward};
    use approx::assert_relative_eq;
    use linrec::contract::golden::array_distance;
    use linrec::cpu::Cpu;
    use ndarray::{Array2, Array4};

    #[test]
    fn gradients_pass_from_one_half_to_the_other() {
        for case in cases().unwrap() {
            let len = case.d_y.dim().2;
            for at in [1, 7, len / 2, len - 1] {
                let got = in_two(&Cpu::new(), &case.given, at, &case.d_y).unwrap();
                assert!(array_distance(&got, &case.gradients.d_a) <= 1e-11, "{} {at}", case.name);
            }
        }
    }

    #[test]
    fn logarithms_give_the_gradient_of_a() {
        let case = &cases().unwrap()[0];
        let arguments = case.given.arguments();
        let (states, len) = (arguments.a.ncols(), arguments.u.dim().2);
        let rows = arguments.a.len();
        let d_states = Array2::from_shape_fn((rows, len), |(row, l)| {
            case.d_y[[0, row / states, l]] * arguments.c.at([0, row / states, row % states, l], 6)
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
        // One channel with one state.
        given.u = given.u.slice(ndarray::s![.., ..1, ..]).to_owned();
        given.delta = given.delta.slice(ndarray::s![.., ..1, ..]).to_owned();
        given.a = given.a.slice(ndarray::s![..1, ..1]).to_owned();
        given.c = Array2::ones((1, 1)).into();
        let mut written = Array4::zeros((1, 1, 1, given.u.dim().2));
        let signal = |l: usize| 6.0 * (l as f64 * 0.7).sin();
        for l in 0..given.u.dim().2 {
            let (delta, b) = gate(signal(l));
            given.delta[[0, 0, l]] = delta;
            written[[0, 0, 0, l]] = b;
        }
        given.b = written.into();
        let y = dissection::scan(&given.arguments()).unwrap();
        let mut state = 0.0;
        for l in 0..given.u.dim().2 {
            let opened = sigmoid(signal(l));
            state = (1.0 - opened) * state + opened * given.u[[0, 0, l]];
            assert_relative_eq!(state, y[[0, 0, l]], epsilon = 1e-14, max_relative = 1e-14);
        }
    }
}
