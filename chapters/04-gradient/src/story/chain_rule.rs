//! Coefficients that are made of something.

use linrec::lesson::{self, Lesson};
use linrec::{Element, Engine, Error, Options};
use ndarray::{Array1, Array2, ArrayView1, Axis};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::ENGINE;
use crate::chain::{common_input, shared_coeff, sigmoid, sigmoid_slope};
use crate::differences::complex_step;

/// Checks both chain rules against slopes.
pub fn chain_rule(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("chain", "What the coefficients are made of")?;
    let seq_len = 64;
    let mut rng = StdRng::seed_from_u64(43);
    let z = Array1::from_shape_simple_fn(seq_len, || rng.random_range(0.0..2.0));
    let complex_sigmoid = |z: Complex<f64>| (Complex::from(1.0) + (-z).exp()).inv();
    lesson.say(
        "Inputs between 0 and 2, the loss is half the sum of squares. Nothing is negative, so nothing \
         cancels: each side may be off by its roundings, at most eight per step, and no more.",
    );
    // Two passes of at most 4 roundings per step and side, and some 16 in sigmoid and loss.
    let limit = (16 * seq_len + 16) as f64 * f64::UNIT_ROUNDOFF;

    // One number z_0 makes all coefficients: a moving average, or S4.
    let z_0 = 1.5;
    let d = gradients(&z, &Array1::from_elem(seq_len, sigmoid(z_0)))?;
    let gradient = shared_coeff(&d)[0] * sigmoid_slope(sigmoid(z_0));
    let slope = complex_step(ArrayView1::from(&[z_0]), |at| {
        loss(z.mapv(Complex::from), Array1::from_elem(seq_len, complex_sigmoid(at[0])))
    })?;
    lesson.say(&format!(
        "One shared coefficient σ(z_0) for all positions: its gradient is a sum over them, here \
         {gradient:.6}.",
    ));
    lesson.check(
        "shared coefficient, relative difference to slope",
        (gradient / slope[0] - 1.0).abs(),
        limit,
    );

    // Every position makes its own coefficient, of the input that is also added: x = z, c = σ(z).
    let coeffs = z.mapv(sigmoid);
    let d = gradients(&z, &coeffs)?;
    let gradient = common_input(&d, coeffs.view().insert_axis(Axis(0)));
    let slopes = complex_step(z.view(), |at| loss(at.to_owned(), at.mapv(complex_sigmoid)))?;
    let worst = (&gradient.row(0) / &slopes - 1.0).abs().fold(0.0, |m: f64, &e| m.max(e));
    lesson.say("Inputs that make their own coefficients, x = z and c = σ(z): two ways, two terms.");
    lesson.check("x = z, c = σ(z), relative difference to slopes", worst, limit);
    Ok(())
}

/// Half the sum of the squares of the outputs.
fn loss<T: Element>(inputs: Array1<T>, coeffs: Array1<T>) -> Result<T, Error> {
    let outputs = outputs(&inputs, &coeffs)?;
    Ok(outputs.mapv(|y| y * y * T::from_real(0.5)).sum())
}

fn outputs<T: Element>(inputs: &Array1<T>, coeffs: &Array1<T>) -> Result<Array2<T>, Error> {
    let (inputs, coeffs) = (inputs.view().insert_axis(Axis(0)), coeffs.view().insert_axis(Axis(0)));
    Ok(ENGINE.forward(inputs, coeffs, &Options::default())?.outputs)
}

fn gradients(inputs: &Array1<f64>, coeffs: &Array1<f64>) -> Result<linrec::Gradients<f64>, Error> {
    let y = outputs(inputs, coeffs)?;
    let coeffs = coeffs.view().insert_axis(Axis(0));
    ENGINE.backward(y.view(), coeffs, y.view(), &Options::default())
}
