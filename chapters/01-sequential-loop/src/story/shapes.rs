//! Pictures of what coefficients do to a signal.

use linrec::lesson::plot::{self, Chart};
use linrec::lesson::{Kind, Lesson, Result, Table};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Normal};

use crate::exercises::coeff_of_half_life;
use crate::linrec;
use crate::special_cases::{exponential_average, gated_average};

/// One input of 1, and how long it is remembered.
pub fn impulse(lesson: &mut Lesson) -> Result {
    lesson.step("impulse", "How long one input is remembered")?;
    lesson.say(
        "A single input of 1, then nothing but zeros: the outputs are the powers of the coefficient.",
    );
    let mut x = vec![0.0; 41];
    x[0] = 1.0;
    let response = |c: f64| linrec(&x, &vec![c; x.len()], 0.0);
    let line = |c: f64| response(c).into_iter().enumerate().map(|(l, y)| (l as f64, y));
    let chart = Chart::new("One input of 1, and what is left of it")
        .axes("position l", "output y")
        .line("c = 0.5", line(0.5))
        .line("c = 0.9", line(0.9))
        .line("c = 0.99", line(0.99))
        .line("c = -0.8", line(-0.8));
    lesson.figure("impulse.svg", "an impulse", Kind::Computed, &plot::svg(&[&chart])?)?;

    let steps = |c: f64| 0.5_f64.ln() / c.ln();
    lesson.show(format!(
        "half of it is left after {:.1} step with c = 0.5, {:.1} with 0.9, {:.1} with 0.99",
        steps(0.5),
        steps(0.9),
        steps(0.99)
    ));
    lesson.value("half_life_099", format!("{:.0}", steps(0.99)), Kind::Computed);
    lesson.value("coeff_1000", format!("{:.5}", coeff_of_half_life(1000.0)), Kind::Computed);
    Ok(())
}

/// A noisy signal with jumps, averaged with fixed coefficients and with coefficients that it makes.
pub fn signal(lesson: &mut Lesson) -> Result {
    lesson.step("signal", "What coefficients do to a signal")?;
    let levels = [0.0, 1.0, 0.3, -0.6];
    let truth = |l: usize| levels[l / 100];
    let noise = Normal::new(0.0, 0.1)?;
    let mut rng = StdRng::seed_from_u64(10);
    let x: Vec<f64> = (0..400).map(|l| truth(l) + noise.sample(&mut rng)).collect();
    lesson.say(
        "A signal with three jumps, under noise. A fixed coefficient must choose: near 0 the average \
         keeps the noise, near 1 it is late at every jump. The last average makes its own \
         coefficients: 0 where the signal jumps by more than 0.45, then 1/2, 2/3, 3/4 and so on, at \
         most 0.98. It is the same recurrence; only c depends on the data.",
    );
    let (gated, coeffs) = gated_average(&x, 0.45, 0.98);
    let points = |values: &[f64]| -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(l, &value)| (l as f64, value)).collect()
    };
    let fixed = |c: f64| exponential_average(&x, c, 0.0);
    let above = Chart::new("One coefficient for all steps")
        .axes("position l", "signal and averages")
        .dots("input", points(&x))
        .line("c = 0.5", points(&fixed(0.5)))
        .line("c = 0.9", points(&fixed(0.9)))
        .line("c = 0.98", points(&fixed(0.98)));
    let below = Chart::new("Coefficients that the signal makes")
        .axes("position l", "signal, average, coefficients")
        .dots("input", points(&x))
        .line("average", points(&gated))
        .dashed("coefficients", points(&coeffs));
    let svg = plot::grid(&[&above, &below], 1)?;
    lesson.figure("signal.svg", "a signal and its averages", Kind::Computed, &svg)?;

    let error = |values: &[f64]| {
        let squares: f64 = values.iter().enumerate().map(|(l, y)| (y - truth(l)).powi(2)).sum();
        (squares / x.len() as f64).sqrt()
    };
    let names = ["no average", "c = 0.5", "c = 0.9", "c = 0.98", "its own coefficients"];
    let errors = [&x, &fixed(0.5), &fixed(0.9), &fixed(0.98), &gated].map(|values| error(values));
    let mut table = Table::new(["average", "distance from the truth (rms)"]);
    for (name, error) in names.iter().zip(errors) {
        table.row([name.to_string(), format!("{error:.3}")]);
    }
    lesson.table("signal.csv", Kind::Computed, &table)?;
    Ok(())
}
