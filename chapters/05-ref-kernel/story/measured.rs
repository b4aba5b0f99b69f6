//! The measurements of chapter 5: the kernel's sectors, threads and time.
//!
//! One thread per sequence wastes most of a GPU, for two reasons that can be counted without a
//! clock: each lane of a warp reads another sector, and the sequences are too few for the warp
//! slots. This part counts both on the emulator and draws the requests. Then it measures the
//! kernel on a GPU if there is one, and the emulator itself on this machine's processor. `cargo
//! xtask record --check` compares the counts with the committed record, but not the times.

use std::collections::BTreeMap;
use std::time::Duration;

use bench::clock::median;
use bench::field::against_roof;
use ch01_sequential_loop::Loop;
use lesson::plot::{self, Area, COLORS, Chart, Panel};
use lesson::{Kind, Lesson, Table, clock};
use linrec::device::{BackwardOptions, Device, ForwardOptions, Launched, Recurrence};
use linrec::kernels::{self, KernelChoice, Pass, RefConfig};
use linrec::simt::{Access, Counters, Trace};
use linrec::{Direction, Engine, Error, Options};
use ndarray::Array2;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use rayon::{ThreadPoolBuilder, current_num_threads};

use crate::by_hand::{self, CHOICE};
use crate::patterns::{Pattern, first_load};

/// The number of sequences in a launch: four warps.
const NUM_SEQS: u32 = 128;

/// Counts sectors per request of both passes, line by line, and then for rows of other lengths.
pub(super) fn sectors(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("sectors", "Sectors of the reference kernel")?;
    let seq_len = 1000;
    lesson.say(&format!("{NUM_SEQS} sequences of {seq_len}, forward and backward, line by line:"));
    let mut table = Table::new(["line", "source", "access", "requests", "sectors", "per request"]);
    let mut worst = f64::INFINITY;
    for launched in [forward(seq_len, CHOICE)?, backward(seq_len)?] {
        for (line, access, requests, sectors) in by_line(&launched) {
            let per_request = sectors as f64 / requests as f64;
            worst = worst.min(per_request);
            table.row([
                line.to_string(),
                shortened(source_line(line)),
                String::from(if access == Access::GlobalLoad { "load" } else { "store" }),
                requests.to_string(),
                sectors.to_string(),
                format!("{per_request}"),
            ]);
        }
    }
    lesson.table("sectors.csv", Kind::Computed, &table)?;
    lesson.check("sectors per request below 32, on any line", 32.0 - worst, 0.0);

    let rows: Vec<Request> = [
        ("float, consecutive", Pattern::Coalesced(1).cost()?.addresses),
        ("the same, shifted by one float", Pattern::Shifted(1).cost()?.addresses),
        ("every second float", Pattern::Strided(2).cost()?.addresses),
        ("the reference kernel: lane i at the start of row i", first_of_rows(seq_len)?),
    ]
    .into_iter()
    .map(|(name, addresses)| Request { name, addresses })
    .collect();
    let svg = plot::grid(&[&Requests(rows)], 1)?;
    lesson.figure("lanes.svg", "From lanes to sectors", Kind::Computed, &svg)?;

    let mut points = Vec::new();
    for seq_len in 1..=16 {
        let launched = forward(seq_len, CHOICE)?;
        points.push((f64::from(seq_len), per_request(&launched, Access::GlobalLoad)));
    }
    let chart = Chart::new("Sectors per load request of the reference kernel")
        .axes("length of a row", "sectors per request")
        .y_range(0.0, 36.0)
        .measured("one thread per row", points.iter().copied())
        .color(plot::kernels::color("ref"))
        .dashed("coalesced", [(1.0, 4.0), (16.0, 4.0)])
        .color(plot::TEXT);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("lengths.svg", "Sectors per request against length", Kind::Computed, &svg)?;
    Ok(())
}

