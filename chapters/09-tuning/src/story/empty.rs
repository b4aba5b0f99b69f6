//! What a launch costs, and what the memory can do.

use linrec::kernels::Pass;
use linrec::lesson::{self, Kind, Lesson, Table};

use super::{NOTHING, cell};
use crate::record;

/// The memory's speed by its data sheet, and the roofs that were measured.
pub fn bandwidth(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("bandwidth", "What the memory can do")?;
    let race = record::race()?;
    let number = |column: &str| record::machine(column).parse::<f64>().ok();
    let peak = theoretical(number("memory_bus_bits"), number("highest_memory_clock_mhz"));
    lesson.say(&format!(
        "The memory of the H200 in the record has a path of {} bits and a clock of {} MHz, and moves two bits a \
         clock on each wire: {} GB/s. What element-wise kernels reach of it, forward and backward, in GB/s: {}",
        record::machine("memory_bus_bits"),
        record::machine("highest_memory_clock_mhz"),
        cell(peak, 0),
        if race.is_empty() { NOTHING } else { "" }
    ));
    let header = ["length", "pass", "16 bytes", "4 bytes", "streaming", "of the peak"];
    let mut table = Table::new(header);
    for pass in Pass::ALL {
        for len in [1024, 4096, 16_384, 65_536] {
            let speed = |engine: &str| race.median(pass, engine, len).map(|run| run.gb_per_s);
            let roof = speed("roof");
            let share = roof.zip(peak).map(|(roof, peak)| 100.0 * roof / peak);
            table.row([
                len.to_string(),
                pass.name().to_owned(),
                cell(roof, 0),
                cell(speed("roof:4-bytes"), 0),
                cell(speed("roof:streaming"), 0),
                share.map_or_else(|| String::from("–"), |share| format!("{share:.0} %")),
            ]);
        }
    }
    lesson.table("bandwidth.csv", Kind::Computed, &table)?;
    lesson.value("peak", cell(peak, 0), Kind::Computed);
    let roof = race.median(Pass::Forward, "roof", 65_536).map(|run| run.gb_per_s);
    lesson.value("roof", cell(roof, 0), Kind::Computed);
    let share = roof.zip(peak).map(|(roof, peak)| 100.0 * roof / peak);
    lesson.value("roof_of_peak", cell(share, 0), Kind::Computed);
    Ok(())
}

/// Bytes per second, in units of 10^9, of a path of so many bits at so many MHz, with two transfers a clock.
// ANCHOR: theoretical
pub fn theoretical(bus_bits: Option<f64>, clock_mhz: Option<f64>) -> Option<f64> {
    Some(bus_bits? / 8.0 * 2.0 * clock_mhz? * 1e6 / 1e9)
}
// ANCHOR_END: theoretical

/// Kernels that do nothing.
pub fn empty(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("empty", "The price of a launch")?;
    let race = record::race()?;
    lesson.say(&format!(
        "Microseconds of a forward pass of 13200 sequences on the H200: a launch of one block that does nothing; of \
         13200 blocks that do nothing; what the bytes take at the speed of the longest roof; the roof; and the \
         kernels. {}",
        if race.is_empty() { NOTHING } else { "" }
    ));
    let header = [
        "length",
        "one block",
        "13200 blocks",
        "bytes alone",
        "roof",
        "rows",
        "wide",
        "pipe",
        "ref",
    ];
    let mut table = Table::new(header);
    let top = race.median(Pass::Forward, "roof", 65_536).map(|run| run.gb_per_s);
    for len in [16, 32, 64, 128, 256, 512, 1024, 4096] {
        let us = |engine: &str| race.median(Pass::Forward, engine, len).map(|run| 1e3 * run.ms);
        let kernel =
            |name: &str| race.kernel(Pass::Forward, name, len).map(|(_, run)| 1e3 * run.ms);
        let bytes = top.map(|top| 12.0 * (13_200 * len) as f64 / top / 1e3);
        let times = [
            us("launch"),
            us("empty"),
            bytes,
            us("roof"),
            kernel("rows"),
            kernel("wide"),
            kernel("pipe"),
            kernel("ref"),
        ];
        let cells = times.map(|time| cell(time, 1));
        table.row([len.to_string()].into_iter().chain(cells));
    }
    lesson.table("empty.csv", Kind::Computed, &table)?;
    for (key, engine) in [("launch_us", "launch"), ("blocks_us", "empty"), ("roof_us", "roof")] {
        let us = race.median(Pass::Forward, engine, 16).map(|run| 1e3 * run.ms);
        lesson.value(key, cell(us, 1), Kind::Computed);
    }
    let bytes = top.map(|top| 12.0 * (13_200 * 16) as f64 / top / 1e3);
    lesson.value("bytes_us", cell(bytes, 1), Kind::Computed);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_peak_of_an_h200() {
        // 6144 bits at 3201 MHz: 4.9 TB/s; the data sheet says 4.8.
        let peak = super::theoretical(Some(6144.0), Some(3201.0)).unwrap();
        assert!((4800.0..5000.0).contains(&peak));
        assert_eq!(super::theoretical(None, Some(1.0)), None);
    }
}
