//! The backward pass.

use ch09_tuning::record;
use linrec::kernels::{KernelChoice, Pass};
use linrec::lesson::{self, Kind, Lesson, Table};

use super::cell;

/// What was tried backward.
pub fn backward(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("backward", "Backward")?;
    let lines = record::tuning()?;
    lesson.say(
        "The backward pass on an H200, as parts of its roof, which reads three arrays and writes two: the fastest pipe; \
         rows; wide without loads ahead, with one tile and with two.",
    );
    let header = ["length", "pipe", "rows", "wide", "wide:a1", "wide:a2", "fastest"];
    let mut table = Table::new(header);
    for len in [16, 64, 256, 1000, 1024, 4093, 4096, 16_384, 32_768, 65_536] {
        let best = |wanted: &dyn Fn(KernelChoice) -> bool| {
            let mine = lines.iter().filter(|line| {
                let here = line.pass == Pass::Backward && line.seq_len == len;
                here && line.engine.parse().is_ok_and(wanted)
            });
            mine.max_by(|a, b| a.ratio.total_cmp(&b.ratio))
        };
        let wide = |ahead: u32| {
            best(&move |choice| matches!(choice, KernelChoice::Wide(c) if c.ahead == ahead))
        };
        let all = [
            best(&|choice| choice.name() == "pipe"),
            best(&|choice| choice.name() == "rows"),
            wide(0),
            wide(1),
            wide(2),
        ];
        let ratios = all.map(|line| cell(line.map(|line| line.ratio), 3));
        let fastest = best(&|choice| matches!(choice.name(), "rows" | "wide"));
        let fastest = fastest.map_or("–", |line| line.engine.as_str());
        table.row([len.to_string()].into_iter().chain(ratios).chain([fastest.to_owned()]));
    }
    lesson.table("backward.csv", Kind::Computed, &table)
}
