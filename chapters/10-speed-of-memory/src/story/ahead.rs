//! Tiles on their way.

use ch09_tuning::record;
use linrec::kernels::{ElementType, KernelChoice, Pass};
use linrec::lesson::{self, Kind, Lesson, Table};

use super::{cell, climb};
use crate::record::Ladder;

/// The next tile in registers, the next tiles in shared memory.
pub fn ahead(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("ahead", "Tiles on their way")?;
    let ladder = Ladder::read()?;
    let len = 16_384;
    lesson.say(&format!(
        "Rows of {len} on an H200, as parts of the roof: by words for each thread and threads of a block, without loads \
         ahead, with the next tile in registers, and with one or two tiles in shared memory.",
    ));
    let mut table = Table::new(["size", "pieces", "early", "ring:a1", "ring:a2"]);
    for size in ["2x128", "2x256", "2x512", "4x256", "4x512", "4x1024"] {
        let of = |name: &str| {
            let (name, ending) = name.split_once(':').unwrap_or((name, ""));
            let engine = match ending {
                "" => format!("{name}:{size}"),
                ending => format!("{name}:{size}:{ending}"),
            };
            cell(ladder.of(&engine, len).map(|run| run.ratio), 3)
        };
        let cells = ["pieces", "early", "ring:a1", "ring:a2"].map(of);
        table.row([size.to_owned()].into_iter().chain(cells));
    }
    lesson.table("ahead.csv", Kind::Computed, &table)?;
    lesson.say("And the fastest of each at every length:");
    let table = climb::speeds(&ladder, &["pieces", "early", "ring:a1", "ring:a2"]);
    lesson.table("ahead-speed.csv", Kind::Computed, &table)
}

/// How many rows are under way at a time, how many bytes of them, and what comes of it.
pub fn on_their_way(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("flight", "Rows at a time")?;
    let (taken, lines) = (record::attrs()?, record::tuning()?);
    let (len, multiprocessors) = (16_384, 132);
    lesson.say(&format!(
        "The kernel wide on an H200, rows of {len} forward, without and with tiles ahead: how many rows are under way at \
         a time on the whole GPU; how many KiB each multiprocessor has asked for just before it waits; and the speed as \
         a part of the roof's.",
    ));
    let mut table = Table::new(["configuration", "rows at a time", "KiB on their way", "/ roof"]);
    let mut rows: Vec<(u32, f64, [String; 4])> = Vec::new();
    for line in lines.iter().filter(|line| line.pass == Pass::Forward && line.seq_len == len) {
        let Ok(choice @ KernelChoice::Wide(config)) = line.engine.parse() else { continue };
        let mine = taken.iter().find(|of| of.kernel == line.engine && of.pass == Pass::Forward);
        let Some(mine) = mine.filter(|_| config.whole) else { continue };
        // Two arrays: the tiles that are ahead, or else the one that is waited for.
        let tiles = u64::from(config.ahead.max(1));
        let bytes = u64::from(mine.blocks) * tiles * 8 * config.tile(ElementType::F32);
        let cells = [
            choice.spec(),
            (mine.blocks * multiprocessors).to_string(),
            format!("{}", bytes / 1024),
            cell(Some(line.ratio), 3),
        ];
        rows.push((mine.blocks, line.ratio, cells));
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    for (_, _, row) in rows {
        table.row(row);
    }
    lesson.table("flight.csv", Kind::Computed, &table)
}
