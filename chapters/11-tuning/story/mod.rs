//! The story of chapter 11: finds the fastest configuration, and how much the choice matters.
//!
//! The story first shows the resources of compiled kernels: the driver's attributes, spills,
//! declarations in PTX, and occupancy by hand. It checks the shipped configurations and shows the
//! fastest ones at each length on an H200. Then it compares the memory's data sheet with the roofs,
//! measures an empty launch, and asks which counter predicts a time. The modules `measured` and
//! `plane` show the races and the rule over shapes. `cargo xtask record --check` compares the
//! checks and values of a run with the committed record.

mod measured;
mod plane;

use bench::Row;
use bench::attrs::{self, Taken};
use bench::counted::{self, PerElement};
use bench::judge;
use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Table};
use linrec::device::Device;
use linrec::kernels::{ElementType, KernelChoice, Memcode, Pass, PipeConfig, TileConfig};

use crate::occupancy::{self, Limits};
use crate::record;

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("ref, tile, pipe, rows, wide@{}, cpu", device.label()));
    attributes(lesson)?;
    ptx(lesson)?;
    blocks_that_fit(lesson)?;
    judged(lesson)?;
    best(lesson)?;
    bandwidth(lesson)?;
    empty(lesson)?;
    choice(lesson)?;
    counters(lesson)?;
    measured::race(lesson)?;
    measured::peers(lesson)?;
    measured::pick(lesson)?;
    plane::few(lesson)?;
    measured::cpu(lesson)?;
    measured::here(lesson, &device)
}

/// Shows tiles of 4 to 32 elements per thread, with the smallest and the largest block.
fn attributes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("attributes", "What a kernel takes")?;
    let taken = record::attrs()?;
    lesson.say(&format!(
        "From the record of an H200, f32: registers of a thread, bytes of local memory behind a plus where there are \
         any, and the occupancy by blocks of 256 or 1024 threads, that is, the share of the warp slots that they can \
         fill. {}",
        if taken.is_empty() { NOTHING } else { "" }
    ));
    let header = [
        "elements",
        "kernel",
        "forward, 256",
        "warps",
        "backward, 256",
        "warps",
        "forward, 1024",
        "warps",
        "backward, 1024",
        "warps",
    ];
    let mut table = Table::new(header);
    for kernel in ["tile", "pipe"] {
        for elems in [4, 8, 16, 32] {
            let mut cells = vec![elems.to_string(), kernel.to_owned()];
            for threads in [256, 1024] {
                let name = format!("{kernel}:{elems}x{threads}:0");
                for pass in Pass::ALL {
                    let taken = taken.iter().find(|t| t.kernel == name && t.pass == pass);
                    cells.push(taken.map_or_else(|| String::from("–"), registers));
                    let share = taken.map(|t| 100.0 * f64::from(t.warps) / 64.0);
                    cells.push(share.map_or_else(|| String::from("–"), |s| format!("{s:.0} %")));
                }
            }
            table.row(cells);
        }
    }
    lesson.table("attributes.csv", Kind::Computed, &table)?;
    spills(lesson, &taken)
}

fn registers(taken: &Taken) -> String {
    match taken.local_bytes {
        0 => taken.registers.to_string(),
        bytes => format!("{} + {bytes} B", taken.registers),
    }
}

/// Shows the configurations that spill.
fn spills(lesson: &mut Lesson, taken: &[Taken]) -> lesson::Result {
    lesson.step("spills", "What does not fit")?;
    let spilling: Vec<&Taken> = taken.iter().filter(|taken| taken.local_bytes > 0).collect();
    lesson.say(&format!(
        "Of {} kernels of the record, {} keep something in local memory, and {} cannot be launched at all:",
        taken.len(),
        spilling.len(),
        taken.iter().filter(|taken| taken.blocks == 0).count()
    ));
    let mut table = Table::new(["kernel", "pass", "of", "spill", "most bytes", "by"]);
    for kernel in ["ref", "tile", "pipe", "rows", "wide"] {
        for pass in Pass::ALL {
            let of = |taken: &&&Taken| {
                taken.pass == pass && taken.kernel.split(':').next() == Some(kernel)
            };
            let all = taken.iter().filter(|taken| of(&taken)).count();
            let mine: Vec<_> = spilling.iter().filter(|taken| of(taken)).collect();
            let most = mine.iter().max_by_key(|taken| taken.local_bytes);
            table.row([
                kernel.to_owned(),
                pass.name().to_owned(),
                all.to_string(),
                mine.len().to_string(),
                most.map_or_else(|| String::from("–"), |taken| taken.local_bytes.to_string()),
                most.map_or_else(String::new, |taken| taken.kernel.clone()),
            ]);
        }
    }
    lesson.table("spills.csv", Kind::Computed, &table)?;
    lesson.value("spilling", spilling.len(), Kind::Computed);
    lesson.value("kernels", taken.len(), Kind::Computed);
    Ok(())
}

