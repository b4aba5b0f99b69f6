//! Where the ladder leads.

use ch09_tuning::LENGTHS;
use ch09_tuning::record::{self, Race};
use linrec::kernels::Pass;
use linrec::lesson::{self, Kind, Lesson, Table, plot, plot::Chart};

use super::cell;
use crate::record::Ladder;

/// The fastest at every length, and the ladder as a picture.
pub fn result(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("result", "At every length")?;
    let race = record::race()?;
    lesson.say(
        "From chapter 9's record: 13200 sequences of f32 on an H200, the fastest kernel at every length as a part of the \
         roof, with the number of runs whose median it is.",
    );
    let header = ["length", "runs", "forward", "by", "backward", "by"];
    let mut table = Table::new(header);
    for len in LENGTHS {
        let runs =
            race.count(Pass::Forward, "roof", len).min(race.count(Pass::Backward, "roof", len));
        let mut cells = vec![len.to_string(), runs.to_string()];
        for pass in Pass::ALL {
            let (engine, run) = race.fastest(pass, len).unzip();
            cells.extend([cell(run.map(|run| run.ratio), 3), engine.unwrap_or("–").to_owned()]);
        }
        table.row(cells);
    }
    lesson.table("result.csv", Kind::Computed, &table)?;
    for pass in Pass::ALL {
        let of = |lengths: &[usize]| {
            let fastest = lengths.iter().filter_map(|&len| race.fastest(pass, len));
            cell(fastest.map(|(_, run)| run.ratio).reduce(f64::min), 3)
        };
        let name = pass.name();
        lesson.value(&format!("least_{name}_short"), of(&LENGTHS[..6]), Kind::Computed);
        lesson.value(&format!("least_{name}_long"), of(&LENGTHS[6..14]), Kind::Computed);
        lesson.value(&format!("least_{name}_last"), of(&LENGTHS[14..]), Kind::Computed);
    }
    let (words, different) = crate::record::bits();
    lesson.value("bits_words", words / 1_000_000, Kind::Computed);
    lesson.value("bits_different", different, Kind::Computed);
    let ladder = Ladder::read()?;
    for (key, run) in [
        ("pipe_16", race.kernel(Pass::Forward, "pipe", 16).map(|(_, run)| run.ratio)),
        ("rows_16", race.kernel(Pass::Forward, "rows", 16).map(|(_, run)| run.ratio)),
        ("pipe_4096", ladder.best("pipe", 4096).map(|(_, run)| run.ratio)),
        ("words_4096", ladder.best("words", 4096).map(|(_, run)| run.ratio)),
    ] {
        lesson.value(key, cell(run, 2), Kind::Computed);
    }
    let svg = figure(&race, &ladder)?;
    lesson.figure("ladder.svg", "The ladder", Kind::Computed, &svg)
}

/// As parts of the roof against the length of a row: short rows by kernel, long ones by step.
fn figure(race: &Race, ladder: &Ladder) -> lesson::Result<String> {
    let axes = |title, (low, high)| {
        Chart::new(title)
            .axes("length of a sequence", "part of the roof")
            .log_x(2.0)
            .y_range(low, high)
    };
    let short = [16, 32, 64, 128, 256, 512];
    let mut above = axes("short rows", (0.0, 1.1));
    for name in ["pipe", "rows", "wide"] {
        let points = short
            .iter()
            .filter_map(|&len| Some((len as f64, race.kernel(Pass::Forward, name, len)?.1.ratio)));
        above = above.measured(name, points);
    }
    let long = ladder.lengths().into_iter().filter(|&len| len >= 256);
    let long: Vec<usize> = long.collect();
    let mut below = axes("long rows", (0.82, 1.02));
    for name in ["pipe", "words", "neighbours", "pieces", "early", "wide"] {
        // A block with tiles ahead is far too large for a row that fits into one of them.
        let least = if name == "early" { 4096 } else { 0 };
        let here = long.iter().filter(|&&len| len >= least);
        let points = here.filter_map(|&len| Some((len as f64, ladder.best(name, len)?.1.ratio)));
        below = below.measured(name, points);
    }
    let roof = |lengths: &[usize]| lengths.iter().map(|&len| (len as f64, 1.0)).collect::<Vec<_>>();
    let (above, below) =
        (above.dashed("the roof", roof(&short)), below.dashed("the roof", roof(&long)));
    plot::grid(&[&above, &below], 1)
}
