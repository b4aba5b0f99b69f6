//! The story of chapter 6: watches a tile being computed, level by level.
//!
//! Each level of the scan has a step that lets the emulator record a block and shows its values:
//! the layout, then a thread, a warp, and the warps of a block. The kernel is then stopped after
//! each level, compared bit by bit with the same levels on the host, and run through the test
//! contract. The last steps measure the tile: its limits, its cost against one thread per sequence,
//! the record of an H200, and other layouts. `cargo xtask record --check` compares the checks and
//! values of a run with the committed record.

mod pictures;

use bench::{Row, Runs, csv, recorded};
use ch02_two_threads::Transition;
use ch05_ref_kernel::fused::fused;
use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Table};
use linrec::contract::{self, Domain, Report, suspect};
use linrec::device::{Device, KernelEngine, Launched, Storage};
use linrec::kernels::{Algocode, ElementType, KernelChoice, Pass, TileConfig};
use linrec::reference::{self, Rounding};
use linrec::simt::{Access, Class, Counters};
use linrec::{Element, Engine, Error, Options};
use ndarray::{Array2, ArrayView2};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::exercises::{filled, requests_and_sectors, spread};
use crate::layout::shares;
use crate::levels::{LANES, scan_block, scan_thread, scan_tile};
use crate::stages::{self, CHOICE, STAGES, counted, outputs, stage};
use crate::watch::watch;
use pictures::{Deal, Rounds, Warps};

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("tile:4x256:0@{}", device.label()));
    layout(lesson)?;
    thread(lesson, &device)?;
    warp(lesson)?;
    block(lesson)?;
    stages(lesson, &device)?;
    bits(lesson, &device)?;
    limits(lesson)?;
    cost(lesson)?;
    speed(lesson)?;
    deals(lesson)?;
    mistake(lesson)
}

/// The length of the sequence in this step and in level 2: not a multiple of a warp.
const LAYOUT_STEPS: usize = 77;

/// Watches a warp load a tile.
fn layout(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("layout", "Who holds what")?;
    let watched = watch(&[1.0; LAYOUT_STEPS], &[0.5; LAYOUT_STEPS])?;
    let shares = shares(LAYOUT_STEPS, LANES);
    let tail = shares.iter().filter(|share| share.count < shares[0].count).count();
    lesson.say(&format!(
        "{LAYOUT_STEPS} steps on one warp, as the emulator saw them being loaded. A thread has registers for 4 steps. \
         {} threads get {} steps each; the last {tail}, the tail, get {}.",
        LANES - tail,
        shares[0].count,
        shares[LANES - 1].count,
    ));
    let mut table = Table::new(["thread", "first step", "steps", "registers without a step"]);
    for thread in [0, LANES - tail - 1, LANES - tail, LANES - 1] {
        let loaded = &watched.loaded[thread];
        let first = loaded.first().map_or(String::from("–"), usize::to_string);
        let (steps, free) = (loaded.len(), 4 - loaded.len());
        table.row([thread.to_string(), first, steps.to_string(), free.to_string()]);
    }
    lesson.table("layout.csv", Kind::Computed, &table)?;
    lesson.value("tail", tail, Kind::Computed);

    let mut holders = [0_usize; LAYOUT_STEPS];
    watched.loaded.iter().flatten().for_each(|&step| holders[step] += 1);
    let wrong = holders.iter().filter(|&&holders| holders != 1).count();
    lesson.check("steps that no thread or several threads load", wrong as f64, 0.0);
    let differ = watched.loaded.iter().zip(&shares);
    let differ = differ.filter(|(loaded, share)| !loaded.iter().copied().eq(share.steps())).count();
    lesson.check("threads that load other steps than `shares` says", differ as f64, 0.0);

    let svg =
        plot::grid(&[&Deal { loaded: watched.loaded, registers: 4, num_steps: LAYOUT_STEPS }], 1)?;
    lesson.figure("layout.svg", "Who holds what", Kind::Computed, &svg)
}

/// The length of the sequence: every thread of a warp has four steps.
const THREAD_STEPS: usize = 128;

