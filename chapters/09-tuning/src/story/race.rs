//! Every kernel beside the roof.

use linrec::kernels::Pass;
use linrec::lesson::{self, Kind, Lesson};

use super::{NOTHING, cell};
use crate::{LENGTHS, race, record};

/// The record of `tour bench`, as tables and as a figure.
pub fn race(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("race", "Every kernel beside the roof")?;
    let record = record::race()?;
    let (few, many) =
        (record.count(Pass::Forward, "roof", 65_536), record.count(Pass::Forward, "roof", 16));
    lesson.say(&format!(
        "An H200, 13200 sequences of f32, medians of {few} runs, and of {many} where a run takes microseconds. Of each \
         kernel the fastest configuration runs, as a part of the roof in the same round. {}",
        if record.is_empty() { NOTHING } else { "" }
    ));
    for pass in Pass::ALL {
        lesson.say(&format!("The {} pass:", pass.name()));
        let table = race::table(&record, pass, &LENGTHS);
        lesson.table(&format!("race-{}.csv", pass.name()), Kind::Computed, &table)?;
        for name in ["pipe", "fastest"] {
            let of = |name: &str, len: usize| match name {
                "fastest" => record.fastest(pass, len).map(|(_, run)| run),
                _ => record.kernel(pass, name, len).map(|(_, run)| run),
            };
            let ratios: Vec<f64> =
                LENGTHS.iter().filter_map(|&len| Some(of(name, len)?.ratio)).collect();
            let least = ratios.iter().copied().reduce(f64::min);
            lesson.value(&format!("{name}_{}", pass.name()), cell(least, 2), Kind::Computed);
            let long = of(name, 4096).map(|run| run.ratio);
            lesson.value(&format!("{name}_{}_4096", pass.name()), cell(long, 2), Kind::Computed);
        }
    }
    lesson.value("bench_runs", few, Kind::Computed);
    lesson.value("bench_runs_short", many, Kind::Computed);
    let svg = race::figure(&record, &record::peers(), linrec::kernels::ElementType::F32)?;
    lesson.figure("bench.svg", "Every kernel beside the roof", Kind::Computed, &svg)
}
