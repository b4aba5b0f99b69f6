//! Where a tile ends.

use linrec::device::{Device, KernelEngine};
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::{Engine, Options};
use ndarray::Array2;

use super::wrapped;
use crate::TILE;

/// Registers of a multiprocessor, and the most that a thread can have (NVIDIA, Hopper tuning guide).
const REGISTERS: u32 = 65_536;
const MOST_REGISTERS: u32 = 255;

/// A sequence that is one step too long, and what the registers allow.
pub fn edge(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("edge", "Where a tile ends")?;
    let most = TILE.max_len().unwrap_or_default() as usize;
    lesson.say(&format!("The tile kernel, given a sequence of {} steps:", most + 1));
    let tile = KernelEngine::<f32>::new(device, TILE)?;
    let ones = Array2::<f32>::ones((1, most + 1));
    let refused = tile.forward(ones.view(), ones.view(), &Options::default()).err();
    let refused = refused.map(|error| error.to_string()).unwrap_or_default();
    lesson.show(wrapped(&refused));
    lesson.check(
        "sequences beyond the tile that went unnoticed",
        u8::from(refused.is_empty()).into(),
        0.0,
    );

    lesson.say(&format!(
        "A multiprocessor has {REGISTERS} registers, and its threads share them. Every step in flight takes two: \
         one for its input and later its output, one for its coefficient.",
    ));
    let header = ["threads in a block", "registers for each", "steps, if all held data", "tile"];
    let mut table = Table::new(header);
    for threads in [64, 256, 1024] {
        let registers = (REGISTERS / threads).min(MOST_REGISTERS);
        let steps = registers / 2;
        let cells = [threads, registers, steps, steps * threads];
        table.row(cells.map(|cell| cell.to_string()));
    }
    lesson.table("registers.csv", Kind::Computed, &table)?;
    lesson.value("largest", REGISTERS / 2, Kind::Computed);
    Ok(())
}