/// Shows the values of the first two threads after level 1, and the outputs.
fn thread(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("thread", "Level 1: a thread")?;
    let inputs = Array2::from_shape_fn((1, THREAD_STEPS), |(_, l)| (l + 1) as f32);
    let coeffs = Array2::from_elem((1, THREAD_STEPS), 0.5_f32);
    let (x, c): (ArrayView2<f32>, ArrayView2<f32>) = (inputs.view(), coeffs.view());
    let (level_1, outputs) = (
        stages::outputs(device, Algocode::Thread, x, c)?,
        stages::outputs(device, Algocode::Block, x, c)?,
    );

    lesson.say(&format!(
        "{THREAD_STEPS} steps with inputs 1, 2, 3 … and all coefficients 1/2: four steps for each of 32 threads. These are \
         the first two. `states` are what the kernel writes with algocode 1, `outputs` with algocode 3.",
    ));
    let header = ["thread", "step", "input", "states", "coeffs", "outputs"];
    let mut table = Table::new(header);
    let mut off = 0.0_f32;
    for thread in 0..2 {
        let steps = 4 * thread..4 * thread + 4;
        let mut products = vec![0.5_f32; 4];
        scan_thread(&mut products, &mut inputs.as_slice().unwrap_or(&[])[steps.clone()].to_vec());
        for (step, product) in steps.zip(products) {
            let (state, output) = (level_1[[0, step]], outputs[[0, step]]);
            let before = if thread == 0 { 0.0 } else { outputs[[0, 4 * thread - 1]] };
            off = off.max((before * product + state - output).abs());
            table.row([
                thread.to_string(),
                step.to_string(),
                inputs[[0, step]].to_string(),
                state.to_string(),
                format!("1/{}", 1.0 / product),
                output.to_string(),
            ]);
        }
    }
    lesson.table("thread.csv", Kind::Computed, &table)?;
    lesson.check("outputs - (state before the thread * coeffs + states)", f64::from(off), 0.0);
    Ok(())
}

/// The lanes that are written out.
const SHOWN: [usize; 5] = [0, 1, 2, 3, 7];

/// Watches the shuffles of a warp.
fn warp(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("warp", "Level 2: the lanes of a warp")?;
    let watched = watch(&[1.0; LAYOUT_STEPS], &[0.5; LAYOUT_STEPS])?;
    // Before the first round, and after each of the five.
    let rounds = &watched.rounds;
    lesson.say(&format!(
        "The same {LAYOUT_STEPS} steps: all inputs 1, all coefficients 1/2. A lane holds a transition: what it multiplies \
         the state with, and what it adds. The product 2^-k says that it spans k steps. Here are some lanes in \
         every round, and in the figure all of them.",
    ));
    let header = ["".into(), "from below".into()].into_iter();
    let mut table = Table::new(header.chain(SHOWN.map(|lane| format!("lane {lane}"))));
    for (round, lanes) in rounds.iter().enumerate() {
        let name = if round == 0 { "level 1".to_owned() } else { format!("round {round}") };
        let reach = if round == 0 { "–".to_owned() } else { (1 << (round - 1)).to_string() };
        let shown = SHOWN.map(|lane| &lanes[lane]);
        let shown = shown.map(|lane| format!("2^-{}, {}", span(lane), lane.state));
        table.row([name, reach].into_iter().chain(shown));
    }
    lesson.table("rounds.csv", Kind::Computed, &table)?;

    let shares = shares(LAYOUT_STEPS, LANES);
    let last = rounds.last().map_or(&[][..], Vec::as_slice);
    let end = |lane: usize| shares[lane].steps().end;
    let wrong = (0..LANES).filter(|&lane| span(&last[lane]) != end(lane)).count();
    lesson.check("lanes that do not reach back to the first step", wrong as f64, 0.0);
    // 1 + 1/2 + 1/4 + … is 2 - 2^(1-k), which f32 represents exactly for the shown lanes.
    let shown = rounds.iter().flat_map(|lanes| SHOWN.map(|lane| lanes[lane]));
    let off = shown.map(|lane| f64::from((lane.state - (2.0 - 2.0 * lane.coeff)).abs()));
    lesson.check("states of those lanes off 2 - 2 * 2^-k", off.fold(0.0, f64::max), 0.0);
    lesson.value("rounds", rounds.len() - 1, Kind::Computed);
    let done =
        |round: usize| (0..LANES).filter(|&lane| span(&rounds[round][lane]) == end(lane)).count();
    lesson.value("done_after_1", done(1), Kind::Computed);
    lesson.value("done_after_3", done(3), Kind::Computed);

    let spans = rounds.iter().map(|lanes| lanes.iter().map(span).collect()).collect();
    let ends = (0..LANES).map(end).collect();
    let svg = plot::grid(&[&Rounds { spans, ends }], 1)?;
    lesson.figure("rounds.svg", "How far back a lane reaches", Kind::Computed, &svg)
}

