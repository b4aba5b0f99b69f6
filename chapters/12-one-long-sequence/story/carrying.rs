//! Where the time of a wave goes, and what was tried to make it shorter.
//!
//! Both records were taken down from trials, of one sequence of 2^28 steps with tiles of 4 vectors for each of 288 threads:
//! the clock was read by a kernel with stores of it at every station, which the library's does not have.

use bench::csv::Table as Csv;
use lesson::{Kind, Lesson, Table};

/// Cycles from station to station of a wave, means over blocks and waves.
const STATIONS: &str = include_str!("../results/h200/stations.csv");
/// What other forms reached, and beside each the first form in the same rounds: medians of nine.
const ATTEMPTS: &str = include_str!("../results/h200/attempts.csv");

/// What the warps of a block do in a wave, and for how long.
pub(super) fn stations(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("stations", "Where a wave's time goes")?;
    let record = Csv::read(STATIONS)?;
    lesson.say(
        "Cycles of a wave on an H200, from station to station: of the warp that carries, and of one that computes. The \
         first form of the kernel scans with shuffles; today's reads shared memory all at once.",
    );
    let mut table = Table::new(["form", "a wave", "the warp that", "station", "cycles"]);
    for row in record.rows() {
        let names = ["form", "wave", "who", "station", "cycles"];
        let cells: lesson::Result<Vec<_>> = names.into_iter().map(|name| row.text(name)).collect();
        table.row(cells?.into_iter().map(str::to_owned));
    }
    lesson.table("stations.csv", Kind::Computed, &table)
}

/// Other forms of the kernel.
pub(super) fn attempts(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("attempts", "What was tried")?;
    let record = Csv::read(ATTEMPTS)?;
    lesson.say(
        "Parts of the roof at 2^28 steps, and what the first form reached in the same rounds:",
    );
    let mut table = Table::new(["attempt", "reached", "first form"]);
    let mut before: Vec<f64> = Vec::new();
    for row in record.rows() {
        let cells = [row.text("attempt")?, row.text("ratio")?, row.text("first_form")?];
        table.row(cells.map(str::to_owned));
        before.push(row.number("first_form")?);
    }
    lesson.table("attempts.csv", Kind::Computed, &table)?;
    let least = before.iter().copied().fold(f64::INFINITY, f64::min);
    let most = before.iter().copied().fold(0.0, f64::max);
    lesson.value("before_28", format!("{least:.2} to {most:.2}"), Kind::Computed);
    Ok(())
}
