//! The same kernel for other numbers.

use half::{bf16, f16};
use linrec::device::{Device, Storage};
use linrec::lesson::{self, Kind, Lesson, Table};
use num_complex::Complex;

use crate::record::{Pass, times};
use crate::stored::{engine, errors};

/// The words that were compared between GPU and emulator.
const BITS: &str = include_str!("../../results/h200/bits.csv");

/// Errors, bytes and speed of each type.
pub fn types(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("types", "Other numbers")?;
    let shape = lesson.size((20, 2000), (13_200, 4096));
    lesson.say(&format!(
        "{} sequences of {}, coefficients near one, 8 x 64. The largest error of the outputs, as a part of the largest \
         output; beside it that of a loop which rounds its state to the stored format at every step:",
        shape.0, shape.1,
    ));
    let header = ["stored", "computed in", "bytes forward", "backward", "error", "narrow state"];
    let mut table = Table::new(header);
    row::<f32>(device, shape, &mut table)?;
    row::<f64>(device, shape, &mut table)?;
    let [kernel, narrow] = row::<bf16>(device, shape, &mut table)?;
    row::<f16>(device, shape, &mut table)?;
    row::<Complex<f32>>(device, shape, &mut table)?;
    row::<Complex<f64>>(device, shape, &mut table)?;
    lesson.table("types.csv", Kind::Computed, &table)?;
    lesson.value("bf16_error", format!("{:.1} %", 100.0 * kernel), Kind::Computed);
    lesson.value("bf16_narrow", format!("{:.0} %", 100.0 * narrow), Kind::Computed);

    lesson.say(
        "From the record of the H200: 10^9 elements per second for 13200 sequences of 4096, forward / backward, and \
         words that differ from the emulator's:",
    );
    let header =
        ["stored", "8 x 64", "4 x 128", "better one / roof", "words compared", "different"];
    let mut table = Table::new(header);
    for (name, bytes) in [
        ("f32", 4.0),
        ("f64", 8.0),
        ("bf16", 2.0),
        ("f16", 2.0),
        ("complex32", 8.0),
        ("complex64", 16.0),
    ] {
        let mut rates = [Vec::new(), Vec::new()];
        let mut ratios = Vec::new();
        for pass in Pass::BOTH {
            let runs = times(pass, name)?;
            let mut best = f64::NAN;
            for (rates, size) in rates.iter_mut().zip(["8x64", "4x128"]) {
                let run = runs.median(&format!("types:pipe:{size}:0"), 4096);
                let run = run.ok_or("a run is missing in the record")?;
                rates.push(format!("{:.0}", run.gb_per_s / bytes / pass.arrays() as f64));
                best = run.ratio.max(best);
            }
            ratios.push(format!("{best:.2}"));
        }
        let [small, large] = rates.map(|rates| rates.join(" / "));
        let (words, different) = compared(name);
        table.row([
            name.to_owned(),
            small,
            large,
            ratios.join(" / "),
            words.to_string(),
            different.to_string(),
        ]);
    }
    lesson.table("types-speed.csv", Kind::Computed, &table)
}

fn row<S: Storage>(
    device: &Device,
    shape: (usize, usize),
    table: &mut Table,
) -> lesson::Result<[f64; 2]> {
    let found = errors(&engine::<S>(device)?, shape)?;
    let bytes = size_of::<S>();
    table.row([
        S::ELEMENT.to_string(),
        S::Accum::ELEMENT.to_string(),
        (3 * bytes).to_string(),
        (5 * bytes).to_string(),
        format!("{:.1e}", found.kernel),
        format!("{:.1e}", found.narrow_state),
    ]);
    Ok([found.kernel, found.narrow_state])
}

/// Words of the record, and how many of them differed.
fn compared(element: &str) -> (u64, u64) {
    let mut sums = (0, 0);
    for line in BITS.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        if let [_, _, name, _, _, _, words, different, ..] = cells.as_slice()
            && *name == element
        {
            sums.0 += words.parse::<u64>().unwrap_or(0);
            sums.1 += different.parse::<u64>().unwrap_or(u64::MAX / 100);
        }
    }
    sums
}