/// Returns the number of steps that a transition spans if all coefficients are 1/2.
fn span(transition: &Transition<f32>) -> usize {
    -transition.coeff.log2().round() as usize
}

/// The length of the sequence: 232 threads have four steps, 24 have three.
const BLOCK_STEPS: usize = 1000;

/// Watches the warps of a block meet in shared memory.
fn block(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("block", "Level 3: the warps of a block")?;
    let (inputs, coeffs) = ([1.0_f32; BLOCK_STEPS], [0.99_f32; BLOCK_STEPS]);
    let watched = watch(&inputs, &coeffs)?;
    let states = scan_block(&watched.totals, 0.0);
    let (warps, threads) = (watched.totals.len(), watched.loaded.len());
    lesson.say(&format!(
        "{BLOCK_STEPS} steps on {threads} threads, all inputs 1, all coefficients 0.99. The last lane of each of the {warps} \
         warps writes the warp's transition to shared memory. After a barrier, every thread walks along them.",
    ));
    let header = ["warp", "steps", "coeff", "state", "before the warp", "after it"];
    let mut table = Table::new(header);
    let shares = shares(BLOCK_STEPS, threads);
    let mut last_steps = Vec::new();
    for (warp, total) in watched.totals.iter().enumerate() {
        let (first, last) = (shares[LANES * warp], shares[LANES * warp + LANES - 1]);
        last_steps.push(last.steps().end - 1);
        table.row([
            warp.to_string(),
            format!("{} to {}", first.begin, last.steps().end - 1),
            format!("{:.4}", total.coeff),
            format!("{:.4}", total.state),
            format!("{:.4}", states[warp]),
            format!("{:.4}", states[warp + 1]),
        ]);
    }
    lesson.table("block.csv", Kind::Computed, &table)?;
    let barriers = watched.arrivals as f64 / warps as f64 - 1.0;
    lesson.check("barriers of a warp beyond one", barriers.abs(), 0.0);

    // The state after a warp and the output of its last step are the same number, but rounded in
    // two ways.
    let rounding = Rounding { levels: Domain::tree_levels(BLOCK_STEPS), exp_ulps: 0.0 };
    let [x, c] = [&inputs, &coeffs].map(|array| ArrayView2::from_shape((1, BLOCK_STEPS), array));
    let bound = reference::forward_bound(x?, c?, &Options::default(), rounding)?;
    let off = last_steps.iter().zip(&states[1..]).map(|(&step, state)| {
        f64::from((watched.outputs[step] - state).abs()) / (2.0 * bound.outputs[[0, step]])
    });
    let off = off.fold(0.0, f64::max);
    lesson.check("states after the warps - outputs there, of what rounding allows", off, 1.0);

    let svg = plot::grid(&[&Warps { totals: watched.totals, states }], 1)?;
    lesson.figure("block.svg", "The carry across the warps", Kind::Computed, &svg)
}

/// An error of zero is drawn here, because a logarithmic axis cannot show zero.
const FLOOR: f64 = 1e-8;

