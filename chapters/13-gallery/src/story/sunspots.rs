//! A real series, smoothed, searched for periods, and predicted.

use linrec::Direction;
use linrec::contract::golden::array_distance;
use linrec::lesson::{self, Kind, Lesson, plot, plot::Chart};
use ndarray::{Array1, ArrayView1, s};

use super::Gallery;
use crate::models::iir::{bank as bank_of, bank_direct};
use crate::sunspots;
use crate::sunspots::{
    FIRST_YEAR, fit, forecast, numbers, smooth as walk, smooth_both_ways, surprises,
};

fn points(series: ArrayView1<f64>, first_year: usize) -> Vec<(f64, f64)> {
    series.iter().enumerate().map(|(l, &y)| ((first_year + l) as f64, y)).collect()
}

/// One way, and there and back.
pub fn smooth(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("sunspots", "Three centuries of sunspots")?;
    let series = numbers();
    lesson.say(&format!(
        "The mean sunspot number of each year from {FIRST_YEAR} to {}: {} numbers, of which the largest is \
         {}. A moving average with c = 0.8 takes the cycles off, and comes late. Walking back over its result \
         in reverse makes up for that.",
        FIRST_YEAR + series.len() - 1,
        series.len(),
        series.fold(0.0, |a: f64, &b| a.max(b)),
    ));
    let keep = 0.8;
    let one_way = walk(series.view(), keep, Direction::Forward)?;
    let both_ways = smooth_both_ways(series.view(), keep)?;
    let from = 1880 - FIRST_YEAR;
    let part = |series: &Array1<f64>| points(series.slice(s![from..]), FIRST_YEAR + from);
    let chart = Chart::new("Sunspots since 1880")
        .axes("year", "sunspot number")
        .line("the series", part(&series))
        .line("forward", part(&one_way))
        .line("there and back", part(&both_ways));
    lesson.figure("sunspots.svg", "Sunspots, smoothed", Kind::Computed, &plot::svg(&[&chart])?)?;

    // In the middle of a long series a single 1 becomes c^|l − k| (1 − c) / (1 + c), the same to both sides.
    let middle = 200;
    let mut impulse = Array1::zeros(2 * middle + 1);
    impulse[middle] = 1.0;
    let answer = smooth_both_ways(impulse.view(), keep)?;
    let formula = Array1::from_shape_fn(impulse.len(), |l: usize| {
        keep.powi(l.abs_diff(middle) as i32) * (1.0 - keep) / (1.0 + keep)
    });
    let (answer, formula) = (answer.slice(s![100..301]), formula.slice(s![100..301]));
    lesson.check(
        "there and back, and its formula, relative",
        array_distance(&answer, &formula),
        super::LIMIT,
    );
    Ok(())
}

/// Which periods are in it?
pub fn bank(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("bank", "A bank of resonators")?;
    let series = numbers();
    let mean = series.mean().unwrap_or(0.0);
    let centred = &series - mean;
    let (memory, count) = (60.0, 181);
    let periods = Array1::from_shape_fn(count, |row| 4.0 + 0.1 * row as f64);
    lesson.say(&format!(
        "{count} rows over the same series, each with a coefficient that turns once in its period, from {} to \
         {} years, and remembers {memory} years.",
        periods[0],
        periods[count - 1],
    ));
    let solved = gallery.complex(&bank_of(centred.view(), periods.view(), memory))?;
    // The first years are those in which the states grow from zero.
    let settled = solved.states.slice(s![.., memory as usize..]);
    let strength: Array1<f64> = settled
        .rows()
        .into_iter()
        .map(|row| (row.iter().map(|y| y.norm_sqr()).sum::<f64>() / row.len() as f64).sqrt())
        .collect();
    let peak = (0..count).max_by(|&a, &b| strength[a].total_cmp(&strength[b])).unwrap_or(0);
    let chart = Chart::new("How far each row swings")
        .axes("period in years", "root mean square of |y|")
        .line("", periods.iter().copied().zip(strength.iter().copied()));
    lesson.figure("bank.svg", "Periods of the sunspots", Kind::Computed, &plot::svg(&[&chart])?)?;
    lesson.say(&format!(
        "The row of {:.1} years swings farthest, by {:.0}.",
        periods[peak], strength[peak],
    ));
    lesson.value("peak_period", format!("{:.1}", periods[peak]), Kind::Computed);
    let last = series.len() - 1;
    let got = solved.states.column(last).to_owned();
    let formula = periods.mapv(|period| bank_direct(centred.view(), period, memory, last));
    let error = array_distance(&got, &formula);
    gallery.enter(lesson, ("bank of resonators", "sum over the past"), &solved, error);
    Ok(())
}

