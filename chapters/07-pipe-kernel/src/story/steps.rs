//! What the number of steps per thread does to requests, sectors and lines, and to the speed.

use std::collections::BTreeSet;

use ch05_ref_kernel::exercises::sectors;
use linrec::device::{Device, ForwardOptions, Recurrence};
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::simt::Access;

use super::RECORD;
use crate::PIPE;
use crate::measured::Runs;

/// Bytes of a line of the L1 cache: four sectors that it looks up together.
const LINE: u64 = 128;

/// Counts, and puts the counts beside what was measured.
pub fn steps(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("steps", "Steps per thread")?;
    lesson.say(
        "A warp loads its part of one array, each lane its own neighbouring steps, one request for each step. Up to 8 steps \
         counted by the emulator, beyond that from the addresses:",
    );
    let header =
        ["steps per thread", "requests", "sectors per request", "lines per request", "each sector"];
    let mut table = Table::new(header);
    let mut differ = 0;
    for steps in [1, 2, 4, 8, 16, 32] {
        let addresses: Vec<u64> = (0..32).map(|lane| lane * steps * 4).collect();
        let per_request = sectors(&addresses, 4) as u64;
        let lines: BTreeSet<u64> = addresses.iter().map(|address| address / LINE).collect();
        if steps <= 8 {
            differ += usize::from(counted(steps)? != (steps, per_request));
        }
        table.row([
            steps.to_string(),
            per_request.to_string(),
            lines.len().to_string(),
            // As many requests as steps; of the floats that they load, 8 lie in a sector.
            (per_request * steps / (32 * steps / 8)).to_string(),
        ]);
    }
    lesson.table("steps.csv", Kind::Computed, &table)?;
    lesson.check("rows that the emulator counts differently", differ as f64, 0.0);

    let runs = Runs::read(RECORD)?;
    let ratio = |engine: &str, seq_len| runs.median(engine, seq_len).map_or(0.0, |run| run.ratio);
    lesson.say(
        "One and the same kernel, 16 x 32, gives a thread more steps the longer the sequence is, up to 16. Beside it \
         one that never has more than four:",
    );
    let mut table = Table::new(["length", "steps per thread", "16 x 32", "4 x 128"]);
    for seq_len in [64, 128, 256, 512, 1024, 4096] {
        table.row([
            seq_len.to_string(),
            (seq_len / 32).min(16).to_string(),
            format!("{:.2}", ratio("pipe:16x32:0", seq_len)),
            format!("{:.2}", ratio("pipe:4x128:0", seq_len)),
        ]);
    }
    lesson.table("same-kernel.csv", Kind::Computed, &table)?;
    let (few, many) = (ratio("pipe:16x32:0", 256), ratio("pipe:16x32:0", 512));
    lesson.value("few_steps", format!("{few:.2}"), Kind::Computed);
    lesson.value("many_steps", format!("{many:.2}"), Kind::Computed);

    lesson.say(
        "Sequences of 4096. An element's two loads and one store look up so many lines; the speed times that gives \
         how many the L1 caches look up in a second, all together:",
    );
    let header = [
        "kernel",
        "steps per thread",
        "speed / roof",
        "lines per element",
        "10^9 lines per second",
    ];
    let mut table = Table::new(header);
    for (engine, name, steps) in [
        ("pipe:4x128:0", "4 x 128", 4.0),
        ("pipe:8x32:0", "8 x 32", 8.0),
        ("pipe:8x64:0", "8 x 64", 8.0),
        ("pipe:16x32:0", "16 x 32", 16.0),
        ("pipe:16x64:0", "16 x 64", 16.0),
        ("ref:64", "reference kernel", 32.0),
    ] {
        let Some(run) = runs.median(engine, 4096) else { continue };
        // A request of 32 elements touches as many lines as a thread has steps.
        let lines = 3.0 * steps / 32.0;
        let per_second = run.gb_per_s / 12.0 * lines;
        table.row([
            name.to_owned(),
            if engine == "ref:64" { String::from("–") } else { steps.to_string() },
            format!("{:.2}", run.ratio),
            format!("{lines}"),
            format!("{per_second:.0}"),
        ]);
    }
    lesson.table("lines.csv", Kind::Computed, &table)?;
    Ok(())
}

/// Load requests of one array and sectors in each, of one warp whose lanes have so many steps.
fn counted(steps: u64) -> lesson::Result<(u64, u64)> {
    let device = Device::simt();
    let ones = device.upload(&vec![1.0_f32; 32 * steps as usize])?;
    let mut outputs = device.allocate(ones.len())?;
    let recurrence = Recurrence::<f32>::new(&device, PIPE)?;
    let (shape, options) = ((1, ones.len()), ForwardOptions::default());
    let launched = recurrence.forward_into(&ones, &ones, &mut outputs, shape, options)?;
    let Some(counters) = launched.counters() else { return Ok((0, 0)) };
    let requests = counters.requests(Access::GlobalLoad);
    // Two arrays are loaded.
    Ok((requests / 2, counters.sectors(Access::GlobalLoad) / requests.max(1)))
}