/// Runs all stages on the same data.
fn stages(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("stages", "One level after the other")?;
    let mut rng = StdRng::seed_from_u64(60);
    let mut draw = |low: f32, high: f32| {
        Array2::from_shape_simple_fn((1, BLOCK_STEPS), || rng.random_range(low..high))
    };
    let (inputs, coeffs) = (draw(-1.0, 1.0), draw(0.98, 1.0));
    let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
    let exact = reference::forward(x, c, &options)?.outputs;
    let rounding = Rounding { levels: Domain::tree_levels(BLOCK_STEPS), exp_ulps: 0.0 };
    let bound = reference::forward_bound(x, c, &options, rounding)?.outputs;

    lesson.say(&format!(
        "{BLOCK_STEPS} steps with random inputs, coefficients in [0.98, 1). An output is right if its error is within the bound. \
         Counted for a warp: instructions, shuffles and barriers.",
    ));
    let header = [
        "algocode",
        "level",
        "right",
        "first wrong",
        "largest error",
        "instructions",
        "shuffles",
        "barriers",
    ];
    let mut table = Table::new(header);
    let mut errors =
        Chart::new("Error of each output").axes("step", "error (1e-8: none)").log_y(10.0);
    let mut first_wrongs = Vec::new();
    for (algocode, name) in Algocode::ALL.into_iter().zip(STAGES) {
        let outputs = outputs(device, algocode, x, c)?;
        let error: Vec<f64> =
            outputs.iter().zip(&exact).map(|(&y, exact)| (f64::from(y) - exact).abs()).collect();
        let wrong: Vec<usize> = (0..BLOCK_STEPS).filter(|&l| error[l] > bound[[0, l]]).collect();
        let launched = counted(stage(algocode), (1, BLOCK_STEPS))?;
        let counters = launched.counters().cloned().unwrap_or_default();
        let per_warp = |count: u64| format!("{:.0}", count as f64 / 8.0);
        table.row([
            algocode.to_string(),
            name.to_string(),
            format!("{} of {BLOCK_STEPS}", BLOCK_STEPS - wrong.len()),
            wrong.first().map_or(String::from("–"), usize::to_string),
            format!("{:.1e}", error.iter().fold(0.0_f64, |largest, &error| largest.max(error))),
            per_warp(counters.instructions),
            per_warp(counters.class(Class::Shuffle)),
            counters.barriers.to_string(),
        ]);
        first_wrongs.push(wrong.first().copied());
        let points = error.iter().enumerate().map(|(l, &error)| (l as f64, error.max(FLOOR)));
        errors = errors.line(&format!("algocode {algocode}"), points);
        lesson.value(
            &format!("instructions_{algocode}"),
            per_warp(counters.instructions),
            Kind::Computed,
        );
    }
    lesson.table("stages.csv", Kind::Computed, &table)?;
    let expected = [Some(1), Some(4), Some(128), None];
    let off = first_wrongs.iter().zip(expected).filter(|(found, expected)| **found != *expected);
    lesson.check("stages whose first wrong step is not 1, 4, 128 or none", off.count() as f64, 0.0);

    let svg = plot::grid(&[&shape(device)?, &errors], 1)?;
    lesson.figure("stages.svg", "The four stages", Kind::Computed, &svg)
}

/// Draws the stages' outputs for constant inputs, which make the parts visible.
fn shape(device: &Device) -> Result<Chart, Error> {
    let (x, c) = (Array2::ones((1, BLOCK_STEPS)), Array2::from_elem((1, BLOCK_STEPS), 0.99_f32));
    let mut chart = Chart::new("Outputs for inputs 1 and coefficients 0.99").axes("step", "output");
    for algocode in Algocode::ALL {
        let outputs = outputs(device, algocode, x.view(), c.view())?;
        let points = outputs.iter().enumerate().map(|(l, &y)| (l as f64, f64::from(y)));
        chart = chart.line(&format!("algocode {algocode}"), points.collect::<Vec<_>>());
    }
    Ok(chart)
}

/// The longest sequence of the test contract that runs here; the tests run all of them.
const MAX_LEN: usize = 257;