fn ptx(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("ptx", "What PTX says of it")?;
    lesson.say(
        "Before the driver translates it, a kernel has as many registers as it likes. These are the shipped kernels \
         for f32, with the 32-bit registers that their PTX gives a name to:",
    );
    let table = attrs::of_ptx(&["ref", "tile", "pipe", "rows", "wide"], ElementType::F32)?;
    lesson.table("ptx.csv", Kind::Computed, &table)
}

/// Compares the computed occupancy with the record, and shows the effect of each limit.
fn blocks_that_fit(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("occupancy", "How many blocks fit")?;
    lesson.say(
        "An SM of an H200 has 64 warp slots, room for 32 blocks, 65536 registers and 228 KiB of shared memory. \
         Blocks of some threads, with some registers each and some shared memory:",
    );
    let mut table = Table::new(["threads", "registers", "shared, KiB", "blocks", "warps", "limit"]);
    for (threads, registers, kib) in [
        (32, 32, 0),
        (64, 32, 0),
        (256, 32, 0),
        (256, 40, 0),
        (256, 64, 0),
        (256, 128, 0),
        (1024, 64, 0),
        (1024, 65, 0),
        (256, 32, 32),
        (256, 32, 100),
    ] {
        let (blocks, limit) = occupancy::blocks(&Limits::H200, registers, threads, kib << 10);
        let warps = blocks * (threads / 32);
        let numbers = [threads, registers, kib, blocks, warps].map(|number| number.to_string());
        table.row(numbers.into_iter().chain([limit.to_string()]));
    }
    lesson.table("occupancy.csv", Kind::Computed, &table)?;

    let taken = record::attrs()?;
    let launchable: Vec<_> = taken.iter().filter(|taken| taken.blocks > 0).collect();
    let differ = launchable
        .iter()
        .filter(|taken| {
            let shared = taken.shared_bytes + taken.dynamic_bytes;
            let threads = taken.threads;
            occupancy::blocks(&Limits::H200, taken.registers, threads, shared).0 != taken.blocks
        })
        .count();
    lesson.say(&format!(
        "The rule against what the driver of the H200 says of {} kernels. {}",
        launchable.len(),
        if taken.is_empty() { NOTHING } else { "" }
    ));
    lesson.check("kernels for which the rule and the driver differ", differ as f64, 0.0);
    lesson.value("launchable", launchable.len(), Kind::Computed);
    Ok(())
}

/// Checks the errors of the shipped configurations on this machine.
fn judged(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("judged", "First, is it right?")?;
    lesson.say(
        "Before a configuration is measured, its results are compared with the loop in double precision. The largest \
         errors of the shipped ones on this machine, in units of the bound that is derived for each result:",
    );
    let mut table = Table::new(["configuration", "largest error"]);
    let mut worst = 0.0_f64;
    for choice in KernelChoice::shipped(ElementType::F32) {
        let error = judge::worst::<f32>(&Device::simt(), choice)?;
        table.row([choice.to_string(), format!("{error:.3}")]);
        worst = worst.max(error);
    }
    lesson.table("judged.csv", Kind::Computed, &table)?;
    lesson.check("largest error in units of its bound", worst, 1.0);
    Ok(())
}

