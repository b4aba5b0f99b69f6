//! The kernel stopped after each level: what is right already, and what is missing.

use linrec::contract::Domain;
use linrec::device::Device;
use linrec::lesson::{self, Kind, Lesson, Table, plot, plot::Chart};
use linrec::reference::{self, Rounding};
use linrec::simt::Class;
use linrec::{Error, Options};
use ndarray::Array2;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::block::STEPS;
use crate::stages::{STAGES, counted, outputs, stage};

/// An error of zero is drawn here: a logarithmic axis has no place for it.
const FLOOR: f64 = 1e-8;

/// Runs all stages on the same data.
pub fn stages(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("stages", "One level after the other")?;
    let mut rng = StdRng::seed_from_u64(60);
    let mut draw = |low: f32, high: f32| {
        Array2::from_shape_simple_fn((1, STEPS), || rng.random_range(low..high))
    };
    let (inputs, coeffs) = (draw(-1.0, 1.0), draw(0.98, 1.0));
    let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
    let exact = reference::forward(x, c, &options)?.outputs;
    let rounding = Rounding { levels: Domain::tree_levels(STEPS), exp_ulps: 0.0 };
    let bound = reference::forward_bound(x, c, &options, rounding)?.outputs;

    lesson.say(&format!(
        "{STEPS} steps with random inputs, coefficients in [0.98, 1). An output is right if its error is within the bound. \
         Counted for a warp: instructions, shuffles and barriers.",
    ));
    let header = [
        "algocode",
        "level",
        "right",
        "first wrong",
        "largest error",
        "instructions",
        "shuffles",
        "barriers",
    ];
    let mut table = Table::new(header);
    let mut errors =
        Chart::new("Error of each output").axes("step", "error (1e-8: none)").log_y(10.0);
    let mut first_wrongs = Vec::new();
    for (algocode, name) in STAGES.iter().enumerate() {
        let outputs = outputs(device, algocode as u32, x, c)?;
        let error: Vec<f64> =
            outputs.iter().zip(&exact).map(|(&y, exact)| (f64::from(y) - exact).abs()).collect();
        let wrong: Vec<usize> = (0..STEPS).filter(|&l| error[l] > bound[[0, l]]).collect();
        let launched = counted(stage(algocode as u32), (1, STEPS))?;
        let counters = launched.counters().cloned().unwrap_or_default();
        let per_warp = |count: u64| format!("{:.0}", count as f64 / 8.0);
        table.row([
            algocode.to_string(),
            name.to_string(),
            format!("{} of {STEPS}", STEPS - wrong.len()),
            wrong.first().map_or(String::from("–"), usize::to_string),
            format!("{:.1e}", error.iter().fold(0.0_f64, |largest, &error| largest.max(error))),
            per_warp(counters.instructions),
            per_warp(counters.class(Class::Shuffle)),
            counters.barriers.to_string(),
        ]);
        first_wrongs.push(wrong.first().copied());
        let points = error.iter().enumerate().map(|(l, &error)| (l as f64, error.max(FLOOR)));
        errors = errors.line(&format!("algocode {algocode}"), points);
        lesson.value(
            &format!("instructions_{algocode}"),
            per_warp(counters.instructions),
            Kind::Computed,
        );
    }
    lesson.table("stages.csv", Kind::Computed, &table)?;
    let expected = [Some(1), Some(4), Some(128), None];
    let off = first_wrongs.iter().zip(expected).filter(|(found, expected)| **found != *expected);
    lesson.check(
        "stages that go wrong elsewhere than at 1, 4, 128 and nowhere",
        off.count() as f64,
        0.0,
    );

    let svg = plot::grid(&[&shape(device)?, &errors], 1)?;
    lesson.figure("stages.svg", "The four stages", Kind::Computed, &svg)
}

/// What the stages make of constant inputs, where the parts are seen at a glance.
fn shape(device: &Device) -> Result<Chart, Error> {
    let (x, c) = (Array2::ones((1, STEPS)), Array2::from_elem((1, STEPS), 0.99_f32));
    let mut chart = Chart::new("Outputs for inputs 1 and coefficients 0.99").axes("step", "output");
    for algocode in 0..STAGES.len() as u32 {
        let outputs = outputs(device, algocode, x.view(), c.view())?;
        let points = outputs.iter().enumerate().map(|(l, &y)| (l as f64, f64::from(y)));
        chart = chart.line(&format!("algocode {algocode}"), points.collect::<Vec<_>>());
    }
    Ok(chart)
}
