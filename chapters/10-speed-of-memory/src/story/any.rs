//! Rows that begin anywhere.

use ch09_tuning::record;
use linrec::kernels::{KernelChoice, Pass};
use linrec::lesson::{self, Kind, Lesson, Table};

use super::cell;

/// Rows of whole words, and others.
pub fn any(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("any", "Rows that begin anywhere")?;
    let lines = record::tuning()?;
    lesson.say(
        "The kernel wide on an H200, as parts of the roof: the fastest that is compiled for rows of whole words, and the \
         fastest that takes any row.",
    );
    let mut table =
        Table::new(["length", "pass", "whole words", "any row", "configuration of the latter"]);
    for len in [1000, 4093, 4096, 16_384] {
        for pass in Pass::ALL {
            let best = |whole: bool| {
                let mine = lines.iter().filter(|line| {
                    let is_it = match line.engine.parse() {
                        Ok(KernelChoice::Wide(config)) => config.whole == whole,
                        _ => false,
                    };
                    is_it && line.pass == pass && line.seq_len == len
                });
                mine.max_by(|a, b| a.ratio.total_cmp(&b.ratio))
            };
            let [whole, any] = [true, false].map(best);
            table.row([
                len.to_string(),
                pass.name().to_owned(),
                cell(whole.map(|line| line.ratio), 3),
                cell(any.map(|line| line.ratio), 3),
                any.map_or("–", |line| line.engine.as_str()).to_owned(),
            ]);
        }
    }
    lesson.table("any.csv", Kind::Computed, &table)
}
