//! What a step size does to one state, and how large everything gets.

use linrec::lesson::plot::{self, Chart};
use linrec::lesson::{self, Kind, Lesson, Table};
use ndarray::{Array2, Array3, Array4, ArrayView2, Axis};

use crate::{Arguments, direct, post};

/// One channel with one state: what it holds when Δ is the same everywhere, and when it is chosen.
pub fn selection(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("selection", "One state, and how much a step counts")?;
    let mut table = Table::new(["Δ", "c = e^-Δ", "factor of u", "what the step does"]);
    for (delta, what) in [
        (0.0_f64, "the state passes unchanged, the input is not seen"),
        (0.1, "a little of the input comes in"),
        (1.0, "a third of the state stays"),
        (7.0, "the state is gone, the input has taken its place"),
    ] {
        let numbers = [format!("{delta}"), format!("{:.3}", (-delta).exp()), format!("{delta}")];
        table.row(numbers.into_iter().chain([what.to_owned()]));
    }
    lesson.say("With A = -1 and B = 1 the recurrence is h_l = h_{l-1} e^-Δ + Δ u_l.");
    lesson.table("steps.csv", Kind::Computed, &table)?;

    // Noise, and three numbers worth keeping. With B = (1 - e^-Δ) / Δ the state moves towards u.
    let len = 60;
    let u = Array2::from_shape_fn((1, len), |(_, l)| match l {
        8 => 1.0,
        26 => -0.6,
        47 => 0.5,
        l => 0.4 * ((l * l * 37 % 101) as f64 / 50.0 - 1.0),
    });
    let chosen =
        Array2::from_shape_fn((1, len), |(_, l)| if [8, 26, 47].contains(&l) { 7.0 } else { 0.0 });
    let states = |delta: &Array2<f64>| -> lesson::Result<Vec<(f64, f64)>> {
        let b = delta.mapv(|delta| if delta > 0.0 { (1.0 - (-delta).exp()) / delta } else { 0.0 });
        let y = one_state(u.view(), delta.view(), b.view())?;
        Ok(y.into_iter().enumerate().map(|(l, y)| (l as f64, y)).collect())
    };
    let given = u.iter().enumerate().map(|(l, &u)| (l as f64, u));
    let chart = Chart::new("The same input, remembered in three ways")
        .axes("position l", "input u and state h")
        .line("Δ = 7 at three positions, else 0", states(&chosen)?)
        .line("Δ = 0.1 everywhere", states(&Array2::from_elem((1, len), 0.1))?)
        .line("Δ = 1 everywhere", states(&Array2::from_elem((1, len), 1.0))?)
        .dots("input", given);
    lesson.figure("selection.svg", "Selection", Kind::Computed, &plot::svg(&[&chart])?)
}

fn one_state(
    u: ArrayView2<f64>,
    delta: ArrayView2<f64>,
    b: ArrayView2<f64>,
) -> Result<Vec<f64>, linrec::Error> {
    let (a, c) = (Array2::from_elem((1, 1), -1.0), Array4::ones((1, 1, 1, u.ncols())));
    let batch = |array: ArrayView2<f64>| -> Array3<f64> { array.insert_axis(Axis(0)).to_owned() };
    let (u, delta, b) = (batch(u), batch(delta), batch(b).insert_axis(Axis(0)));
    let arguments = Arguments {
        u: u.view(),
        delta: delta.view(),
        a: a.view(),
        b: b.view(),
        c: c.view(),
        d: None,
        z: None,
        delta_bias: None,
        delta_softplus: false,
    };
    Ok(direct(&arguments)?.y.into_iter().collect())
}

/// The arrays of the post's problem.
pub fn sizes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("sizes", "What there is, and what it becomes")?;
    let (channels, states, len) = (post::CHANNELS, post::STATES, post::LEN);
    lesson.say(&format!(
        "The post's sizes: {channels} channels, {states} states in each, one sequence of {len} steps, in f32.",
    ));
    let mut table = Table::new(["array", "shape", "numbers", "MB"]);
    for (name, shape) in [
        ("A", vec![channels, states]),
        ("B, and C", vec![states, len]),
        ("u, Δ, and y", vec![channels, len]),
        ("x, c, and h", vec![channels, states, len]),
    ] {
        let numbers: usize = shape.iter().product();
        let text: Vec<_> = shape.iter().map(usize::to_string).collect();
        let megabytes = format!("{:.2}", (4 * numbers) as f64 * 1e-6);
        table.row([name.to_owned(), text.join(" × "), numbers.to_string(), megabytes]);
    }
    lesson.table("sizes.csv", Kind::Computed, &table)?;
    lesson.value("rows", channels * states, Kind::Computed);
    Ok(())
}