/// Counts blocks of other sizes, and how full a GPU gets.
pub(super) fn threads(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("threads", "One thread in a block, or many")?;
    lesson.say(&format!(
        "{NUM_SEQS} sequences of 1000, forward. A warp's instruction is counted once, however many of its \
         32 lanes take part.",
    ));
    let header = [
        "threads in a block",
        "blocks",
        "warps",
        "instructions",
        "load requests",
        "sectors per request",
    ];
    let mut table = Table::new(header);
    let mut counts = BTreeMap::new();
    for threads in [1, 8, 32, 64, 128] {
        let launched = forward(1000, KernelChoice::Ref(RefConfig { threads }))?;
        let counters = launched.counters().cloned().unwrap_or_default();
        let blocks = NUM_SEQS.div_ceil(threads);
        table.row([
            threads.to_string(),
            blocks.to_string(),
            (blocks * threads.div_ceil(32)).to_string(),
            counters.instructions.to_string(),
            counters.requests(Access::GlobalLoad).to_string(),
            format!("{}", per_request(&launched, Access::GlobalLoad)),
        ]);
        counts.insert(threads, counters.instructions);
    }
    lesson.table("threads.csv", Kind::Computed, &table)?;
    let ratio = counts[&1] as f64 / counts[&32] as f64;
    lesson.value("one_thread", ratio, Kind::Computed);

    // An H200: 132 SMs, each with 4 schedulers and 64 warp slots.
    let sms = 132_u32;
    let (sequences, capacity) = (100 * sms, sms * 64 * 32);
    let (warps, schedulers) = (sequences.div_ceil(32), 4 * sms);
    let full = format!("{:.1} %", 100.0 * f64::from(sequences) / f64::from(capacity));
    lesson.say(&format!(
        "The benchmarks of this book have {sequences} sequences, 100 for each SM of an H200. One thread for each \
         makes {warps} warps, and such a GPU has {schedulers} schedulers. It has room for {capacity} \
         threads; {full} of that is taken.",
    ));
    for (key, number) in
        [("sequences", sequences), ("room", capacity), ("warps", warps), ("schedulers", schedulers)]
    {
        lesson.value(key, number, Kind::Computed);
    }
    lesson.value("full", full, Kind::Computed);
    Ok(())
}

fn forward(seq_len: u32, choice: KernelChoice) -> Result<Launched, Error> {
    let device = Device::simt();
    let ones = device.upload(&vec![1.0_f32; (NUM_SEQS * seq_len) as usize])?;
    let mut outputs = device.allocate(ones.len())?;
    let recurrence = Recurrence::new(&device, choice)?;
    let shape = (NUM_SEQS as usize, seq_len as usize);
    recurrence.forward_into(&ones, &ones, &mut outputs, shape, ForwardOptions::default())
}

fn backward(seq_len: u32) -> Result<Launched, Error> {
    let device = Device::simt();
    let ones = device.upload(&vec![1.0_f32; (NUM_SEQS * seq_len) as usize])?;
    let (mut d_inputs, mut d_coeffs) = (device.allocate(ones.len())?, device.allocate(ones.len())?);
    let recurrence = Recurrence::new(&device, CHOICE)?;
    let shape = (NUM_SEQS as usize, seq_len as usize);
    let options = BackwardOptions::default();
    recurrence.backward_into(&ones, &ones, &ones, &mut d_inputs, &mut d_coeffs, shape, options)
}

/// Returns the addresses of the kernel's first load, in bytes from the first sector.
fn first_of_rows(seq_len: u32) -> Result<[u64; 32], Error> {
    let device = Device::simt();
    let kernel = by_hand::instance::<f32>(&device, Direction::Forward)?;
    let ones = device.upload(&vec![1.0_f32; (32 * seq_len) as usize])?;
    let mut outputs = device.allocate::<f32>(ones.len())?;
    let mut trace = Trace::new(1);
    let none = None::<&linrec::device::Buffer<f32>>;
    let launch = kernel.launch(1, 32).arg(&ones).arg(&ones).arg(&mut outputs).arg(none).arg(none);
    let launch = launch.arg(32_i64).arg(i64::from(seq_len));
    launch.traced(&mut trace).run(&device.stream())?;
    Ok(first_load(&trace).map_or([0; 32], |(addresses, _)| addresses))
}

fn per_request(launched: &Launched, access: Access) -> f64 {
    let none = Counters::default();
    let counters = launched.counters().unwrap_or(&none);
    counters.sectors(access) as f64 / counters.requests(access).max(1) as f64
}