/// Shows the post's tables for an H200.
fn best(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("best", "The fastest at each length")?;
    let lines = record::tuning()?;
    let runs = lines.iter().map(|line| line.runs.len()).min().unwrap_or(0);
    lesson.value("runs", runs, Kind::Computed);
    lesson.value("measured", lines.len(), Kind::Computed);
    if lines.is_empty() {
        lesson.say(NOTHING);
    }
    for kernel in ["pipe", "rows", "wide"] {
        for pass in Pass::ALL {
            let (name, file) = (pass.name(), format!("best-{kernel}-{}.csv", pass.name()));
            lesson.say(&format!("{kernel}, {name}, 13200 sequences of f32 on an H200:"));
            lesson.table(&file, Kind::Computed, &table(&lines, kernel, pass))?;
        }
    }
    Ok(())
}

fn table(lines: &[Row], kernel: &str, pass: Pass) -> Table {
    let mut table = Table::new(["length", "ms", "GB", "GB/s", "/ roof", "configuration"]);
    for seq_len in bench::LENGTHS {
        let Some(best) = fastest(lines, kernel, pass, seq_len) else { continue };
        table.row([seq_len.to_string()].into_iter().chain(best.cells()));
    }
    table
}

/// Returns the lines of a kernel at a length.
fn of<'a>(
    lines: &'a [Row],
    kernel: &str,
    pass: Pass,
    seq_len: usize,
) -> impl Iterator<Item = &'a Row> {
    let beginning = format!("{kernel}:");
    lines.iter().filter(move |line| {
        let shape = (line.num_seqs, line.seq_len) == (13_200, seq_len);
        line.pass == pass && shape && line.engine.starts_with(&beginning)
    })
}

/// Returns the fastest of a kernel's lines at a length.
fn fastest<'a>(lines: &'a [Row], kernel: &str, pass: Pass, seq_len: usize) -> Option<&'a Row> {
    of(lines, kernel, pass, seq_len).max_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value))
}

/// Compares the memory's speed by its data sheet with the measured roofs.
fn bandwidth(lesson: &mut Lesson) -> lesson::Result {
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

/// Returns the throughput, in units of 10^9 bytes per second, of a bus of `bits` bits at `mhz` MHz
/// with two transfers per clock cycle.
// ANCHOR: theoretical
fn theoretical(bus_bits: Option<f64>, clock_mhz: Option<f64>) -> Option<f64> {
    Some(bus_bits? / 8.0 * 2.0 * clock_mhz? * 1e6 / 1e9)
}
// ANCHOR_END: theoretical

fn empty(lesson: &mut Lesson) -> lesson::Result {
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

/// Shows the loss of one configuration for all lengths, and the number of configurations that are
/// nearly as good as the best.
fn choice(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("choice", "How much the choice matters")?;
    let lines = record::tuning()?;
    lesson.say(
        "The pipe kernel on the H200, as parts of the roof: the fastest configuration at each length, the post's 8x64:0 \
         for all lengths, 4x128:0 for all lengths, and the slowest that was measured. The last column counts those \
         within 5 % of the fastest.",
    );
    let header =
        ["length", "pass", "fastest", "8x64:0", "4x128:0", "slowest", "measured", "within 5 %"];
    let mut table = Table::new(header);
    let mut given_away: f64 = 0.0;
    for pass in Pass::ALL {
        for len in [16, 64, 256, 1024, 4096, 16_384, 65_536] {
            let all: Vec<&Row> = of(&lines, "pipe", pass, len).collect();
            let ratios = all.iter().map(|line| line.ratio.value);
            let fastest = ratios.clone().reduce(f64::max);
            let named = |name: &str| same_launch(&all, name).map(|line| line.ratio.value);
            let near =
                all.iter().filter(|line| Some(line.ratio.value) >= fastest.map(|f| 0.95 * f));
            if let (Some(fastest), Some(fixed)) = (fastest, named("8x64:0")) {
                given_away = given_away.max(1.0 - fixed / fastest);
            }
            table.row([
                len.to_string(),
                pass.name().to_owned(),
                cell(fastest, 3),
                cell(named("8x64:0"), 3),
                cell(named("4x128:0"), 3),
                cell(ratios.reduce(f64::min), 3),
                all.len().to_string(),
                near.count().to_string(),
            ]);
        }
    }
    lesson.table("choice.csv", Kind::Computed, &table)?;
    lesson.value("given_away", format!("{:.0}", 100.0 * given_away), Kind::Computed);

    let mut chart = Chart::new("All configurations of the pipe kernel, forward, on an H200")
        .axes("length of a sequence", "speed / speed of the roof")
        .log_x(2.0)
        .y_range(0.0, 1.25);
    let lengths = bench::LENGTHS.iter().filter(|len| len.is_power_of_two());
    let points = |number: usize, memcode: Memcode| -> Vec<(f64, f64)> {
        let ending = format!(":{memcode}");
        let lines = &lines;
        lengths
            .clone()
            .flat_map(move |&len| {
                let mine = of(lines, "pipe", Pass::Forward, len);
                let ending = ending.clone();
                // The points are shifted sideways so that none hides another.
                let shift = [0.92, 1.0, 1.08][number % 3];
                mine.filter(move |line| line.engine.ends_with(&ending))
                    .map(move |line| (shift * len as f64, line.ratio.value))
            })
            .collect()
    };
    for (number, memcode) in Memcode::ALL.into_iter().enumerate() {
        chart = chart.dots(&format!("memcode {memcode}"), points(number, memcode));
        chart = chart.color(plot::kernels::variant("pipe", number)).dot(plot::Dot::ALL[number]);
    }
    let roof = |&len: &usize| {
        let line = of(&lines, "pipe", Pass::Forward, len).next()?;
        Some((len as f64, line.throughput() / line.ratio.value))
    };
    chart = bench::figure::with_roof(chart, lengths.clone().filter_map(roof), 1.25);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("choice.svg", "Every configuration of the pipe kernel", Kind::Computed, &svg)
}

/// Finds a configuration of the pipe kernel. For short sequences, a smaller block is the same
/// launch and was measured in its place.
fn same_launch<'a>(lines: &[&'a Row], name: &str) -> Option<&'a Row> {
    let (elems, rest) = name.split_once('x')?;
    let (threads, memcode) = rest.split_once(':')?;
    let mut threads: u32 = threads.parse().ok()?;
    while threads >= 32 {
        let engine = format!("pipe:{elems}x{threads}:{memcode}");
        if let Some(line) = lines.iter().find(|line| line.engine == engine) {
            return Some(line);
        }
        threads /= 2;
    }
    None
}

