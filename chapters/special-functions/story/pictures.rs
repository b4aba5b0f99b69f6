//! The figures of the appendix.

use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Result};
use simt::special;

use super::found::squares_of;
use crate::errors::in_ulps;
use crate::fit::{self, ULP};
use crate::squares::Square;
use crate::table::{ARGUMENTS, EX2, Table};

/// The scale of a segment's arguments in the figure: eighths of `ex2`'s.
const SCALE: f64 = 16_384.0;

pub(super) fn errors(lesson: &mut Lesson) -> Result {
    lesson.step("errors", "The errors")?;
    let extremes = |bins: u32, per_bin: u32, error: &dyn Fn(u32) -> (f64, f64)| {
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for bin in 0..bins {
            let all: Vec<(f64, f64)> = (bin * per_bin..(bin + 1) * per_bin).map(error).collect();
            let of = |better: fn(f64, f64) -> f64| all.iter().map(|p| p.1).reduce(better);
            if let (Some(&(x, _)), Some(least), Some(most)) =
                (all.first(), of(f64::min), of(f64::max))
            {
                low.push((x, least));
                high.push((x, most));
            }
        }
        (low, high)
    };
    let power = |bits: u32| {
        let x = f64::from(f32::from_bits(bits));
        (x.abs(), in_ulps(f32::from_bits(special::ex2(bits, true)), x.exp2()))
    };
    let bins = 512;
    let (low, high) = extremes(bins, ARGUMENTS / bins, &|m| power(0x3f80_0000 + m));
    let positive = Chart::new("ex2 of 1 to 2")
        .axes("x", "error (ulp)")
        .y_range(-2.5, 2.0)
        .line("lowest", low)
        .line("highest", high);
    let (low, high) = extremes(bins, ARGUMENTS / bins, &|m| power(0xbf80_0000 + m));
    let negative = Chart::new("ex2 of -1 to -2")
        .axes("-x", "error (ulp)")
        .y_range(-2.5, 2.0)
        .line("lowest", low)
        .line("highest", high);
    let sine = |m: u32| {
        let x = (f64::from(m) / f64::from(1 << 20) * std::f64::consts::TAU) as f32;
        let result = f32::from_bits(special::sin(x.to_bits()));
        let error = f64::from(result) - f64::from(x).sin();
        (f64::from(x), error * f64::from(1 << 24))
    };
    let (low, high) = extremes(bins, (1 << 20) / bins, &sine);
    let sine = Chart::new("sin of 0 to 2π")
        .axes("x", "error (2^-24)")
        .line("lowest", low)
        .line("highest", high);
    let svg = plot::grid(&[&positive, &negative, &sine], 1)?;
    lesson.figure("errors.svg", "the errors of ex2 and sin", Kind::Computed, &svg)
}

pub(super) fn segments(lesson: &mut Lesson, group: u32, means: &[(Table, Vec<f64>)]) -> Result {
    let charts: Vec<Chart> = means
        .iter()
        .map(|(table, means)| {
            let shown = 6 << table.bits();
            let points = means.iter().take((shown / group) as usize).enumerate();
            let points = points.map(|(i, &mean)| {
                let middle =
                    (f64::from(group) * (i as f64 + 0.5)) / f64::from(1_u32 << table.bits());
                (middle, mean)
            });
            Chart::new(&format!("{}: six segments of {}", table.name, table.segments()))
                .axes("segment", "mean error (ulp)")
                .dots("1024 neighbours", points)
        })
        .collect();
    let panels: Vec<&dyn plot::Panel> =
        charts.iter().map(|chart| chart as &dyn plot::Panel).collect();
    lesson.figure(
        "segments.svg",
        "the mean errors of six segments",
        Kind::Computed,
        &plot::grid(&panels, 1)?,
    )
}

pub(super) fn square(lesson: &mut Lesson) -> Result {
    let unit = f64::from(1 << 19);
    let folded = Square::Folded(19);
    let left_out = |x: u32| (Square::Exact.of(x) - folded.of(x)) as f64 / unit;
    let stairs = (0..=2400_u32).step_by(4);
    let near = Chart::new("The first 2400 of 131,072 arguments")
        .axes("x", "square (2^19)")
        .line(
            "without the columns below 2^19",
            stairs.clone().map(|x| (f64::from(x), folded.of(x) as f64 / unit)),
        )
        .line("exact", stairs.map(|x| (f64::from(x), Square::Exact.of(x) as f64 / unit)));
    let bins = (0..512_u32).map(|bin| {
        let all = (256 * bin..256 * (bin + 1)).map(left_out);
        let x = f64::from(256 * bin) / SCALE;
        ((x, all.clone().sum::<f64>() / 256.0), (x, all.fold(0.0, f64::max)))
    });
    let (means, largest): (Vec<_>, Vec<_>) = bins.unzip();
    let far = Chart::new("Exact square minus the unit's, of 256 neighbours")
        .axes("x (2^14)", "left out (2^19)")
        .line("mean", means)
        .line("largest", largest);
    let most = (0..1_u32 << 17).map(left_out).fold(0.0, f64::max);
    let mean = (0..1_u32 << 17).map(left_out).sum::<f64>() / f64::from(1 << 17);
    lesson.value("left_out_most", format!("{most:.1}"), Kind::Computed);
    lesson.value("left_out_mean", format!("{mean:.1}"), Kind::Computed);
    // In units of a result's last place, for the largest coefficient of the square.
    lesson.value("left_out_ulp", format!("{:.2}", most * 980.0 / ULP), Kind::Computed);
    lesson.figure(
        "square.svg",
        "what the square leaves out",
        Kind::Computed,
        &plot::grid(&[&near, &far], 1)?,
    )
}

/// Draws the limits of `c0` from the results, with the exact square and the truncated one.
pub(super) fn betrayed(lesson: &mut Lesson) -> Result {
    let segment = EX2.segments() - 1;
    let results = EX2.results(segment);
    let chart = |square: Square, title: &str| {
        let squares = squares_of(&EX2, square);
        let best = fit::best(&results, &squares);
        let middle = f64::midpoint(best.limits.0, best.limits.1) + ULP / 2.0;
        let bin = 256;
        let limits = (0..results.len() / bin).map(|i| {
            let xs = i * bin..(i + 1) * bin;
            let [least, largest] = fit::limits(&results, &squares, [best.c1, best.c2], xs.clone());
            let at = |c0: f64| (xs.start as f64 / SCALE, (c0 - middle) / ULP);
            (at(largest.0), at(least.0 + ULP))
        });
        let (at_least, below): (Vec<_>, Vec<_>) = limits.unzip();
        Chart::new(title)
            .axes("x (2^14)", "c0 (ulp, from the middle)")
            .y_range(-0.15, 0.15)
            .line("at least", at_least)
            .line("less than", below)
    };
    let exact = chart(Square::Exact, "The exact square");
    let folded = chart(Square::Folded(19), "Without the columns below 2^19");
    let svg = plot::grid(&[&exact, &folded], 1)?;
    lesson.figure("betrayed.svg", "between which limits c0 has to be", Kind::Computed, &svg)
}
