//! How much the choice matters.

use linrec::kernels::Pass;
use linrec::lesson::plot::{self, Chart};
use linrec::lesson::{self, Kind, Lesson, Table};

use super::{best, cell};
use crate::log::Line;
use crate::record;

/// What one configuration for all lengths gives away, and how many are nearly as good as the best.
pub fn choice(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("choice", "How much the choice matters")?;
    let lines = record::tuning()?;
    lesson.say(
        "The pipe kernel on the H200, as parts of the roof: the fastest configuration at each length, the post's 8x64:0 \
         for all lengths, 4x128:0 for all lengths, and the slowest that was measured. The last column counts those \
         within 5 % of the fastest.",
    );
    let header =
        ["length", "pass", "fastest", "8x64:0", "4x128:0", "slowest", "measured", "within 5 %"];
    let mut table = Table::new(header);
    let mut given_away: f64 = 0.0;
    for pass in Pass::ALL {
        for len in [16, 64, 256, 1024, 4096, 16_384, 65_536] {
            let all: Vec<&Line> = best::of(&lines, "pipe", pass, len).collect();
            let ratios = all.iter().map(|line| line.ratio);
            let fastest = ratios.clone().reduce(f64::max);
            let named = |name: &str| same_launch(&all, name).map(|line| line.ratio);
            let near = all.iter().filter(|line| Some(line.ratio) >= fastest.map(|f| 0.95 * f));
            if let (Some(fastest), Some(fixed)) = (fastest, named("8x64:0")) {
                given_away = given_away.max(1.0 - fixed / fastest);
            }
            table.row([
                len.to_string(),
                pass.name().to_owned(),
                cell(fastest, 3),
                cell(named("8x64:0"), 3),
                cell(named("4x128:0"), 3),
                cell(ratios.reduce(f64::min), 3),
                all.len().to_string(),
                near.count().to_string(),
            ]);
        }
    }
    lesson.table("choice.csv", Kind::Computed, &table)?;
    lesson.value("given_away", format!("{:.0}", 100.0 * given_away), Kind::Computed);

    let mut chart = Chart::new("All configurations of the pipe kernel, forward, on an H200")
        .axes("length of a sequence", "speed / speed of the roof")
        .log_x(2.0)
        .y_range(0.0, 1.5);
    let lengths = crate::LENGTHS.iter().filter(|len| len.is_power_of_two());
    let points = |memcode: u32| -> Vec<(f64, f64)> {
        let ending = format!(":{memcode}");
        let lines = &lines;
        lengths
            .clone()
            .flat_map(move |&len| {
                let mine = best::of(lines, "pipe", Pass::Forward, len);
                let ending = ending.clone();
                mine.filter(move |line| line.engine.ends_with(&ending))
                    .map(move |line| (len as f64, line.ratio))
            })
            .collect()
    };
    for memcode in [0, 1, 2] {
        chart = chart.dots(&format!("memcode {memcode}"), points(memcode));
    }
    chart = chart.dashed("the roof", [(16.0, 1.0), (65_536.0, 1.0)]);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("choice.svg", "Every configuration of the pipe kernel", Kind::Computed, &svg)
}

/// A configuration of the pipe kernel; where sequences are so short that a smaller block is the same launch,
/// that one was measured in its place.
fn same_launch<'a>(lines: &[&'a Line], name: &str) -> Option<&'a Line> {
    let (elems, rest) = name.split_once('x')?;
    let (threads, memcode) = rest.split_once(':')?;
    let mut threads: u32 = threads.parse().ok()?;
    while threads >= 32 {
        let engine = format!("pipe:{elems}x{threads}:{memcode}");
        if let Some(line) = lines.iter().find(|line| line.engine == engine) {
            return Some(line);
        }
        threads /= 2;
    }
    None
}
