//! How far back a gradient reaches.

use linrec::lesson::{self, Kind, Lesson, plot, plot::Chart};
use linrec::{Engine, Options};
use ndarray::Array2;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::ENGINE;

/// Puts a gradient of 1 on the last output and follows it back.
pub fn reach(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("reach", "How far back a gradient reaches")?;
    let seq_len = 200;
    let mut rng = StdRng::seed_from_u64(40);
    let mut draw = |low: f64, high: f64| {
        Array2::from_shape_simple_fn((1, seq_len), || rng.random_range(low..high))
    };
    let kinds = [
        ("c in [1, 1.04)", draw(1.0, 1.04)),
        ("c in [0.98, 1)", draw(0.98, 1.0)),
        ("c = 0.9", Array2::from_elem((1, seq_len), 0.9)),
        ("c in [0, 1)", draw(0.0, 1.0)),
    ];
    lesson.say(&format!(
        "Sequences of {seq_len}; only the last output counts. What does a change of the first input \
         mean to it?",
    ));
    let mut d_outputs = Array2::zeros((1, seq_len));
    d_outputs[[0, seq_len - 1]] = 1.0;
    let mut chart = Chart::new("A gradient of 1 at the last output, on its way back")
        .axes("position k", "gradient of the input at k")
        .log_y(10.0)
        .y_range(1e-16, 1e3);
    let zeros = Array2::zeros((1, seq_len));
    let mut first = Vec::new();
    for (name, coeffs) in &kinds {
        let d =
            ENGINE.backward(d_outputs.view(), coeffs.view(), zeros.view(), &Options::default())?;
        let points = d.d_inputs.iter().enumerate().map(|(k, &d)| (k as f64, d));
        // Below the chart's edge there is nothing to draw.
        chart = chart.line(name, points.filter(|&(_, d)| d >= 1e-16));
        first.push(format!("{:.0e} with {name}", d.d_inputs[[0, 0]]));
    }
    lesson.say(&format!("δ^(x)_0 is {}.", first.join(", ")));
    lesson.figure(
        "reach.svg",
        "How far back a gradient reaches",
        Kind::Computed,
        &plot::svg(&[&chart])?,
    )?;
    lesson.say(
        "The same products that let the past fade in the outputs let the gradient fade on its way \
         back: what a state has forgotten, training cannot reach.",
    );
    Ok(())
}
