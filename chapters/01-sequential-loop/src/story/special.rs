//! Sums, products, averages and restarts, each checked against another way to get them.

use linrec::lesson::{Lesson, Result};
use ndarray::{Array1, Axis};

use super::{differing, random};
use crate::linrec;
use crate::special_cases::{
    cumulative_product, cumulative_sum, exponential_average, restart as restart_at, running_mean,
};

/// Cumulative sum and product, against ndarray's.
pub fn sums_and_products(lesson: &mut Lesson) -> Result {
    lesson.step("sums", "Sums and products")?;
    let numbers = [1.0, 2.0, 3.0, 4.0, 5.0];
    lesson.show(format!(
        "numbers            {}\ncumulative sum     {}\ncumulative product {}",
        Array1::from(numbers.to_vec()),
        Array1::from(cumulative_sum(&numbers)),
        Array1::from(cumulative_product(&numbers)),
    ));
    lesson.say("And 1000 random numbers, against ndarray's accumulate_axis_inplace and cumprod:");

    let x = Array1::from(random(1000, 0.5..1.5, 5));
    let mut sums = x.clone();
    sums.accumulate_axis_inplace(Axis(0), |&before, now| *now += before);
    let products = x.cumprod(Axis(0));
    let ours = (cumulative_sum(&x.to_vec()), cumulative_product(&x.to_vec()));
    lesson.check("sums that differ in a bit", differing(&ours.0, &sums.to_vec()), 0.0);
    lesson.check("products that differ in a bit", differing(&ours.1, &products.to_vec()), 0.0);
    Ok(())
}

/// The mean so far, and the average that fades.
pub fn averages(lesson: &mut Lesson) -> Result {
    lesson.step("averages", "Averages")?;
    let x = Array1::from(random(1000, -1.0..1.0, 6));
    lesson.say(
        "The mean of everything so far, against ndarray's mean of each prefix. The loop multiplies \
         an input by up to 999 coefficients, each of them rounded, and rounds at every step; \
         ndarray adds up and divides. So the two may differ.",
    );
    let worst = running_mean(&x.to_vec())
        .into_iter()
        .enumerate()
        .map(|(l, mean)| {
            let prefix = x.slice(ndarray::s![..=l]);
            let size = prefix.mapv(f64::abs).mean().unwrap_or(0.0);
            let error = (mean - prefix.mean().unwrap_or(0.0)).abs();
            // Three roundings a step here (a coefficient, a product, an addition), one there, and a
            // few that every term meets.
            let roundings = (4 * l + 5) as f64 * f64::EPSILON / 2.0;
            error / (roundings / (1.0 - roundings) * size)
        })
        .fold(0.0, f64::max);
    lesson.check("largest difference, in units of its bound", worst, 1.0);

    lesson.say(
        "The average that fades, y_l = c y_{l-1} + (1-c) x_l, for c = 1/2 and 40 whole numbers: \
         halves are exact, so the weighted sum 1/2 x_l + 1/4 x_{l-1} + ... has to agree in every bit.",
    );
    let whole = Array1::from(random(40, -100.0..100.0, 7)).mapv(f64::round);
    let faded = exponential_average(&whole.to_vec(), 0.5, 0.0);
    let weighted: Vec<f64> = (0..whole.len())
        .map(|l| {
            let weights = Array1::from_shape_fn(l + 1, |k| 0.5_f64.powi((l - k + 1) as i32));
            weights.dot(&whole.slice(ndarray::s![..=l]))
        })
        .collect();
    lesson.check("averages that differ in a bit", differing(&faded, &weighted), 0.0);
    Ok(())
}

/// Packs three sequences into one.
pub fn restart(lesson: &mut Lesson) -> Result {
    lesson.step("restart", "A coefficient of zero starts a new sequence")?;
    let (x, mut c) = (random(1000, -1.0..1.0, 8), random(1000, 0.98..1.0, 9));
    let starts = [0, 137, 600];
    restart_at(&mut c, &starts);
    let packed = linrec(&x, &c, 123.0);
    let bounds = [0, 137, 600, 1000];
    let apart: Vec<f64> =
        bounds.windows(2).flat_map(|b| linrec(&x[b[0]..b[1]], &c[b[0]..b[1]], 0.0)).collect();
    lesson.say(
        "Sequences of 137, 463 and 400 elements lie one after another in one array, with a \
         coefficient of 0 where each begins. The initial state, 123, must not be seen at all.",
    );
    lesson.check("outputs that differ from one by one", differing(&packed, &apart), 0.0);
    Ok(())
}