/// Compares bit by bit, and runs the kernel through the test contract.
fn bits(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("bits", "Bit by bit")?;
    let shape @ (num_seqs, seq_len) = lesson.size((100, 1000), (13_200, 1000));
    lesson.say(&format!(
        "{num_seqs} sequences of {seq_len}, coefficients in [0.9, 1). `scan_tile` are the three levels in Rust, in the \
         kernel's order; `fused` is the loop that has the bits of chapter 5's kernel.",
    ));
    let header = ["element", "outputs", "unlike scan_tile", "unlike fused", "error / bound"];
    let mut table = Table::new(header);
    let singles = compare::<f32>(device, shape, &mut table)?;
    let doubles = compare::<f64>(device, shape, &mut table)?;
    lesson.table("bits.csv", Kind::Computed, &table)?;
    let unlike = singles.unlike_levels + doubles.unlike_levels;
    lesson.check("numbers that differ from scan_tile", unlike as f64, 0.0);
    lesson.check("largest error / bound", singles.worst.max(doubles.worst), 1.0);
    let outputs = (num_seqs * seq_len) as f64;
    let share = 100.0 * singles.unlike_fused as f64 / outputs;
    lesson.value("unlike_fused", format!("{share:.0} %"), Kind::Computed);
    lesson.value("mean_tile", format!("{:.2e}", singles.means[0]), Kind::Computed);
    lesson.value("mean_fused", format!("{:.2e}", singles.means[1]), Kind::Computed);
    if !device.is_simt() {
        let unlike = singles.unlike_emulator + doubles.unlike_emulator;
        lesson.check("numbers that differ between GPU and emulator", unlike as f64, 0.0);
    }

    lesson.say(&format!("The contract, up to {MAX_LEN} steps here:"));
    let mut table = Table::new(["element", "cases", "error / bound", "failed"]);
    let reports = [contract_of::<f32>(device)?, contract_of::<f64>(device)?];
    for report in &reports {
        table.row([
            report.element.to_owned(),
            report.cases.to_string(),
            format!("{:.2}", report.worst),
            report.failures.len().to_string(),
        ]);
    }
    lesson.table("contract.csv", Kind::Computed, &table)?;
    let failed: usize = reports.iter().map(|report| report.failures.len()).sum();
    lesson.check("the contract, cases that failed", failed as f64, 0.0);
    Ok(())
}

/// The numbers of outputs in which the kernel differs from other computations.
struct Unlike {
    unlike_levels: usize,
    unlike_fused: usize,
    unlike_emulator: usize,
    /// The kernel's largest error, in units of its bound.
    worst: f64,
    /// The mean error of the kernel, and of the loop.
    means: [f64; 2],
}

fn compare<T: Element + Storage<Accum = T>>(
    device: &Device,
    shape @ (_, seq_len): (usize, usize),
    table: &mut Table,
) -> lesson::Result<Unlike> {
    let mut rng = StdRng::seed_from_u64(61);
    let mut draw = |low: f64, high: f64| {
        Array2::from_shape_simple_fn(shape, || T::from_real(rng.random_range(low..high)))
    };
    let (inputs, coeffs) = (draw(-1.0, 1.0), draw(0.9, 1.0));
    let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
    let run = |device: &Device| KernelEngine::<T>::new(device, CHOICE)?.forward(x, c, &options);
    let kernel = run(device)?.outputs;

    let threads = CHOICE.geometry(T::ELEMENT, Pass::Forward, 1, seq_len as u64).threads as usize;
    let shares = shares(seq_len, threads);
    let rows = inputs.rows().into_iter().zip(coeffs.rows());
    let levels = rows.flat_map(|(x, c)| scan_tile(&x.to_vec(), &c.to_vec(), T::zero(), &shares, 4));
    let once = fused(x, c, &options)?.outputs;
    let exact = reference::forward(x, c, &options)?.outputs;
    let rounding = Rounding { levels: Domain::tree_levels(seq_len), exp_ulps: 0.0 };
    let bound = reference::forward_bound(x, c, &options, rounding)?.outputs;
    let errors = |outputs: &Array2<T>| -> Vec<f64> {
        let pairs = outputs.iter().zip(&exact);
        pairs.map(|(y, exact)| (Element::widen(*y) - *exact).modulus()).collect()
    };
    let mean = |outputs: &Array2<T>| errors(outputs).iter().sum::<f64>() / outputs.len() as f64;
    let of_bound = errors(&kernel).into_iter().zip(&bound).map(|(error, bound)| error / bound);
    let unlike = |outputs: &mut dyn Iterator<Item = T>| {
        kernel.iter().zip(outputs).filter(|(a, b)| **a != *b).count()
    };
    let found = Unlike {
        unlike_levels: unlike(&mut levels.into_iter()),
        unlike_fused: unlike(&mut once.iter().copied()),
        unlike_emulator: unlike(&mut run(&Device::simt())?.outputs.iter().copied()),
        worst: of_bound.fold(0.0, f64::max),
        means: [&kernel, &once].map(mean),
    };
    table.row([
        T::NAME.to_owned(),
        kernel.len().to_string(),
        found.unlike_levels.to_string(),
        found.unlike_fused.to_string(),
        format!("{:.3}", found.worst),
    ]);
    Ok(found)
}

