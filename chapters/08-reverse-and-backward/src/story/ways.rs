//! Three ways between memory and registers.

use linrec::Direction;
use linrec::kernels::Pass;
use linrec::lesson::{self, Kind, Lesson, Table, plot, plot::Chart};
use linrec::simt::Access;

use super::picture::Requests;
use crate::count::{count, of};
use crate::record::{self, speed as runs, times};
use crate::watch::watch;
use crate::{TILE_LEN, pipe};

/// What the ways are called.
pub const WAYS: [&str; 3] = ["0: own elements", "1: neighbours", "2: words"];

/// Counts what each way costs.
pub fn ways(lesson: &mut Lesson) -> lesson::Result {
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
    for (memcode, name) in (0..).zip(WAYS) {
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

/// What an H200 makes of them.
pub fn speed(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("speed", "And the times")?;
    let (forward, backward) = (runs(record::Pass::Forward)?, runs(record::Pass::Backward)?);
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
    let engines = [0, 1, 2].map(|memcode| format!("pipe:8x64:{memcode}"));
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

    lesson.say("Sequences of 4096, with up to 4 elements for each of up to 128 threads beside it:");
    let mut table =
        Table::new(["memcode", "8 x 64", "4 x 128", "backward, 8 x 64", "backward, 4 x 128"]);
    let (there, back) =
        (times(record::Pass::Forward, "f32")?, times(record::Pass::Backward, "f32")?);
    for (memcode, name) in WAYS.iter().enumerate() {
        let cells = [&there, &back].into_iter().flat_map(|runs| {
            ["8x64", "4x128"].map(|size| {
                let run = runs.median(&format!("pipe:{size}:{memcode}"), 4096);
                run.map_or(String::from("–"), |run| format!("{:.2}", run.ratio))
            })
        });
        table.row([(*name).to_owned()].into_iter().chain(cells));
    }
    lesson.table("sizes.csv", Kind::Computed, &table)?;
    let best = there.median("pipe:4x128:0", 4096).map_or(f64::NAN, |run| run.ratio);
    lesson.value("best_forward", format!("{:.0} %", 100.0 * best), Kind::Computed);
    let best = back.median("pipe:4x128:0", 4096).map_or(f64::NAN, |run| run.ratio);
    lesson.value("best_backward", format!("{:.0} %", 100.0 * best), Kind::Computed);

    let mut chart = Chart::new("The three ways, forward, 8 x 64, on an H200")
        .axes("length of a sequence", "speed / speed of the roof")
        .log_x(2.0)
        .y_range(0.0, 1.6);
    let lengths = || forward.lengths().into_iter().filter(|len| len.is_power_of_two());
    let names = [
        ("pipe:8x64:0", "memcode 0"),
        ("pipe:8x64:1", "memcode 1"),
        ("pipe:8x64:2", "memcode 2"),
        ("pipe:4x128:0", "memcode 0, 4 x 128"),
    ];
    for (engine, name) in names {
        let points =
            lengths().filter_map(|len| Some((len as f64, forward.median(engine, len)?.ratio)));
        chart = chart.measured(name, points);
    }
    chart = chart.dashed("the roof", [(16.0, 1.0), (65_536.0, 1.0)]);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("speed.svg", "The three ways over lengths", Kind::Computed, &svg)
}
