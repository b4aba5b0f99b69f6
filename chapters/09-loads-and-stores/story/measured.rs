//! The cost of the ways between memory and registers: requests, banks and time.
//!
//! Counters explain times. This part first counts the requests and sectors of the three memcodes on
//! the emulator and shows their times on an H200. It then uses the counts of Nsight Compute to
//! follow the sectors through the caches, checks that the emulator counts the same, and counts the
//! passes over the banks of shared memory. The times come from committed records. `cargo xtask
//! record --check` compares the checks and values with the committed run.

use ch08_reverse_and_backward::count::{count, of};
use ch08_reverse_and_backward::watch::watch;
use ch08_reverse_and_backward::{TILE_LEN, pipe};
use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Table};
use linrec::Direction;
use linrec::kernels::{Memcode, Pass};
use linrec::simt::Access;

use super::pictures::Requests;
use crate::banks::of_threads;
use crate::exercises::passes;
use crate::record::speed as runs;
use crate::record::{times, traffic, traffic_elements};

const WAYS: [&str; 3] = ["0: own elements", "1: striped", "2: vectors"];

/// Counts the cost of each way.
pub(super) fn ways(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("ways", "Three ways")?;
    let tiles = 8;
    lesson.say(&format!(
        "A forward pass of one sequence of {} in f32, that is {tiles} tiles of 64 threads with 8 steps each. Requests of \
         both warps and the sectors of each, passes over the banks of shared memory, and how many of them conflicts cost, for \
         each tile:",
        tiles * TILE_LEN,
    ));
    let header = [
        "memcode",
        "loads",
        "stores",
        "sectors each",
        "shared passes",
        "conflicts",
        "barriers",
        "instructions",
    ];
    let mut table = Table::new(header);
    let mut panels = Vec::new();
    let mut sectors = Vec::new();
    for (memcode, name) in Memcode::ALL.into_iter().zip(WAYS) {
        let counters = count::<f32>(pipe(memcode), Pass::Forward, (1, tiles * TILE_LEN))?;
        let loads = of(&counters, Access::GlobalLoad);
        let stores = of(&counters, Access::GlobalStore);
        let [into, from] = [Access::SharedStore, Access::SharedLoad].map(|on| of(&counters, on));
        let both = loads.sectors + stores.sectors;
        let per_tile = |number: u64| format!("{}", number as f64 / tiles as f64);
        table.row([
            name.to_owned(),
            per_tile(loads.requests),
            per_tile(stores.requests),
            format!("{}", both as f64 / (loads.requests + stores.requests) as f64),
            per_tile(into.wavefronts + from.wavefronts),
            per_tile(into.conflicts + from.conflicts),
            per_tile(counters.barriers),
            format!("{:.0}", counters.instructions as f64 / tiles as f64),
        ]);
        sectors.push(both as f64);
        let watched = watch(pipe(memcode), Pass::Forward, Direction::Forward, TILE_LEN)?;
        let of_inputs = watched.loads.into_iter().filter(|load| load.array == 0).collect();
        let title = format!("memcode {name}");
        panels.push(Requests { title, loads: of_inputs, len: TILE_LEN });
    }
    lesson.table("ways.csv", Kind::Computed, &table)?;
    lesson.value("sectors_ratio", sectors[0] / sectors[2], Kind::Computed);
    let panels: Vec<&dyn plot::Panel> = panels.iter().map(|one| one as &dyn plot::Panel).collect();
    let svg = plot::grid(&panels, 1)?;
    lesson.figure("ways.svg", "Where each request of a warp goes", Kind::Computed, &svg)
}

