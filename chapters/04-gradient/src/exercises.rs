//! Solutions to the exercises that ask for code.

use linrec::{Direction, Engine, Error, Gradients, Options, validate};
use ndarray::{Array1, ArrayView1, ArrayView2};

/// Computes the gradients of a loss that depends on the final state as well: `d_final` `[num_seqs]`
/// is added to the last `d_outputs` `[num_seqs, seq_len]`, because the final state is the last
/// output.
///
/// # Errors
///
/// Returns the engine's error, or [`Error::ShapeMismatch`] if `d_final` has another length.
// ANCHOR: final_state
pub fn backward_with_final_state(
    engine: &dyn Engine<f64>,
    (d_outputs, d_final): (ArrayView2<f64>, ArrayView1<f64>),
    coeffs: ArrayView2<f64>,
    outputs: ArrayView2<f64>,
    options: &Options<f64>,
) -> Result<Gradients<f64>, Error> {
    let (num_seqs, seq_len) = d_outputs.dim();
    validate::same_shape("backward", ("rows", &[num_seqs]), ("d_final", d_final.shape()))?;
    let mut d_outputs = d_outputs.to_owned();
    if seq_len > 0 {
        let last = options.direction.position(seq_len - 1, seq_len);
        d_outputs.column_mut(last).scaled_add(1.0, &d_final);
    }
    let mut gradients = engine.backward(d_outputs.view(), coeffs, outputs, options)?;
    if seq_len == 0 {
        // Without any step, the final state is the initial state.
        gradients.d_initial = &gradients.d_initial + &d_final;
    }
    Ok(gradients)
}
// ANCHOR_END: final_state

/// Returns the coefficient `c = e^(-e^θ)`, which is between 0 and 1 for every `θ` and can come
/// close to 1.
// ANCHOR: decay
pub fn decay(theta: f64) -> f64 {
    (-theta.exp()).exp()
}

/// Returns the gradient of `θ`, from the gradient of the coefficient that all positions share.
pub fn d_theta(theta: f64, d_coeff: f64) -> f64 {
    -theta.exp() * decay(theta) * d_coeff
}
// ANCHOR_END: decay

/// Computes the gradient of a cumulative sum with respect to its inputs: the sums from each
/// position to the end.
///
/// # Errors
///
/// Returns the engine's error.
// ANCHOR: suffix_sums
pub fn suffix_sums(
    engine: &dyn Engine<f64>,
    d_outputs: ArrayView1<f64>,
) -> Result<Array1<f64>, Error> {
    let ones = Array1::ones(d_outputs.len());
    let options = Options { direction: Direction::Reverse, ..Options::default() };
    let (rows, ones) =
        (d_outputs.insert_axis(ndarray::Axis(0)), ones.insert_axis(ndarray::Axis(0)));
    Ok(engine.forward(rows, ones.view(), &options)?.outputs.row(0).to_owned())
}
// ANCHOR_END: suffix_sums

#[cfg(test)]
mod tests {
    use super::{backward_with_final_state, d_theta, decay, suffix_sums};
    use crate::ThroughForward;
    use crate::chain::shared_coeff;
    use crate::differences::central_differences;
    use approx::assert_abs_diff_eq;
    use ch01_sequential_loop::Loop;
    use linrec::{Direction, Engine, Error, Options};
    use ndarray::{Array2, array};

    #[test]
    fn the_final_state_counts_as_the_last_output() {
        let engine = ThroughForward(Loop);
        let (inputs, coeffs) = (array![[1.0, 2.0, 3.0]], array![[0.5, -0.5, 2.0]]);
        for direction in [Direction::Forward, Direction::Reverse] {
            let options =
                Options { direction, initial: Some(array![4.0].into()), log_coeffs: false };
            // The loss is the square of the final state; the outputs themselves do not count.
            let loss = |x: ndarray::ArrayView1<f64>| -> Result<f64, Error> {
                let x = x.insert_axis(ndarray::Axis(0));
                let state = engine.forward(x, coeffs.view(), &options)?.final_state[0];
                Ok(state * state)
            };
            let slopes = central_differences(inputs.row(0), 1e-3, loss).unwrap();
            let result = engine.forward(inputs.view(), coeffs.view(), &options).unwrap();
            let d_final = 2.0 * &result.final_state;
            let (none, outputs) = (Array2::zeros((1, 3)), result.outputs.view());
            let d_outputs = (none.view(), d_final.view());
            let gradients =
                backward_with_final_state(&engine, d_outputs, coeffs.view(), outputs, &options);
            assert_abs_diff_eq!(gradients.unwrap().d_inputs.row(0), slopes.view(), epsilon = 1e-9);
        }
        let empty = Array2::zeros((1, 0));
        let (d_final, none) = (array![3.0], empty.view());
        let gradients = backward_with_final_state(
            &engine,
            (none, d_final.view()),
            none,
            none,
            &Options::default(),
        );
        assert_eq!(gradients.unwrap().d_initial, array![3.0]);
    }

    #[test]
    fn the_gradient_of_theta_is_its_slope() {
        let inputs = array![[1.0, -2.0, 3.0, 0.5]];
        let run = |theta: f64| {
            let coeffs = Array2::from_elem((1, 4), decay(theta));
            let outputs = Loop.forward(inputs.view(), coeffs.view(), &Options::default());
            (coeffs, outputs.unwrap().outputs)
        };
        let loss = |theta: ndarray::ArrayView1<f64>| -> Result<f64, Error> {
            Ok(run(theta[0]).1.mapv(|y| y * y / 2.0).sum())
        };
        let slope = central_differences(array![-1.0].view(), 1e-5, loss).unwrap()[0];
        let (coeffs, outputs) = run(-1.0);
        let gradients = ThroughForward(Loop).backward(
            outputs.view(),
            coeffs.view(),
            outputs.view(),
            &Options::default(),
        );
        let gradient = d_theta(-1.0, shared_coeff(&gradients.unwrap())[0]);
        assert_abs_diff_eq!(gradient, slope, epsilon = 1e-9);
    }

    #[test]
    fn a_cumulative_sum_has_suffix_sums_as_gradient() {
        let d_outputs = array![[1.0, 2.0, 3.0, 4.0]];
        let ones = Array2::ones((1, 4));
        let gradients = ThroughForward(Loop).backward(
            d_outputs.view(),
            ones.view(),
            ones.view(),
            &Options::default(),
        );
        let sums = suffix_sums(&Loop, d_outputs.row(0)).unwrap();
        assert_eq!(sums, array![10.0, 9.0, 7.0, 4.0]);
        assert_eq!(gradients.unwrap().d_inputs.row(0), sums);
    }
}