/// Yule's model, and its forecast of years that it has not seen.
pub fn predict(lesson: &mut Lesson, gallery: &mut Gallery) -> lesson::Result {
    lesson.step("yule", "A filter that was found in data")?;
    let series = numbers();
    let seen = 1979 - FIRST_YEAR;
    let mean = series.slice(s![..seen]).mean().unwrap_or(0.0);
    let centred = &series - mean;
    let past = centred.slice(s![..seen]);
    let Some(filter) = fit(past) else {
        return Err("the series does not determine a filter".into());
    };
    let (radius, angle) = filter.poles()[0].to_polar();
    let period = std::f64::consts::TAU / angle.abs();
    lesson.say(&format!(
        "Fitted to the years up to 1978: y_l = {:.3} y_(l−1) − {:.3} y_(l−2), around the mean of {mean:.1}. Its \
         poles turn once in {period:.2} years, and a swing keeps {radius:.3} of its size from year to year.",
        filter.a1, -filter.a2,
    ));
    lesson.value("yule_a1", format!("{:.3}", filter.a1), Kind::Computed);
    lesson.value("yule_a2", format!("{:.3}", -filter.a2), Kind::Computed);
    lesson.value("yule_period", format!("{period:.2}"), Kind::Computed);
    lesson.value("yule_radius", format!("{radius:.3}"), Kind::Computed);

    let solved = gallery.complex(&filter.problem(surprises(past, filter).view()))?;
    let again = filter.read(solved.states.view())?;
    let error = array_distance(&again, &past.to_owned());
    gallery.enter(
        lesson,
        ("sunspots' filter", "series that its surprises give back"),
        &solved,
        error,
    );

    let ahead = series.len() - seen;
    let expected = forecast(past, filter, ahead)?;
    let truth = centred.slice(s![seen..]);
    let rms = |errors: Array1<f64>| errors.mapv(|e| e * e).mean().unwrap_or(f64::NAN).sqrt();
    let (first, all) = (3, ahead);
    let of_model = |n: usize| rms(&expected.slice(s![..n]) - &truth.slice(s![..n]));
    let of_mean = |n: usize| rms(truth.slice(s![..n]).to_owned());
    lesson.say(&format!(
        "What it expects of the years from 1979 on is off by {:.0} in the first {first} years and by {:.0} in \
         all {all}; expecting the mean all the time is off by {:.0} and {:.0}.",
        of_model(first),
        of_model(all),
        of_mean(first),
        of_mean(all),
    ));
    for (key, value) in [
        ("model_first", of_model(first)),
        ("model_all", of_model(all)),
        ("mean_first", of_mean(first)),
        ("mean_all", of_mean(all)),
    ] {
        lesson.value(key, format!("{value:.0}"), Kind::Computed);
    }
    let one_ahead = rms(surprises(centred.view(), filter).slice(s![seen..]).to_owned());
    lesson.say(&format!("One year ahead, it is off by {one_ahead:.0} over the same years."));
    lesson.value("one_ahead", format!("{one_ahead:.0}"), Kind::Computed);
    let from = 1940 - FIRST_YEAR;
    let chart = Chart::new("What a filter of the second order expects")
        .axes("year", "sunspot number")
        .line("the series", points(series.slice(s![from..]), sunspots::FIRST_YEAR + from))
        .line("forecast in 1978", points((expected + mean).view(), FIRST_YEAR + seen));
    lesson.figure("forecast.svg", "A forecast", Kind::Computed, &plot::svg(&[&chart])?)
}
