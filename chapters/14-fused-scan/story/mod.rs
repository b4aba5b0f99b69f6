//! The run of the chapter: it computes, checks and records every number that the page quotes.
//!
//! The emulator counts bytes and instructions of every rung once, at the start, and several steps
//! share these counts. Measured times come from records, by `measured`; `pictures` draws the two
//! figures. The order is the page's: bytes, errors, instructions, roofs, the life of a tile,
//! exponentials, gradients, chunks, training, mistakes.

mod measured;
mod pictures;

use ch13_mamba::block::Weights;
use ch13_mamba::on_device::{Scan, Traffic};
use ch13_mamba::training::{Plan, Trained};
use lesson::{Kind, Lesson, Table, broken};
use linrec::device::{Choice, Device, Exponential};
use linrec::simt::{Class, special};
use ndarray::Array1;

use crate::backward::{self, NAMES};
use crate::chunks;
use crate::counts::Counted;
use crate::ladder::{Kernel, Rung};
use crate::life::{self, Act};
use crate::problem::{Problem, STATES, Sizes, relative, worst};
use crate::roofs::{Gpu, Roofs, Work, roofs};
use crate::suspect;
use crate::training::Fused;

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.engine("block_scan, lane, quad, shipped@simt");
    let counted = Rung::ALL
        .into_iter()
        .map(|rung| Ok((rung, Counted::of(rung, &counted_problem())?)))
        .collect::<lesson::Result<Vec<_>>>()?;
    bytes(lesson, &counted)?;
    right(lesson)?;
    instructions(lesson, &counted)?;
    least_times(lesson, &counted)?;
    tiles(lesson)?;
    measured::forward(lesson)?;
    measured::ladder(lesson)?;
    exponentials(lesson, &counted)?;
    gradients(lesson)?;
    measured::backward(lesson)?;
    chunks(lesson)?;
    training(lesson)?;
    mistakes(lesson)
}

/// Draws the problem of the counts: one block of the library's kernel, for 16 tiles.
fn counted_problem() -> Problem {
    Problem::draw(Sizes { batch: 1, channels: 64, len: 512 }, false, 14)
}

fn of(counted: &[(Rung, Counted)], rung: Rung) -> lesson::Result<&Counted> {
    let found = counted.iter().find(|(other, _)| *other == rung);
    found.map(|(_, counted)| counted).ok_or_else(|| "a rung has not been counted".into())
}

fn bytes(lesson: &mut Lesson, counted: &[(Rung, Counted)]) -> lesson::Result {
    lesson.step("bytes", "From 404 bytes to 16")?;
    let unfused = Traffic::of_passes(STATES, true, true, 4);
    let unfused: usize = unfused.iter().map(Traffic::all).sum();
    let fused = Traffic::fused(true, 4).all();
    let sizes = counted_problem().sizes;
    let shipped = of(counted, Rung::Shipped)?;
    lesson.say(&format!(
        "The three kernels of chapter 13 move {unfused} bytes for each channel and step, in f32 with {STATES} states, D and z. \
         The library's kernel, over {} channels and {} steps in the emulator: what it asked the memory for, array by array:",
        sizes.channels, sizes.len,
    ));
    let mut table =
        Table::new(["array", "bytes", "bytes touched", "bytes asked for", "for each output"]);
    let mut more = 0.0_f64;
    for array in &shipped.arrays {
        let each = array.asked as f64 / sizes.elements() as f64;
        if ["u", "delta", "z", "B", "C", "out"].contains(&array.name) {
            more = more.max((array.asked as f64 / array.bytes as f64 - 1.0).abs());
            more = more.max((array.touched as f64 / array.bytes as f64 - 1.0).abs());
        }
        let numbers = [array.bytes, array.touched, array.asked].map(|bytes| bytes.to_string());
        table.row([array.name.to_owned()].into_iter().chain(numbers).chain([format!("{each:.2}")]));
    }
    lesson.table("bytes.csv", Kind::Computed, &table)?;
    lesson.check("bytes with an axis of time that are moved more than once, or never", more, 0.0);
    let own = shipped.arrays.iter().filter(|array| array.bytes == 4 * sizes.elements());
    let own = own.map(|array| array.asked).sum::<usize>() / sizes.elements();
    lesson.check("bytes for each output beyond u, delta, z and out", (own - fused) as f64, 0.0);
    lesson.value("unfused_bytes", unfused, Kind::Computed);
    lesson.value("fused_bytes", fused, Kind::Computed);
    lesson.value("shipped_bytes", format!("{:.1}", shipped.bytes()), Kind::Computed);
    Ok(())
}