/// The lengths at which counters and times are compared.
const LENGTHS: [usize; 3] = [16, 256, 4096];

/// Compares the counters of the shipped kernels with their times on the H200.
fn counters(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("counters", "Counters beside times")?;
    let lines = record::tuning()?;
    lesson.say(&format!(
        "What the emulator counts for each element, forward, in the shipped configurations, and the time that each \
         took on the H200, as a multiple of the roof's. {}",
        if lines.is_empty() { NOTHING } else { "" }
    ));
    let header = ["length", "kernel"].into_iter().chain(PerElement::HEADER).chain(["time / roof"]);
    let mut table = Table::new(header);
    let header = ["length", "kernels"].into_iter().chain(PerElement::HEADER);
    let mut ranks = Table::new(header);
    for seq_len in LENGTHS {
        let mut all: Vec<(PerElement, Option<f64>)> = Vec::new();
        for choice in KernelChoice::shipped(ElementType::F32) {
            // Kernels that divide rows among blocks are for few rows.
            let (is_short, is_shared) = (
                choice.max_len(ElementType::F32).is_some_and(|most| seq_len as u64 > most),
                choice.geometry(ElementType::F32, Pass::Forward, 32, 1).shared_out.is_some(),
            );
            if is_short || is_shared {
                continue;
            }
            let counted = counted::count::<f32>(choice, Pass::Forward, (32, seq_len))?;
            let time = time(&lines, choice, seq_len);
            let names = [seq_len.to_string(), choice.to_string()];
            table.row(names.into_iter().chain(counted.cells()).chain([cell(time, 2)]));
            all.push((counted, time));
        }
        let timed: Vec<(PerElement, f64)> =
            all.into_iter().filter_map(|(counted, time)| Some((counted, time?))).collect();
        let names = [seq_len.to_string(), timed.len().to_string()];
        let correlations = COUNTERS.map(|column| {
            let pairs: Vec<(f64, f64)> =
                timed.iter().map(|(counted, time)| (column(counted), *time)).collect();
            cell(rank_correlation(&pairs), 2)
        });
        ranks.row(names.into_iter().chain(correlations));
    }
    lesson.table("counters.csv", Kind::Computed, &table)?;
    lesson.step("ranks", "Which counter predicts the time")?;
    lesson.say(
        "The same as one number for each counter: how well the order of the kernels by the counter agrees with their \
         order by time. 1 is the same order, -1 the reverse, 0 none (Spearman's rank correlation).",
    );
    lesson.table("ranks.csv", Kind::Computed, &ranks)
}