fn contract_of<T: Element + Storage<Accum = T>>(device: &Device) -> lesson::Result<Report> {
    let engine = KernelEngine::<T>::new(device, CHOICE)?;
    let domain = Domain { max_len: MAX_LEN, ..engine.domain() };
    Ok(contract::run::<T>(&engine, &domain))
}

/// The 32-bit registers of an SM, on all architectures from sm_50 on.
const REGISTERS: u32 = 65_536;
/// The largest number of registers per thread that an instruction can address.
const OF_A_THREAD: u32 = 255;

/// Shows the error for one step too many, and the number of registers.
fn limits(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("limits", "Where the tile ends")?;
    let engine = KernelEngine::<f32>::new(&Device::simt(), CHOICE)?;
    let most = TileConfig::DEFAULT.max_tile() as usize;
    let forward = |seq_len: usize| {
        let ones = Array2::<f32>::ones((1, seq_len));
        engine.forward(ones.view(), ones.view(), &Options::default())
    };
    let last = forward(most)?.final_state[0];
    lesson.say(&format!(
        "The sum of {most} ones is {last}. One step more, and the library says, before anything is launched:",
    ));
    let refused = forward(most + 1).err().map(|error| error.to_string());
    lesson.quote(refused.as_deref().unwrap_or("nothing"));
    let off = f64::from((last - most as f32).abs());
    lesson.check("the sum of the longest tile, error", off, 0.0);
    let unnoticed = refused.iter().all(|sentence| !sentence.contains("holds 1024 at most"));
    lesson.check("longer sequences that were not refused", f64::from(u8::from(unnoticed)), 0.0);

    lesson.say(&format!(
        "A larger tile takes more elements for each thread, or more threads. An SM has {REGISTERS} registers; \
         inputs and coefficients of f32 take two for each element.",
    ));
    let header = [
        "elements",
        "threads",
        "largest tile",
        "registers for them",
        "registers of a thread, at most",
    ];
    let mut table = Table::new(header);
    for (elems, threads) in [(4, 256), (4, 1024), (8, 1024), (16, 1024), (32, 1024), (32, 512)] {
        table.row([
            elems.to_string(),
            threads.to_string(),
            (elems * threads).to_string(),
            (2 * elems).to_string(),
            (REGISTERS / threads).min(OF_A_THREAD).to_string(),
        ]);
    }
    lesson.table("tiles.csv", Kind::Computed, &table)?;

    let launched = counted(CHOICE, (1, most))?;
    let counters = launched.counters().cloned().unwrap_or_default();
    let local = counters.class(Class::Local);
    lesson.say(
        "The arrays of our kernel are registers, all of them: no instruction goes to the memory for what does not fit.",
    );
    lesson.check("accesses to local memory", local as f64, 0.0);
    Ok(())
}

/// The number of sequences in a launch.
const NUM_SEQS: usize = 128;
/// The length of the sequences in the table.
const SEQ_LEN: usize = 1000;

