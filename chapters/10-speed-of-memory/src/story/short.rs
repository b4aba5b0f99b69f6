//! Short rows, side by side.

use ch09_tuning::record;
use linrec::kernels::{ElementType, KernelChoice, Pass};
use linrec::lesson::{self, Kind, Lesson, Table};

use super::cell;

/// Rows and blocks.
pub fn side_by_side(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("short", "Short rows side by side")?;
    let race = record::race()?;
    lesson.say(
        "13200 short rows on an H200, forward: microseconds of 13200 empty blocks, and the kernels as parts of the roof. \
         Then how many blocks the fastest of rows has.",
    );
    let header =
        ["length", "empty, µs", "roof, µs", "pipe", "wide", "rows", "blocks", "configuration"];
    let mut table = Table::new(header);
    for len in [16, 32, 64, 128, 256, 512] {
        let us = |engine| race.median(Pass::Forward, engine, len).map(|run| 1e3 * run.ms);
        let ratio = |name| race.kernel(Pass::Forward, name, len).map(|(_, run)| run.ratio);
        let engine = race.kernel(Pass::Forward, "rows", len).map_or("", |(engine, _)| engine);
        let blocks = engine.parse::<KernelChoice>().map(|choice| {
            choice.geometry(ElementType::F32, Pass::Forward, 13_200, len as u64).blocks
        });
        table.row([
            len.to_string(),
            cell(us("empty"), 1),
            cell(us("roof"), 1),
            cell(ratio("pipe"), 3),
            cell(ratio("wide"), 3),
            cell(ratio("rows"), 3),
            blocks.map_or_else(|_| String::from("–"), |blocks| blocks.to_string()),
            engine.to_owned(),
        ]);
    }
    lesson.table("short.csv", Kind::Computed, &table)
}

/// Lanes for a row, words for a lane.
pub fn shares(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("shares", "How many lanes for a row")?;
    let lines = record::tuning()?;
    lesson.say(
        "Rows of 64 and of 128, forward, as parts of the roof: how many lanes share a row, and how many words each of \
         them has; of blocks of 32 to 256 threads the fastest.",
    );
    let mut table = Table::new(["length", "lanes", "1 word", "2 words", "4 words"]);
    for len in [64_usize, 128] {
        for lanes in [4_u32, 8, 16, 32] {
            let best = |words: u32| {
                let mine = lines.iter().filter(|line| {
                    let is_it = match line.engine.parse() {
                        Ok(KernelChoice::Rows(rows)) => rows.lanes == lanes && rows.words == words,
                        _ => false,
                    };
                    is_it && line.pass == Pass::Forward && line.seq_len == len
                });
                mine.map(|line| line.ratio).reduce(f64::max)
            };
            let ratios = [1, 2, 4].map(|words| cell(best(words), 3));
            table.row([len.to_string(), lanes.to_string()].into_iter().chain(ratios));
        }
    }
    lesson.table("shares.csv", Kind::Computed, &table)
}