const COUNTERS: [fn(&PerElement) -> f64; 7] = [
    |counted| counted.instructions,
    |counted| counted.loaded,
    |counted| counted.stored,
    |counted| counted.requests,
    |counted| counted.shuffles,
    |counted| counted.shared,
    |counted| counted.barriers,
];

/// Returns the time of a configuration as a multiple of the roof's, or the time of the smallest
/// block that is the same launch.
fn time(lines: &[Row], choice: KernelChoice, seq_len: usize) -> Option<f64> {
    let element = ElementType::F32;
    // Blocks with more threads than the sequence needs are the same launch.
    let launch = |choice: KernelChoice| match choice {
        KernelChoice::Tile(TileConfig { max_elems_per_thread, memcode, .. })
        | KernelChoice::Pipe(PipeConfig { max_elems_per_thread, memcode, .. }) => {
            let geometry = choice.geometry(element, Pass::Forward, 1, seq_len as u64);
            Some((choice.name(), max_elems_per_thread, memcode, geometry))
        }
        _ => None,
    };
    let same = |line: &&Row| -> bool {
        let other: Result<KernelChoice, _> = line.engine.parse();
        other.is_ok_and(|other| {
            other == choice || (launch(other).is_some() && launch(other) == launch(choice))
        })
    };
    let here = lines.iter().filter(|line| line.pass == Pass::Forward && line.seq_len == seq_len);
    here.filter(|line| line.num_seqs == 13_200).find(same).map(|line| 1.0 / line.ratio.value)
}

/// Computes Spearman's rank correlation of pairs, or `None` if there are fewer than three pairs or
/// one side is constant.
// ANCHOR: ranks
fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (a, b) = (ranks(&a), ranks(&b));
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let sum = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let spread = (sum(&a, &a) * sum(&b, &b)).sqrt();
    (spread > 0.0).then(|| sum(&a, &b) / spread)
}

/// Returns the rank of each value, from 0; equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let same = values.iter().filter(|other| *other == value).count() as f64;
        below + (same - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}
// ANCHOR_END: ranks

/// Formats a number of the record, or a dash if it is missing.
fn cell(number: Option<f64>, digits: usize) -> String {
    match number {
        Some(number) if number.is_finite() => format!("{number:.digits$}"),
        _ => String::from("–"),
    }
}

/// The sentence for a missing record.
const NOTHING: &str = "Nothing of this has been recorded yet.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_an_h200() {
        // 6144 bits at 3201 MHz: 4.9 TB/s; the data sheet says 4.8.
        let peak = theoretical(Some(6144.0), Some(3201.0)).unwrap();
        assert!((4800.0..5000.0).contains(&peak));
        assert_eq!(theoretical(None, Some(1.0)), None);
    }

    #[test]
    fn rank_correlation_of_equal_and_opposite_orders() {
        let of = |pairs: &[(f64, f64)]| rank_correlation(pairs);
        assert_eq!(of(&[(1.0, 10.0), (2.0, 11.0), (9.0, 500.0)]), Some(1.0));
        assert_eq!(of(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), Some(-1.0));
        assert_eq!(of(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(of(&[(1.0, 1.0), (2.0, 2.0)]), None);
        // Two values that share a rank: ranks 0.5, 0.5, 2 against 0, 1, 2.
        let shared = of(&[(1.0, 1.0), (1.0, 2.0), (3.0, 3.0)]).unwrap();
        assert!((shared - 0.75_f64.sqrt()).abs() < 1e-12, "{shared}");
    }
}
