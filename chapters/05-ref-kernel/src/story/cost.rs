//! What one thread per sequence costs: sectors, instructions, and a GPU that is nearly empty.

use std::collections::BTreeMap;

use linrec::device::{BackwardOptions, Device, ForwardOptions, Launched, Recurrence};
use linrec::kernels::{self, KernelChoice};
use linrec::lesson::{self, Kind, Lesson, Table, plot, plot::Chart};
use linrec::simt::{Access, Counters, Trace};
use linrec::{Direction, Error};

use super::picture::{Request, Requests};
use crate::by_hand::{self, CHOICE};
use crate::patterns::{Pattern, first_load};

/// Sequences in a launch: four warps.
const NUM_SEQS: u32 = 128;

/// Sectors per request of both passes, line by line; then of rows of other lengths.
pub fn sectors(lesson: &mut Lesson) -> lesson::Result {
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
    lesson.check("what is missing to 32 sectors per request, on any line", 32.0 - worst, 0.0);

    let rows: Vec<Request> = [
        ("float, neighbours", Pattern::Coalesced(1).cost()?.addresses),
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
        .dashed("neighbours", [(1.0, 4.0), (16.0, 4.0)]);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("lengths.svg", "Sectors per request against length", Kind::Computed, &svg)?;
    Ok(())
}

/// Blocks of other sizes, and how full a GPU gets.
pub fn threads(lesson: &mut Lesson) -> lesson::Result {
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
        let launched = forward(1000, KernelChoice::Ref { threads })?;
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

    // An H200: 132 multiprocessors, each with 4 schedulers and room for 64 warps.
    let multiprocessors = 132_u32;
    let (sequences, room) = (100 * multiprocessors, multiprocessors * 64 * 32);
    let (warps, schedulers) = (sequences.div_ceil(32), 4 * multiprocessors);
    let full = format!("{:.1} %", 100.0 * f64::from(sequences) / f64::from(room));
    lesson.say(&format!(
        "The benchmarks of this book have {sequences} sequences, 100 for each multiprocessor of an H200. One \
         thread for each makes {warps} warps, and such a GPU has {schedulers} schedulers. It has room for {room} \
         threads; {full} of that is taken.",
    ));
    for (key, number) in
        [("sequences", sequences), ("room", room), ("warps", warps), ("schedulers", schedulers)]
    {
        lesson.value(key, number, Kind::Computed);
    }
    lesson.value("full", full, Kind::Computed);
    Ok(())
}

/// A forward pass over ones on the emulator.
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

/// The addresses of the first load of the kernel, in bytes from the first sector.
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

/// Requests and sectors of each line of the source that accesses global memory.
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

/// A line of the kernel's source, by its number.
fn source_line(line: u32) -> &'static str {
    let source = kernels::source("linrec_ref.cu").unwrap_or_default();
    source.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().trim()
}

/// The first words of a line of code, as many as fit into a table.
fn shortened(line: &str) -> String {
    const WIDTH: usize = 35;
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{} …", line[..end].trim_end()),
        None => line.to_owned(),
    }
}
