//! The findings from results alone: segments, the square, the coefficients.

use lesson::{Kind, Lesson, Result};
use rayon::prelude::*;

use super::measured::thousands;
use super::pictures;
use crate::fit::{self, Fit, Pair};
use crate::squares::Square;
use crate::table::{ARGUMENTS, EX2, RCP, Table};

/// The number of neighbours in a mean error.
const GROUP: u32 = 1024;

pub(super) fn segments(lesson: &mut Lesson) -> Result {
    lesson.step("segments", "How many segments?")?;
    lesson.say(
        "The mean error of 1024 neighbours, right of a place and left of it: the root mean square of the differences, \
         at odd multiples of 1/32, 1/64 and so on.",
    );
    let mut table =
        lesson::Table::new(["function", "1/32", "1/64", "1/128", "1/256", "1/512", "1/1024"]);
    let mut panels = Vec::new();
    for of in [EX2, RCP] {
        let means = of.mean_errors(GROUP);
        let jump = |power: u32| {
            let (places, step) = (1 << power, (ARGUMENTS / GROUP) as usize >> power);
            let odd = (1..places).step_by(2).map(|i| means[i * step] - means[i * step - 1]);
            let squares: Vec<f64> = odd.map(|jump| jump * jump).collect();
            (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
        };
        let cells = (5..=10).map(|power| format!("{:.3}", jump(power)));
        table.row(std::iter::once(of.name.to_owned()).chain(cells));
        lesson.value(
            &format!("{}_last_jump", of.name),
            format!("{:.3}", jump(of.index)),
            Kind::Computed,
        );
        lesson.value(
            &format!("{}_no_jump", of.name),
            format!("{:.3}", jump(of.index + 1)),
            Kind::Computed,
        );
        panels.push((of, means));
    }
    lesson.table("jumps.csv", Kind::Computed, &table)?;
    pictures::segments(lesson, GROUP, &panels)
}

/// Returns the squares of a segment's arguments, in units of the table's lowest column.
pub(super) fn squares_of(table: &Table, square: Square) -> Vec<f64> {
    let unit = f64::from(table.dropped).exp2();
    (0..1_u32 << table.bits()).map(|x| square.of(x) as f64 / unit).collect()
}

/// Returns the best fit of every segment, and the number of results that differ with it.
fn fits(table: &Table, squares: &[f64]) -> Vec<(Fit, usize)> {
    let one = |segment: u32| {
        let results = table.results(segment);
        let best = fit::best(&results, squares);
        (best, best.misses(&results, squares))
    };
    (0..table.segments()).into_par_iter().map(one).collect()
}

pub(super) fn squares(lesson: &mut Lesson) -> Result {
    lesson.step("squares", "Which square?")?;
    lesson.say(
        "For each segment the coefficients with the smallest spread. Below 1 there is a constant with which all \
         results come out; else the constant is put in the middle, and results that differ are counted.",
    );
    for of in [EX2, RCP] {
        let k = of.dropped;
        let candidates = [
            Square::Exact,
            Square::Cut(k),
            Square::Short(5),
            Square::Array(k - 1),
            Square::Folded(k - 1),
            Square::Folded(k),
            Square::Folded(k + 1),
        ];
        let mut table =
            lesson::Table::new(["square", "results that differ", "segments that fit", "spread"]);
        for square in candidates {
            let all = fits(&of, &squares_of(&of, square));
            let spreads = || all.iter().map(|(fit, _)| fit.spread());
            let fitting = spreads().filter(|&spread| spread < 1.0).count();
            let differ: usize = all.iter().map(|(_, misses)| misses).sum();
            let (least, largest) =
                (spreads().fold(f64::INFINITY, f64::min), spreads().fold(0.0, f64::max));
            table.row([
                square.name(),
                thousands(differ as u64),
                fitting.to_string(),
                format!("{least:.5} to {largest:.5}"),
            ]);
            let key = match square {
                Square::Exact => "exact",
                Square::Folded(column) if column == k => "folded",
                Square::Array(_) => "array",
                _ => continue,
            };
            let mut value = |what: &str, text: String| {
                lesson.value(&format!("{}_{key}_{what}", of.name), text, Kind::Computed);
            };
            value("differ", thousands(differ as u64));
            value("one_of", (ARGUMENTS as usize / differ.max(1)).to_string());
            value("least", format!("{least:.5}"));
            value("largest", format!("{largest:.5}"));
            if key == "folded" {
                let segments = f64::from(of.segments());
                lesson.check(
                    &format!("segments of {} that do not fit", of.name),
                    segments - fitting as f64,
                    0.0,
                );
            } else if key == "exact" {
                lesson.check(
                    &format!("segments of {} that fit the exact square", of.name),
                    fitting as f64,
                    0.0,
                );
            }
        }
        lesson.table(&format!("squares-{}.csv", of.name), Kind::Computed, &table)?;
    }
    pictures::square(lesson)?;
    pictures::betrayed(lesson)
}

pub(super) fn coefficients(lesson: &mut Lesson) -> Result {
    lesson.step("coefficients", "The coefficients")?;
    lesson.say("On how many segments there is a pair c1, c2 of multiples of 1/2, of whole numbers, of even ones:");
    let mut counts = lesson::Table::new([
        "function",
        "segments",
        "multiples of",
        "with one pair",
        "with more",
        "with none",
    ]);
    let mut examples =
        lesson::Table::new(["function", "segment", "c0", "c1", "c2", "c0 left open"]);
    for of in [EX2, RCP] {
        let squares = squares_of(&of, Square::Folded(of.dropped));
        let pairs = |grid: f64| -> Vec<Vec<Pair>> {
            let one = |segment: u32| {
                let results = of.results(segment);
                fit::on_grid(&results, &squares, &fit::best(&results, &squares), grid)
            };
            (0..of.segments()).into_par_iter().map(one).collect()
        };
        for (grid, name) in [(0.5, "1/2"), (1.0, "1"), (2.0, "2")] {
            let all = pairs(grid);
            let with = |wanted: fn(usize) -> bool| {
                all.iter().filter(|pairs| wanted(pairs.len())).count().to_string()
            };
            counts.row([
                of.name.to_owned(),
                of.segments().to_string(),
                name.to_owned(),
                with(|n| n == 1),
                with(|n| n > 1),
                with(|n| n == 0),
            ]);
            if grid == 1.0 {
                let only: Vec<Pair> =
                    all.iter().filter_map(|pairs| pairs.first().copied()).collect();
                let undecided = all.iter().filter(|pairs| pairs.len() != 1).count();
                lesson.check(
                    &format!("segments of {} without one pair", of.name),
                    undecided as f64,
                    0.0,
                );
                finish(lesson, &of, &squares, &only, &mut examples);
            }
        }
    }
    lesson.table("grids.csv", Kind::Computed, &counts)?;
    lesson.table("found.csv", Kind::Computed, &examples)
}

/// Shows the constant, a few rows, and the proof: all results come from the table that was found.
fn finish(
    lesson: &mut Lesson,
    of: &Table,
    squares: &[f64],
    pairs: &[Pair],
    examples: &mut lesson::Table,
) {
    let (k, constants) = fit::shared_constant(pairs);
    let Some(&constant) = constants.first() else { return };
    let c0 = |pair: &Pair| (pair.c0.1.ceil() as i64 - 1 - constant).div_euclid(1 << k);
    for segment in [0, 1, pairs.len() / 2, pairs.len() - 1] {
        let pair = &pairs[segment];
        let [c1, c2] = [pair.c1, pair.c2].map(|c| format!("{c:.0}"));
        let open = format!("{:.1}", pair.c0.1 - pair.c0.0);
        examples.row([of.name.to_owned(), segment.to_string(), c0(pair).to_string(), c1, c2, open]);
    }
    let differ: usize = pairs
        .par_iter()
        .enumerate()
        .map(|(segment, pair)| {
            let results = of.results(segment as u32);
            let sum = |x: usize| {
                let terms = pair.c1 as i64 * x as i64 + pair.c2 as i64 * squares[x] as i64;
                (c0(pair) << k) + constant + terms
            };
            (0..results.len()).filter(|&x| sum(x) >> 15 != i64::from(results[x])).count()
        })
        .sum();
    lesson.check(
        &format!("results of {} that differ from the table's", of.name),
        differ as f64,
        0.0,
    );
    let bits = |largest: f64| (largest + 1.0).log2().ceil() as u32;
    let most = |value: fn(&Pair) -> f64| pairs.iter().map(value).fold(0.0, f64::max);
    let widest = pairs.iter().map(|pair| c0(pair) as f64).fold(0.0, f64::max);
    let sizes = [bits(widest), bits(most(|pair| pair.c1.abs())), bits(most(|pair| pair.c2))];
    lesson.say(&format!(
        "{}: c0, c1 and c2 have {}, {} and {} bits. All c0 are multiples of 2^{k} plus {constants:?}.",
        of.name, sizes[0], sizes[1], sizes[2]
    ));
    let mut value = |key: &str, text: String| {
        lesson.value(&format!("{}_{key}", of.name), text, Kind::Computed);
    };
    for (key, size) in ["c0_bits", "c1_bits", "c2_bits"].into_iter().zip(sizes) {
        value(key, size.to_string());
    }
    value(
        "table_bits",
        (u32::try_from(pairs.len()).unwrap_or(0) * sizes.iter().sum::<u32>()).to_string(),
    );
    value("shared_power", k.to_string());
    let texts: Vec<String> = constants.iter().map(ToString::to_string).collect();
    value("shared_constant", texts.join(" or "));
    let open = pairs.iter().map(|pair| pair.c0.1 - pair.c0.0).fold(0.0, f64::max);
    value("open", format!("{open:.1}"));
}