/// Shows the times of the ways on an H200.
pub(super) fn speed(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("speed", "And the times")?;
    let (forward, backward) = (runs(Pass::Forward)?, runs(Pass::Backward)?);
    lesson.say(&format!(
        "From the record of an H200: 13200 sequences in f32, medians of {} runs, as a part of the roof in the same \
         runs. Up to 8 elements for each of up to 64 threads:",
        forward.count("roof", 4096),
    ));
    let header = [
        "length",
        "forward, 0",
        "forward, 1",
        "forward, 2",
        "backward, 0",
        "backward, 1",
        "backward, 2",
    ];
    let mut table = Table::new(header);
    let engines = Memcode::ALL.map(|memcode| format!("pipe:8x64:{memcode}"));
    for seq_len in forward.lengths() {
        let cells = [&forward, &backward].into_iter().flat_map(|runs| {
            engines.each_ref().map(|engine| {
                let run = runs.median(engine, seq_len);
                run.map_or(String::from("–"), |run| format!("{:.2}", run.ratio))
            })
        });
        table.row([seq_len.to_string()].into_iter().chain(cells));
    }
    lesson.table("speed.csv", Kind::Computed, &table)?;

    lesson.say(
        "Sequences of 4096 again, from another run, with up to 4 elements for each of up to 128 threads \
         beside it:",
    );
    let mut table =
        Table::new(["memcode", "8 x 64", "4 x 128", "backward, 8 x 64", "backward, 4 x 128"]);
    let (there, back) = (times(Pass::Forward, "f32")?, times(Pass::Backward, "f32")?);
    for (memcode, name) in Memcode::ALL.into_iter().zip(WAYS) {
        let cells = [&there, &back].into_iter().flat_map(|runs| {
            ["8x64", "4x128"].map(|size| {
                let run = runs.median(&format!("pipe:{size}:{memcode}"), 4096);
                run.map_or(String::from("–"), |run| format!("{:.2}", run.ratio))
            })
        });
        table.row([name.to_owned()].into_iter().chain(cells));
    }
    lesson.table("sizes.csv", Kind::Computed, &table)?;
    let best = there.median("pipe:4x128:0", 4096).map_or(f64::NAN, |run| run.ratio);
    lesson.value("best_forward", format!("{:.0} %", 100.0 * best), Kind::Computed);
    let best = back.median("pipe:4x128:0", 4096).map_or(f64::NAN, |run| run.ratio);
    lesson.value("best_backward", format!("{:.0} %", 100.0 * best), Kind::Computed);

    let mut chart = Chart::new("The three ways, forward, 8 x 64, on an H200")
        .axes("length of a sequence", "speed / speed of the roof")
        .log_x(2.0)
        .y_range(0.0, 1.25);
    let lengths = || forward.lengths().into_iter().filter(|len| len.is_power_of_two());
    let names = [
        ("pipe:8x64:0", "memcode 0"),
        ("pipe:8x64:1", "memcode 1"),
        ("pipe:8x64:2", "memcode 2"),
        ("pipe:4x128:0", "memcode 0, 4 x 128"),
    ];
    for (number, (engine, name)) in names.into_iter().enumerate() {
        let points =
            lengths().filter_map(|len| Some((len as f64, forward.median(engine, len)?.ratio)));
        chart = chart.measured(name, points);
        chart = chart.color(plot::kernels::variant("pipe", number)).dot(plot::Dot::ALL[number]);
    }
    let roof = |len| Some((len as f64, forward.median("roof", len)?.gb_per_s));
    chart = bench::figure::with_roof(chart, lengths().filter_map(roof), 1.25);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("speed.svg", "The three ways over lengths", Kind::Computed, &svg)
}

// The path of each way's sectors, and the busiest unit, as counted by Nsight Compute on an H200.

const SECTOR: f64 = 32.0;

pub(super) fn price(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("price", "Where the sectors go")?;
    let elements = traffic_elements();
    lesson.say(
        "Nsight Compute on the H200, 13200 sequences of 4096, forward. Sectors that the SMs ask for, and \
         those that get as far as L2, both as multiples of the arrays' own; and bytes that are read from DRAM and written to it, per element:",
    );
    let header = [
        "kernel",
        "memcode",
        "loads",
        "L2 reads",
        "stores",
        "L2 writes",
        "DRAM reads",
        "writes",
        "speed / roof",
    ];
    let mut table = Table::new(header);
    let runs = times(Pass::Forward, "f32")?;
    let get = |engine: &str, what: &str| traffic(Pass::Forward, engine, what).unwrap_or(f64::NAN);
    let kernels = [("4x128", "4 x 128"), ("8x64", "8 x 64")];
    for (size, name) in kernels {
        for memcode in Memcode::ALL {
            let engine = format!("pipe:{size}:{memcode}");
            let multiple = |what: &str, arrays: f64| {
                format!("{:.2}", get(&engine, what) * SECTOR / (4.0 * arrays * elements))
            };
            let bytes = |what: &str| format!("{:.2}", get(&engine, what) / elements);
            let ratio = runs.median(&engine, 4096).map_or(f64::NAN, |run| run.ratio);
            table.row([
                name.to_owned(),
                memcode.to_string(),
                multiple("load_sectors", 2.0),
                multiple("l2_reads", 2.0),
                multiple("store_sectors", 1.0),
                multiple("l2_writes", 1.0),
                bytes("dram_read"),
                bytes("dram_written"),
                format!("{ratio:.2}"),
            ]);
        }
    }
    lesson.table("traffic.csv", Kind::Computed, &table)?;
    let multiple = |engine: &str| get(engine, "l2_writes") * SECTOR / (4.0 * elements);
    // Three arrays, of which two are shifted.
    for (key, what) in [("back_asked", "load_sectors"), ("back_l2", "l2_reads")] {
        let sectors = traffic(Pass::Backward, "pipe:8x64:1", what).unwrap_or(f64::NAN);
        let multiple = sectors * SECTOR / (4.0 * 3.0 * elements);
        lesson.value(key, format!("{multiple:.2}"), Kind::Computed);
    }
    lesson.value("written_4", format!("{:.1}", multiple("pipe:4x128:0")), Kind::Computed);
    lesson.value("written_8", format!("{:.1}", multiple("pipe:8x64:0")), Kind::Computed);

    lesson.say(
        "The same launches: instructions of warps and passes over the banks of shared memory for every 32 elements, \
         and how busy the caches and DRAM were:",
    );
    let header = [
        "kernel",
        "memcode",
        "instructions",
        "shared passes",
        "conflicts",
        "L1 busy",
        "L2 busy",
        "DRAM busy",
    ];
    let mut table = Table::new(header);
    for (size, name) in kernels {
        for memcode in Memcode::ALL {
            let engine = format!("pipe:{size}:{memcode}");
            // Per 32 elements, as if a warp had one element per lane.
            let per_32 = |whats: [&str; 2]| {
                let sum: f64 = whats.iter().map(|what| get(&engine, what)).sum();
                format!("{:.1}", 32.0 * sum / elements)
            };
            table.row([
                name.to_owned(),
                memcode.to_string(),
                format!("{:.0}", 32.0 * get(&engine, "instructions") / elements),
                per_32(["shared_load_wavefronts", "shared_store_wavefronts"]),
                per_32(["shared_load_conflicts", "shared_store_conflicts"]),
                format!("{:.0} %", get(&engine, "l1_percent")),
                format!("{:.0} %", get(&engine, "l2_percent")),
                format!("{:.0} %", get(&engine, "dram_percent")),
            ]);
        }
    }
    lesson.table("work.csv", Kind::Computed, &table)?;
    for (key, engine, what) in [
        ("l2_busy_0", "pipe:8x64:0", "l2_percent"),
        ("l2_busy_1", "pipe:8x64:1", "l2_percent"),
        ("dram_busy_1", "pipe:8x64:1", "dram_percent"),
        ("l1_busy_2", "pipe:8x64:2", "l1_percent"),
    ] {
        lesson.value(key, format!("{:.0} %", get(engine, what)), Kind::Computed);
    }

    equal_counts(lesson)
}