fn right(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("right", "Four ways to one function")?;
    // Partly filled blocks and tiles, and decays near one.
    let sizes = Sizes { batch: 2, channels: 70, len: 300 };
    let problem = Problem::draw(sizes, true, 15);
    lesson.say(&format!(
        "{} sequences of {} channels and {} steps, with decays near one. The largest error as a part of its bound, and as a \
         part of the largest output:",
        sizes.batch, sizes.channels, sizes.len,
    ));
    let mut table =
        Table::new(["kernel", "largest error / bound", "largest error / largest output"]);
    let judge = |rung: Rung, problem: &Problem| -> lesson::Result<(f64, f64)> {
        let (out, _) = Kernel::new(&Device::simt(), rung)?.compute(problem)?;
        let expected = problem.outputs(rung.order(sizes.len));
        Ok((worst(&out, &expected), relative(&out, &expected)))
    };
    let mut share = 0.0_f64;
    for rung in Rung::ALL {
        let (of_bound, of_largest) = judge(rung, &problem)?;
        share = share.max(of_bound);
        match rung {
            Rung::Shipped => {
                lesson.value("fast_error", format!("{of_largest:.1e}"), Kind::Computed)
            }
            Rung::Exact => lesson.value("exact_error", format!("{of_largest:.1e}"), Kind::Computed),
            _ => {}
        }
        table.row([rung.name().to_owned(), format!("{of_bound:.3}"), format!("{of_largest:.1e}")]);
    }
    lesson.table("right.csv", Kind::Computed, &table)?;
    lesson.check("largest error / bound", share, 1.0);
    let ordinary = Problem::draw(sizes, false, 16);
    let (fast, exact) = (judge(Rung::Shipped, &ordinary)?.1, judge(Rung::Exact, &ordinary)?.1);
    lesson.say(&format!(
        "With decays of all sizes, the shipped kernel is off by {fast:.1e} of the largest output, and by {exact:.1e} where it is \
         exact.",
    ));
    lesson.check("largest error with decays of all sizes / largest output", fast.max(exact), 1e-6);
    lesson.value("ordinary_error", format!("{fast:.0e}"), Kind::Computed);
    Ok(())
}

fn instructions(lesson: &mut Lesson, counted: &[(Rung, Counted)]) -> lesson::Result {
    lesson.step("instructions", "What each rung does")?;
    let sizes = counted_problem().sizes;
    lesson.say(&format!(
        "{} channels, {} steps. Bytes of global memory that are asked for, for each output; and for each state of each \
         output: instructions, powers of two and reciprocals among them, shuffles, passes over shared memory:",
        sizes.channels, sizes.len,
    ));
    let header = ["kernel", "bytes", "instructions", "powers", "shuffles", "shared memory"];
    let mut table = Table::new(header);
    for (rung, counted) in counted {
        let (name, bytes) = (rung.name(), counted.bytes());
        let each = [
            counted.instructions(),
            counted.class(Class::Special),
            counted.class(Class::Shuffle),
            counted.shared(),
        ];
        let cells = each.map(|each| format!("{each:.2}"));
        table.row([name.to_owned(), format!("{bytes:.1}")].into_iter().chain(cells));
        let key = name.replace(", ", "_");
        lesson.value(&format!("{key}_bytes_asked"), format!("{bytes:.0}"), Kind::Computed);
        lesson.value(&format!("{key}_instructions"), format!("{:.1}", each[0]), Kind::Computed);
        lesson.value(&format!("{key}_powers"), format!("{:.2}", each[1]), Kind::Computed);
        lesson.value(&format!("{key}_shuffles"), format!("{:.2}", each[2]), Kind::Computed);
        lesson.value(&format!("{key}_shared"), format!("{:.2}", each[3]), Kind::Computed);
    }
    lesson.table("instructions.csv", Kind::Computed, &table)
}

/// The size of the scan for which the roofs are computed.
const LARGE: Sizes = Sizes { batch: 8, channels: 2048, len: 16384 };