/// Counts sectors, instructions and warps of both kernels.
fn cost(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("cost", "Beside one thread per sequence")?;
    lesson.say(&format!(
        "{NUM_SEQS} sequences of {SEQ_LEN} in f32, forward, counted in the emulator:"
    ));
    let reference = KernelChoice::default();
    let header = ["", "one thread per sequence", "one block per sequence"];
    let mut table = Table::new(header);
    let [of_ref, of_tile] = [reference, CHOICE].map(Cost::of);
    let (of_ref, of_tile) = (of_ref?, of_tile?);
    let mut row = |name: &str, count: fn(&Cost) -> String| {
        table.row([name.to_owned(), count(&of_ref), count(&of_tile)]);
    };
    row("warps", |cost| cost.warps.to_string());
    row("load requests", |cost| cost.counters.requests(Access::GlobalLoad).to_string());
    row("sectors of them", |cost| cost.counters.sectors(Access::GlobalLoad).to_string());
    row("sectors per request", |cost| format!("{:.1}", per_request(&cost.counters)));
    row("instructions of one warp", |cost| format!("{:.0}", cost.chain()));
    row("instructions of all warps", |cost| cost.counters.instructions.to_string());
    lesson.table("cost.csv", Kind::Computed, &table)?;
    lesson.value("shorter", format!("{:.0}", of_ref.chain() / of_tile.chain()), Kind::Computed);
    let more = of_tile.counters.instructions as f64 / of_ref.counters.instructions as f64;
    lesson.value("more_work", format!("{more:.0}"), Kind::Computed);
    lesson.value("tile_sectors", format!("{:.1}", per_request(&of_tile.counters)), Kind::Computed);
    lesson.value("ref_sectors", format!("{:.1}", per_request(&of_ref.counters)), Kind::Computed);
    // Consecutive lanes are four elements of four bytes apart, so two lanes share a sector.
    let excess = per_request(&of_tile.counters) - 16.0;
    lesson.check("sectors per request of the tile beyond 16", excess, 0.0);

    // An H200: 132 SMs with 64 warp slots each.
    let (sequences, capacity) = (100 * 132, 132 * 64);
    let warps = sequences * of_tile.warps / NUM_SEQS as u64;
    lesson.say(&format!(
        "With the {sequences} sequences of the benchmarks there are {warps} warps instead of {}. An H200 holds {capacity} at a \
         time.",
        u64::div_ceil(sequences, 32),
    ));
    lesson.value("tile_warps", warps, Kind::Computed);
    lesson.value("ref_warps", u64::div_ceil(sequences, 32), Kind::Computed);
    lesson.value("room", capacity, Kind::Computed);

    let mut points = Vec::new();
    for seq_len in (8..=1024).step_by(8) {
        let launched = counted(CHOICE, (1, seq_len))?;
        points.push((seq_len as f64, per_request(&counters(&launched))));
    }
    let chart = Chart::new("Sectors per load request")
        .axes("length of a row", "sectors per request")
        .y_range(0.0, 36.0)
        .line("tile: one block per row", points)
        .color(plot::kernels::color("tile"))
        .dashed("ref: one thread per row", [(8.0, 32.0), (1024.0, 32.0)])
        .color(plot::kernels::color("ref"))
        .dashed("coalesced", [(8.0, 4.0), (1024.0, 4.0)])
        .color(plot::TEXT);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("lengths.svg", "Sectors per request against length", Kind::Computed, &svg)
}

/// The warps and counters of a launch.
struct Cost {
    warps: u64,
    counters: Counters,
}

impl Cost {
    fn of(choice: KernelChoice) -> Result<Cost, linrec::Error> {
        let geometry =
            choice.geometry(ElementType::F32, Pass::Forward, NUM_SEQS as u64, SEQ_LEN as u64);
        let warps = geometry.blocks * u64::from(geometry.threads / 32);
        Ok(Cost { warps, counters: counters(&counted(choice, (NUM_SEQS, SEQ_LEN))?) })
    }

    /// Returns the number of instructions per warp.
    fn chain(&self) -> f64 {
        self.counters.instructions as f64 / self.warps as f64
    }
}

fn counters(launched: &Launched) -> Counters {
    launched.counters().cloned().unwrap_or_default()
}

fn per_request(counters: &Counters) -> f64 {
    let requests = counters.requests(Access::GlobalLoad).max(1);
    counters.sectors(Access::GlobalLoad) as f64 / requests as f64
}

/// The file with every measurement: see `examples/excerpt.rs`.
const RECORD: &str = "speed.csv";
const H200: &str = include_str!("../results/h200/tables.json");

/// The engines of the record, with their names here.
const ENGINES: [(&str, &str); 3] =
    [("roof", "roof"), ("ref:64", "thread per sequence"), ("tile:4x256:0", "one tile")];

