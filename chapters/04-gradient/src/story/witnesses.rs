//! Two more witnesses: the transposed matrix, and other people's numbers.

use ch03_matrix_form::Matrix;
use linrec::contract::{self, Domain, golden};
use linrec::lesson::{self, Lesson};
use linrec::reference::{self, Rounding};
use linrec::{Direction, Engine, Options};
use ndarray::{Array1, Array2};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::ENGINE;

/// Compares with the matrix, with PyTorch's numbers, and with the table of cases.
pub fn witnesses(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("witnesses", "Three more witnesses")?;
    let seq_len = lesson.size(1000, 2000);
    lesson.say(&format!(
        "The first is chapter 3's matrix. It knows nothing of shifts: it multiplies by the matrix of \
         the forward pass, transposed; here 8 sequences of {seq_len} in reverse.",
    ));
    lesson.check(
        "recurrence and matrix, largest difference / limit",
        against_matrix(seq_len)?,
        1.0,
    );

    let mut worst: f64 = 0.0;
    let (real, complex) = (golden::real()?, golden::complex()?);
    for case in &real {
        worst = worst.max(golden::distance::<f64>(&ENGINE, case)?);
    }
    for case in &complex {
        worst = worst.max(golden::distance::<Complex<f64>>(&ENGINE, case)?);
    }
    lesson.say(&format!(
        "The second is PyTorch: {} real and {} complex problems, with gradients by its autograd.",
        real.len(),
        complex.len(),
    ));
    lesson.check("golden data, largest relative difference", worst, 1e-12);

    let domain = Domain { max_len: 64, ..Domain::default() };
    let report = contract::run::<f32>(&ENGINE, &domain);
    lesson.say(&format!(
        "The third is the table that every engine of this book must pass; here {} of its cases, in f32.",
        report.cases,
    ));
    let worst = if report.passed() { report.worst } else { f64::INFINITY };
    lesson.check("table of cases, largest error / bound", worst, 1.0);
    Ok(())
}

/// The largest difference between the two ways to the gradients, in units of what rounding permits.
fn against_matrix(seq_len: usize) -> lesson::Result<f64> {
    let mut rng = StdRng::seed_from_u64(42);
    let mut draw = |low: f64, high: f64| {
        Array2::from_shape_simple_fn((8, seq_len), || rng.random_range(low..high))
    };
    let (inputs, coeffs, d_outputs) = (draw(-1.0, 1.0), draw(0.9, 1.0), draw(-1.0, 1.0));
    let initial = Some(Array1::from_elem(8, 10.0));
    let options = Options { direction: Direction::Reverse, initial, log_coeffs: false };
    let outputs = ENGINE.forward(inputs.view(), coeffs.view(), &options)?.outputs;
    let (dy, c, y) = (d_outputs.view(), coeffs.view(), outputs.view());
    let ours = ENGINE.backward(dy, c, y, &options)?;
    let theirs = Matrix.backward(dy, c, y, &options)?;
    let rounding = Rounding { levels: 0, exp_ulps: 0.0 };
    let bound = reference::backward_bound(dy, c, y, &options, rounding)?;
    let pairs = [
        (ours.d_inputs - theirs.d_inputs, bound.d_inputs),
        (ours.d_coeffs - theirs.d_coeffs, bound.d_coeffs),
    ];
    // Each of the two may be off by the bound.
    let ratios = pairs.into_iter().flat_map(|(difference, bound)| difference.abs() / (2.0 * bound));
    Ok(ratios.fold(0.0, f64::max))
}