/// Checks that the emulator's requests, sectors and conflicts equal the GPU's.
fn equal_counts(lesson: &mut Lesson) -> lesson::Result {
    // All blocks do the same, so one is enough.
    let (mut unequal, num_seqs) = (0, traffic_elements() / 4096.0);
    let mut conflicts = Vec::new();
    for pass in Pass::ALL {
        for memcode in Memcode::ALL {
            let counters = count::<f32>(pipe(memcode), pass, (1, 4096))?;
            let engine = format!("pipe:8x64:{memcode}");
            let gpu = |what| traffic(pass, &engine, what).unwrap_or(f64::NAN) / num_seqs;
            let (loads, stores) =
                (of(&counters, Access::GlobalLoad), of(&counters, Access::GlobalStore));
            for (ours, theirs) in [
                (loads.requests, gpu("load_requests")),
                (loads.sectors, gpu("load_sectors")),
                (stores.requests, gpu("store_requests")),
                (stores.sectors, gpu("store_sectors")),
            ] {
                unequal += usize::from(ours as f64 != theirs);
            }
            let [into, from] =
                [Access::SharedStore, Access::SharedLoad].map(|on| of(&counters, on).conflicts);
            let theirs = gpu("shared_load_conflicts") + gpu("shared_store_conflicts");
            conflicts.push((pass, memcode, into + from, theirs));
        }
    }
    lesson.check("requests and sectors that the emulator counts differently", unequal as f64, 0.0);
    lesson.say(
        "Conflicts of one sequence, by the emulator and by Nsight Compute (the latter on average):",
    );
    let mut table = Table::new(["pass", "memcode", "emulator", "H200"]);
    for (pass, memcode, ours, theirs) in conflicts {
        table.row([
            pass.name().to_owned(),
            memcode.to_string(),
            ours.to_string(),
            format!("{theirs:.0}"),
        ]);
    }
    lesson.table("conflicts.csv", Kind::Computed, &table)
}

/// Counts the passes of a warp that selects its elements.
pub(super) fn banks(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("banks", "Meeting at the same bank")?;
    lesson.say(
        "One warp takes its elements from shared memory, lane l from bank word l * steps on. Passes over the banks for each \
         request, as the emulator counts them with memcode 1:",
    );
    let mut table =
        Table::new(["steps per thread", "passes per request", "with a free bank word after 32"]);
    let mut unlike = 0;
    for steps in 1..=8 {
        let counters = count::<f32>(pipe(Memcode::Shared), Pass::Forward, (1, 32 * steps))?;
        let threads = of_threads(&counters, Access::SharedLoad);
        let counted = threads.wavefronts as f64 / threads.requests as f64;
        unlike += usize::from(counted != passes(steps, 0) as f64);
        table.row([steps.to_string(), counted.to_string(), passes(steps, 1).to_string()]);
    }
    lesson.table("banks.csv", Kind::Computed, &table)?;
    lesson.check("rows that the exercise's solution counts differently", unlike as f64, 0.0);
    Ok(())
}