/// The name of a rung and its roofs.
type OfRung = (&'static str, Roofs);

fn least_times(lesson: &mut Lesson, counted: &[(Rung, Counted)]) -> lesson::Result {
    lesson.step("roofs", "Three roofs")?;
    let Sizes { batch, channels, len } = LARGE;
    let outputs = LARGE.elements() as f64;
    lesson.say(&format!(
        "An H200 by its data sheet: {} SMs of {} GHz, {} GB/s. The least ms for {batch} x {channels} channels of {len} steps, \
         from what was counted: to move the bytes that have to be moved, to compute powers and reciprocals, 16 in a clock of \
         an SM, and to issue all instructions, of which a power takes four places. And how many warps there are for each of \
         the {} schedulers:",
        Gpu::H200.sms,
        Gpu::H200.clock_ghz,
        Gpu::H200.gb_per_s,
        4.0 * Gpu::H200.sms,
    ));
    let header = ["kernel", "memory", "special functions", "issue", "binding", "warps"];
    let mut table = Table::new(header);
    let mut all = Vec::new();
    let unfused = Traffic::of_passes(STATES, true, true, 4);
    let unfused = unfused.iter().map(Traffic::all).sum::<usize>() as f64;
    let nothing = Work { bytes: unfused, special: 0.0, instructions: 0.0 };
    all.push(("unfused", roofs(&Gpu::H200, &nothing, outputs)));
    for (rung, counted) in counted {
        let states = STATES as f64;
        let work = Work {
            bytes: Traffic::fused(true, 4).all() as f64,
            special: states * counted.class(Class::Special),
            instructions: states * counted.instructions(),
        };
        all.push((rung.name(), roofs(&Gpu::H200, &work, outputs)));
    }
    for (name, roofs) in &all {
        let ms = |ms: f64| if ms > 0.0 { format!("{ms:.2}") } else { String::from("–") };
        let cells = [ms(roofs.memory), ms(roofs.special), ms(roofs.issue)];
        let rung = Rung::ALL.into_iter().find(|rung| rung.name() == *name);
        let warps = rung.map(|rung| rung.warps(LARGE) as f64 / (4.0 * Gpu::H200.sms));
        let warps = warps.map_or(String::from("–"), |warps| format!("{warps:.2}"));
        let last = [roofs.binding().0.to_owned(), warps.clone()];
        table.row([(*name).to_owned()].into_iter().chain(cells).chain(last));
        let key = name.replace(", ", "_");
        lesson.value(&format!("{key}_warps"), warps, Kind::Computed);
        lesson.value(&format!("{key}_memory_ms"), format!("{:.2}", roofs.memory), Kind::Computed);
        lesson.value(&format!("{key}_special_ms"), format!("{:.2}", roofs.special), Kind::Computed);
        lesson.value(&format!("{key}_issue_ms"), format!("{:.2}", roofs.issue), Kind::Computed);
    }
    lesson.table("roofs.csv", Kind::Computed, &table)?;
    // Four multiply-adds and products and one power for each state, and nothing else.
    let bare = Work { bytes: 0.0, special: STATES as f64, instructions: 5.0 * STATES as f64 };
    let bare = roofs(&Gpu::H200, &bare, outputs).issue;
    lesson.value("bare_issue_ms", format!("{bare:.2}"), Kind::Computed);
    let marks = measured::Marks::read()?;
    for (name, roofs) in all.iter().filter(|(name, _)| *name != "unfused") {
        measured::part_of_issue(lesson, name, roofs.issue)?;
    }
    measured::assembled(lesson, outputs)?;
    let svg = pictures::least_times(&all, &marks)?;
    lesson.figure("roofs.svg", "The three roofs of each rung", Kind::Computed, &svg)
}

/// The number of tiles in the picture.
const TILES: usize = 8;

fn tiles(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("tiles", "The life of a tile")?;
    let actions = life::of(TILES)?;
    lesson.say(
        "A block of the library's kernel, from the emulator's trace. A turn is what lies between two barriers; in which turn a \
         warp that helps sends a tile of u to shared memory, makes it ready, and stores its outputs; and in which a warp that \
         computes walks it:",
    );
    let mut table = Table::new(["tile", "sent", "made ready", "walked", "stored"]);
    let mut off = 0;
    for tile in 0..TILES {
        let turn = |act| {
            let found = actions.iter().find(|action| (action.tile, action.act) == (tile, act));
            found.map(|action| action.turn)
        };
        let turns = Act::ALL.map(turn);
        let expected = [-2, -1, 0, 1].map(|turn| Some(turn + tile as i64));
        off += turns.iter().zip(expected).filter(|(turn, expected)| *turn != expected).count();
        let cells = turns.map(|turn| turn.map_or(String::from("–"), |turn| turn.to_string()));
        table.row([tile.to_string()].into_iter().chain(cells));
    }
    lesson.table("tiles.csv", Kind::Computed, &table)?;
    lesson.check("actions outside of their turn", off as f64, 0.0);
    let svg = pictures::tiles(&actions, TILES)?;
    lesson.figure("tiles.svg", "The life of tiles", Kind::Computed, &svg)
}

fn exponentials(lesson: &mut Lesson, counted: &[(Rung, Counted)]) -> lesson::Result {
    lesson.step("exponentials", "Two exponentials")?;
    let problem = counted_problem();
    let expected = problem.outputs(Rung::Shipped.order(problem.sizes.len));
    lesson.say(
        "The library's kernel with the instruction ex2, and with a polynomial in its place. For each state of each output, \
         and the largest error as a part of the largest output:",
    );
    let mut table = Table::new([
        "exponential",
        "instructions",
        "powers",
        "places",
        "largest error",
        "same bits",
    ]);
    let mut places_of = Vec::new();
    for (rung, name, bits) in
        [(Rung::Shipped, "fast", "on each device"), (Rung::Exact, "exact", "on all devices")]
    {
        let counted = of(counted, rung)?;
        let (out, _) = Kernel::new(&Device::simt(), rung)?.compute(&problem)?;
        let (all, special) = (counted.instructions(), counted.class(Class::Special));
        let places = all + 3.0 * special;
        places_of.push(places);
        let error = relative(&out, &expected);
        let cells = [all, special, places].map(|number| format!("{number:.2}"));
        let last = [format!("{error:.1e}"), bits.to_owned()];
        table.row([name.to_owned()].into_iter().chain(cells).chain(last));
        lesson.value(&format!("{name}_places"), format!("{places:.1}"), Kind::Computed);
    }
    lesson.table("exponentials.csv", Kind::Computed, &table)?;
    // Errors of 2^x for x evenly from -0.01 to -0.001.
    let biases = (0..1 << 16).map(|i| -0.001 - 0.009 * i as f32 / 65536.0).map(|x| {
        let exact = f64::from(x).exp2();
        (f64::from(f32::from_bits(special::ex2(x.to_bits(), true))) / exact - 1.0) * 2_f64.powi(24)
    });
    let bias = biases.sum::<f64>() / 65536.0;
    lesson.say(&format!(
        "On average the instruction is off by {bias:.2} units of 2^-24 for powers between -0.01 and -0.001: its errors do not \
         cancel.",
    ));
    lesson.value("fast_bias", format!("{:.1}", -bias), Kind::Computed);
    if let [fast, exact] = places_of[..] {
        lesson.value("places_ratio", format!("{:.2}", fast / exact), Kind::Computed);
    }
    Ok(())
}

fn gradients(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("gradients", "Backward")?;
    let problem = Problem::draw(Sizes { batch: 2, channels: 150, len: 64 }, false, 16);
    let d_out = Problem::draw(problem.sizes, false, 17).u;
    let exact = backward::exact(&problem, &d_out)?;
    let launches = [1, 2, 5]
        .map(|threads| backward::with_threads(threads, Exponential::Fast, &problem, &d_out));
    let [one, two, five] = launches;
    let one = one?;
    let differ = [two?, five?].map(|other| {
        one.bits().iter().zip(other.bits()).filter(|(one, other)| **one != *other).count()
    });
    let Sizes { batch, channels, len } = problem.sizes;
    lesson.say(&format!(
        "{batch} x {channels} channels of {len} steps. The largest error of each gradient as a part of its largest value, \
         beside chapter 13's gradients in double precision:",
    ));
    let mut table = Table::new(["gradient", "numbers", "largest error"]);
    let mut largest = 0.0_f64;
    let errors = backward::relative(&one, &exact);
    for ((name, gradient), error) in NAMES.into_iter().zip(&one.gradients).zip(errors) {
        largest = largest.max(error);
        table.row([name.to_owned(), gradient.len().to_string(), format!("{error:.1e}")]);
    }
    lesson.table("gradients.csv", Kind::Computed, &table)?;
    lesson.check("largest error of a gradient / its largest value", largest, 3e-6);
    lesson.say(
        "The emulator's blocks on 2 and on 5 threads in place of one, each time in another order: numbers with other bits.",
    );
    lesson.check("gradients that depend on the launch", (differ[0] + differ[1]) as f64, 0.0);
    let atomics = one.counters.class(Class::Atomic);
    lesson.check("atomic operations in the backward pass", atomics as f64, 0.0);
    let kept = one.kept as f64 / problem.sizes.elements() as f64;
    lesson.value("kept_bytes", format!("{kept:.0}"), Kind::Computed);
    lesson.value("gradient_error", format!("{largest:.0e}"), Kind::Computed);
    Ok(())
}

fn chunks(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("chunks", "When channels are few")?;
    let problem = Problem::draw(Sizes { batch: 1, channels: 32, len: 2048 }, true, 18);
    let expected = problem.outputs(Rung::Shipped.order(problem.sizes.len));
    let Sizes { channels, len, .. } = problem.sizes;
    lesson.say(&format!(
        "{channels} channels of {len} steps, with decays near one, cut into chunks. Instructions for each state of each output, \
         in all launches together; and the largest error as a part of the largest output:",
    ));
    let mut table = Table::new(["chunks", "instructions", "largest error"]);
    let (device, mut counted, mut errors) = (Device::simt(), Vec::new(), Vec::new());
    for chunks in [1, 2, 8, 32] {
        let (out, instructions) = chunks::compute(&device, Exponential::Fast, &problem, chunks)?;
        let error = relative(&out, &expected);
        errors.push(error);
        counted.push(instructions);
        let cells = [chunks.to_string(), format!("{instructions:.2}"), format!("{error:.1e}")];
        table.row(cells);
    }
    lesson.table("chunks.csv", Kind::Computed, &table)?;
    let added = errors[1..].iter().map(|error| error - errors[0]).fold(0.0, f64::max);
    lesson.check("error added by cutting / largest output", added, 1e-6);
    // Seven of eight chunks have an end that another chunk needs.
    let share = (counted[2] - counted[0]) / counted[0] * 8.0 / 7.0;
    lesson.value("ends_share", format!("{share:.2}"), Kind::Computed);
    Ok(())
}

/// Trains chapter 13's block for a few steps with three scanners.
fn training(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("training", "Chapter 13's block with another scan inside")?;
    let plan = Plan { steps: 10, batch: 4, every: 10, tested: 4, ..Plan::of_the_chapter(true) };
    let device = Device::simt();
    let fused = Fused::new(&device, Exponential::Fast);
    let unfused = Scan::<f32>::new(&device, Choice::FastestShipped)?;
    let by_cpu = plan.train(1, &|| ())?;
    let trained = [
        ("unfused, in the emulator", plan.train_by(&unfused, 1, &|| ())?),
        ("fused, in the emulator", plan.train_by(&fused, 1, &|| ())?),
    ];
    let again = plan.train_by(&fused, 1, &|| ())?;
    let weights = |trained: &Trained| trained.block.weights.flat();
    let expected = weights(&by_cpu);
    let moved = &expected - &Weights::<f64>::initial(&plan.config, 1).flat();
    let largest = |of: &Array1<f64>| of.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    lesson.say(&format!(
        "{} steps of {} sequences of {} tokens. How far apart the {} weights are from those that a processor's scan leads to, \
         as a part of the farthest that a weight has moved:",
        plan.steps,
        plan.batch,
        plan.task.len(),
        expected.len(),
    ));
    let mut table = Table::new(["scan", "largest difference"]);
    for (name, trained) in &trained {
        let difference = largest(&(&expected - &weights(trained))) / largest(&moved);
        table.row([(*name).to_owned(), format!("{difference:.0e}")]);
    }
    lesson.table("training.csv", Kind::Computed, &table)?;
    let [_, (_, first)] = &trained;
    let (first, second) = (weights(first), weights(&again));
    let differ = first.iter().zip(&second).filter(|(one, other)| one != other).count();
    lesson.check("weights that differ after the same training once more", differ as f64, 0.0);
    Ok(())
}

fn mistakes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("mistakes", "What goes wrong")?;
    lesson.say("The kernel quad with one mistake at a time, as the emulator or the bound sees it.");
    let unnoticed = broken::narrate(lesson, suspect::names(), suspect::examine)?;
    lesson.check("mistakes that went unnoticed", unnoticed as f64, 0.0);
    Ok(())
}
