//! A filter of the second order by two complex recurrences.

use linrec::contract::golden::array_distance;
use linrec::lesson::{self, Kind, Lesson, plot, plot::Chart};
use ndarray::Array1;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};

use super::Gallery;
use crate::models::iir::SecondOrder;

/// An impulse, and noise.
pub fn filter(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("filter", "A filter that rings")?;
    let filter = SecondOrder::swinging(25.0, 0.96);
    let [pole, _] = filter.poles();
    lesson.say(&format!(
        "y_l = {:.4} y_(l−1) − {:.4} y_(l−2) + u_l looks back twice. Its poles are {:.4} ± {:.4}i: two \
         recurrences that look back once.",
        filter.a1, -filter.a2, pole.re, pole.im,
    ));
    let len = 160;
    let mut impulse = Array1::zeros(len);
    impulse[0] = 1.0;
    let response = filter.filter(impulse.view())?;
    let formula = filter.impulse_response(len);
    let points = |values: &Array1<f64>| -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(l, &y)| (l as f64, y)).collect()
    };
    let chart = Chart::new("The answer to a single 1")
        .axes("position l", "output y")
        .line("two recurrences", points(&response))
        .dots("r^l sin((l + 1)θ) / sin θ", points(&formula).into_iter().step_by(4));
    lesson.figure("filter.svg", "An impulse response", Kind::Computed, &plot::svg(&[&chart])?)?;
    lesson.check(
        "impulse response and formula with sines, relative",
        array_distance(&response, &formula),
        super::LIMIT,
    );

    let mut rng = StdRng::seed_from_u64(131);
    let noise = Array1::from_shape_simple_fn(2000, || StandardNormal.sample(&mut rng));
    let solved = gallery.complex(&filter.problem(noise.view()))?;
    let outputs = filter.read(solved.states.view())?;
    let error = array_distance(&outputs, &filter.direct(noise.view()));
    gallery.enter(lesson, ("filter", "loop that looks back twice"), &solved, error);
    Ok(())
}