/// Shows medians of the measurements, as ratios to the roof.
fn speed(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("speed", "What an H200 says")?;
    let rows: Vec<Row> = csv::read(&recorded::table(H200, RECORD)?)?;
    let runs: Runs = rows.iter().collect();
    let first = rows.first().ok_or("the record is empty")?;
    let (machine, num_seqs) = (&first.machine, first.num_seqs);
    let median = |engine: &str, seq_len: u32| -> f64 {
        runs.median(engine, seq_len as usize).map_or(f64::NAN, |run| run.gb_per_s)
    };
    let lengths: Vec<u32> = runs.lengths().into_iter().map(|len| len as u32).collect();
    let measured = runs
        .engines()
        .into_iter()
        .flat_map(|engine| runs.lengths().into_iter().map(move |len| (engine, len)));
    let measured = measured.map(|(engine, len)| runs.count(engine, len)).filter(|&count| count > 0);
    let measured = measured.min().unwrap_or(0);
    lesson.say(&format!(
        "From the record of an {machine}: {num_seqs} sequences in f32, forward, medians of {measured} runs with cold caches. GB/s \
         counts 12 bytes for each element; the roof adds two arrays.",
    ));
    let header = ["length", "roof, GB/s", "thread per sequence / roof", "one tile / roof"];
    let mut table = Table::new(header);
    let ratio = |engine: &str, seq_len: u32| median(engine, seq_len) / median("roof", seq_len);
    for &seq_len in &lengths {
        table.row([
            seq_len.to_string(),
            format!("{:.0}", median("roof", seq_len)),
            format!("{:.2}", ratio(ENGINES[1].0, seq_len)),
            format!("{:.2}", ratio(ENGINES[2].0, seq_len)),
        ]);
    }
    lesson.table("speed.csv", Kind::Computed, &table)?;
    for seq_len in [16, 256, 1000] {
        for ((engine, _), key) in ENGINES[1..].iter().zip(["ref", "tile"]) {
            let text = format!("{:.2}", ratio(engine, seq_len));
            lesson.value(&format!("{key}_speed_{seq_len}"), text, Kind::Computed);
        }
    }
    let gain = median(ENGINES[2].0, 1000) / median(ENGINES[1].0, 1000);
    lesson.value("gain_1000", format!("{gain:.0}"), Kind::Computed);

    let points = |engine: &str| -> Vec<(f64, f64)> {
        lengths.iter().map(|&seq_len| (f64::from(seq_len), ratio(engine, seq_len))).collect()
    };
    let mut chart = Chart::new("Speed beside the roof, on an H200")
        .axes("length of a row", "kernel / roof")
        .log_x(2.0)
        .y_range(0.0, 1.8);
    for (engine, name) in &ENGINES[1..] {
        chart = chart.measured(name, points(engine)).color(plot::kernels::color(engine));
    }
    let roof = lengths.iter().map(|&seq_len| (f64::from(seq_len), median("roof", seq_len)));
    chart = bench::figure::with_roof(chart, roof, 1.8);
    let svg = plot::svg(&[&chart])?;
    lesson.figure("speed.svg", "Speed beside the roof", Kind::Computed, &svg)
}

fn deals(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("deals", "Other ways to deal out a tile")?;
    lesson.say(
        "Requests and sectors of one array, if the threads with fewer steps are the last ones (the kernel), if they \
         are spread over the block, and if every thread is filled before the next one begins:",
    );
    let header = ["steps", "threads", "last ones", "spread", "filled"];
    let mut table = Table::new(header);
    let mut lost = 0;
    for steps in [77, 200, 260, 1000, 1001, 1024] {
        let threads =
            CHOICE.geometry(ElementType::F32, Pass::Forward, 1, steps as u64).threads as usize;
        let deals = [shares(steps, threads), spread(steps, threads), filled(steps, threads, 4)];
        let costs = deals.map(|deal| {
            lost += steps - deal.iter().map(|share| share.count).sum::<usize>();
            let (requests, sectors) = requests_and_sectors(&deal, 4);
            format!("{requests} / {sectors}")
        });
        table.row([steps.to_string(), threads.to_string()].into_iter().chain(costs));
    }
    lesson.table("deals.csv", Kind::Computed, &table)?;
    lesson.check("steps without a thread", lost as f64, 0.0);
    Ok(())
}

fn mistake(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("mistake", "A mistake, found")?;
    let mut missed = 0;
    for name in suspect::names("linrec_tile.cu") {
        lesson.say(&format!("kernels/broken/{name}.cu:"));
        let (engine, domain) = suspect::load(&format!("broken/{name}"), CHOICE)?;
        match suspect::examine(&engine, &domain) {
            Some(finding) => {
                lesson.quote(&finding.to_string());
                lesson.value(&format!("found_{name}"), &finding, Kind::Computed);
            }
            None => missed += 1,
        }
    }
    lesson
        .say("The emulator has no objection: no rule is broken. It is the contract that finds it.");
    lesson.check("planted mistakes that nothing finds", f64::from(missed), 0.0);
    Ok(())
}