/// Returns requests and sectors of each source line that accesses global memory.
fn by_line(launched: &Launched) -> Vec<(u32, Access, u64, u64)> {
    let mut lines = BTreeMap::<(u32, Access), (u64, u64)>::new();
    for site in launched.counters().iter().flat_map(|counters| &counters.sites) {
        if let Some((_, line)) = site.source
            && site.requests > 0
        {
            let (requests, sectors) = lines.entry((line, site.access)).or_default();
            *requests += site.requests;
            *sectors += site.sectors;
        }
    }
    lines.into_iter().map(|((line, access), (a, b))| (line, access, a, b)).collect()
}

fn source_line(line: u32) -> &'static str {
    let source = kernels::source("linrec_ref.cu").unwrap_or_default();
    source.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().trim()
}

/// Returns the first words of a line of code, as many as fit into a table.
fn shortened(line: &str) -> String {
    const WIDTH: usize = 35;
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{} …", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

/// The number of measurements of each length; their median counts.
const CLOCK_RUNS: usize = 9;

/// Measures the kernel and the roof on a GPU.
pub(super) fn clock(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("clock", "How long it takes")?;
    if device.is_simt() {
        lesson.say(
            "An emulator cannot tell. It knows how many instructions, requests and sectors there are, but not \
             how many of them a GPU has in flight at the same time, nor what its caches still hold.",
        );
        return Ok(());
    }
    let num_seqs = 100 * device.attributes().multiprocessors as usize;
    lesson.say(&format!(
        "{num_seqs} sequences forward, medians of {CLOCK_RUNS} runs, beside an addition of two arrays. GB/s counts \
         12 bytes per element.",
    ));
    let header = ["length", "kernel, ms", "kernel, GB/s", "roof, GB/s", "kernel / roof"];
    let mut table = Table::new(header);
    for seq_len in [1024, 4096] {
        let elements = num_seqs * seq_len;
        let (shape, pass) = ((num_seqs, seq_len), Pass::Forward);
        let [ours, theirs] = against_roof::<f32>(device, CHOICE, pass, shape, CLOCK_RUNS)?;
        let speed = |milliseconds: f64| 12.0 * elements as f64 / milliseconds / 1e6;
        table.row([
            seq_len.to_string(),
            format!("{ours:.3}"),
            format!("{:.0}", speed(ours)),
            format!("{:.0}", speed(theirs)),
            format!("{:.2}", theirs / ours),
        ]);
    }
    lesson.table("clock.csv", Kind::Timed, &table)
}

/// The number of measurements of each; their median counts.
const SPEED_RUNS: usize = 15;

/// Measures the kernel on the emulator, on one thread of this machine and on all, and chapter 1's
/// loop.
pub(super) fn speed(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("speed", "How fast the emulator is")?;
    let shape @ (num_seqs, seq_len) = lesson.size((4096, 512), (13_200, 4096));
    let device = Device::simt();
    let (inputs, coeffs) = (Array2::from_elem(shape, 1.0_f32), Array2::from_elem(shape, 0.5_f32));
    let copies = [&inputs, &coeffs].map(|array| device.upload(array.as_slice().unwrap_or(&[])));
    let [x, c] = copies;
    let (x, c, mut y) = (x?, c?, device.allocate::<f32>(num_seqs * seq_len)?);
    let recurrence = Recurrence::<f32>::new(&device, CHOICE)?;
    let mut launch = || recurrence.forward_into(&x, &c, &mut y, shape, ForwardOptions::default());
    // The timed launches drop their errors; this one returns its error.
    launch()?;

    let pool = ThreadPoolBuilder::new().num_threads(1).build()?;
    let one = median(SPEED_RUNS, || drop(pool.install(&mut launch)));
    let all = median(SPEED_RUNS, || drop(launch()));
    let options = Options::default();
    let host = median(SPEED_RUNS, || drop(Loop.forward(inputs.view(), coeffs.view(), &options)));

    let speed = |time: Duration| (num_seqs * seq_len) as f64 / time.as_secs_f64() / 1e6;
    let threads = current_num_threads();
    lesson.say(&format!(
        "{num_seqs} sequences of {seq_len} in f32, forward, medians of {SPEED_RUNS} runs on this machine's processor. \
         The blocks of a launch are dealt to its threads.",
    ));
    let mut table = Table::new(["", "threads", "time", "million elements/s"]);
    for (name, threads, time) in [
        ("the kernel on the emulator", 1, one),
        ("the kernel on the emulator", threads, all),
        ("chapter 1's loop", 1, host),
    ] {
        let cells = [threads.to_string(), clock::text(time), format!("{:.0}", speed(time))];
        table.row([name.to_owned()].into_iter().chain(cells));
    }
    lesson.table("speed.csv", Kind::Timed, &table)?;
    let slower = one.as_secs_f64() / host.as_secs_f64();
    lesson.say(&format!(
        "On one thread, the emulator takes {slower:.1} times as long as the compiled loop. For that it checks and \
         counts every access.",
    ));
    lesson.value("emulator_one", format!("{:.0}", speed(one)), Kind::Timed);
    lesson.value("emulator_all", format!("{:.0}", speed(all)), Kind::Timed);
    lesson.value("emulator_threads", threads, Kind::Timed);
    lesson.value("emulator_slower", format!("{slower:.1}"), Kind::Timed);
    Ok(())
}

/// One request of a warp whose lanes load a float each.
struct Request {
    /// The title above it.
    pub name: &'static str,
    /// The address of each lane's float, in bytes from the start of a sector.
    pub addresses: [u64; 32],
}

/// Requests, drawn below each other.
struct Requests(pub Vec<Request>);

const LEFT: i32 = 12;
const ROW: i32 = 116;
/// The distances from the top of a row to the lanes and to the sectors.
const LANES: i32 = 34;
const SECTORS: i32 = 84;
const LANE: i32 = 7;
const WORD: i32 = 2;
const SECTOR: i32 = 8 * WORD + 1;
/// The gap between sectors; sectors that are neighbours in memory touch.
const GAP: i32 = 5;
const HEIGHT: i32 = 14;

impl Panel for Requests {
    fn height(&self, _width: u32) -> u32 {
        (ROW * self.0.len() as i32 + 6) as u32
    }

    fn draw(&self, area: &Area) -> lesson::Result {
        let width = area.dim_in_pixel().0 as i32 - 2 * LEFT;
        for (row, request) in self.0.iter().enumerate() {
            draw_request(area, request, ROW * row as i32 + 6, width)?;
        }
        Ok(())
    }
}

fn draw_request(area: &Area, request: &Request, top: i32, width: i32) -> lesson::Result {
    let mut sectors: Vec<u64> = request.addresses.iter().map(|address| address / 32).collect();
    sectors.dedup();
    let text = ("sans-serif", 14).into_text_style(&(1, 1)).color(&BLACK);
    let title = format!("{}: {} sectors", request.name, sectors.len());
    let left = Pos::new(HPos::Left, VPos::Center);
    area.draw(&Text::new(title, (LEFT, top + 10), text.pos(left)))?;

    // The sectors' positions: centred, with a gap where memory lies between two of them.
    let step = |pair: &[u64]| SECTOR + if pair[1] == pair[0] + 1 { 0 } else { GAP };
    let length = SECTOR + sectors.windows(2).map(step).sum::<i32>();
    let mut places = vec![LEFT + (width - length) / 2];
    for pair in sectors.windows(2) {
        places.push(places[places.len() - 1] + step(pair));
    }
    let y = top + SECTORS;
    let grey = RGBColor(128, 128, 128);
    for &x in &places {
        let corners = [(x, y), (x + SECTOR, y + HEIGHT)];
        area.draw(&Rectangle::new(corners, grey.mix(0.35).filled()))?;
    }
    for (lane, address) in request.addresses.iter().enumerate() {
        let sector = sectors.iter().position(|sector| *sector == address / 32).unwrap_or(0);
        let word = places[sector] + WORD * (address % 32 / 4) as i32;
        area.draw(&Rectangle::new([(word, y), (word + WORD, y + HEIGHT)], COLORS[1].filled()))?;
        let x = LEFT + width * lane as i32 / 32 + (width / 32 - LANE) / 2;
        let line = [(x + LANE / 2, top + LANES + LANE), (word + WORD / 2, y)];
        area.draw(&PathElement::new(line, COLORS[0].mix(0.8).stroke_width(1)))?;
        let corners = [(x, top + LANES), (x + LANE, top + LANES + LANE)];
        area.draw(&Rectangle::new(corners, COLORS[0].filled()))?;
    }
    for &x in &places {
        let corners = [(x, y), (x + SECTOR, y + HEIGHT)];
        area.draw(&Rectangle::new(corners, grey.stroke_width(1)))?;
    }
    Ok(())
}
