//! The run of the chapter: it computes, checks and records every number that the page quotes.
//!
//! The steps follow the page: one state and its step size, the sizes of the post, the references,
//! single precision, training, and a look inside a trained block. Timings are in `measured`; the
//! scan on a device, token by token, is in `placed`. Training is quick because the block is small,
//! and its seeds are fixed, so that a record can be compared with a fresh run.

mod measured;
mod placed;

use lesson::plot::{self, Area, Chart, HeatMap, Panel};
use lesson::{Kind, Lesson, Table, progress};
use linrec::Error;
use linrec::contract::Domain;
use linrec::contract::golden::array_distance;
use linrec::cpu::Cpu;
use linrec::device::Device;
use ndarray::{Array2, Array3, Array4, ArrayView2, Axis};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rayon::prelude::*;

use crate::activation::softplus;
use crate::block::{Block, engine};
use crate::task::Task;
use crate::training::{Plan, Trained, mean, right_answers};
use crate::{Arguments, bounds, direct, dissection, golden, post, selective_scan};

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("cpu, unfused@{}", device.label()));
    selection(lesson)?;
    sizes(lesson)?;
    witnesses(lesson)?;
    errors(lesson)?;
    measured::speed(lesson, &post::draw(SEEDS[0]))?;
    placed::on_device(lesson, &device)?;
    let trained = training(lesson)?;
    inside(lesson, &trained)?;
    placed::tokens(lesson, &trained.block)?;
    placed::writing(lesson)
}

// The effect of a step size on one state, and the growth of the arrays.

/// One channel with one state: what it holds with the same Δ everywhere, and with a chosen Δ.
fn selection(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("selection", "One state, and how much a step counts")?;
    let mut table = Table::new(["Δ", "c = e^-Δ", "factor of u", "what the step does"]);
    for (delta, what) in [
        (0.0_f64, "the state passes unchanged, the input is not seen"),
        (0.1, "a little of the input comes in"),
        (1.0, "a third of the state stays"),
        (7.0, "the state is gone, seven times the input has taken its place"),
    ] {
        let numbers = [format!("{delta}"), format!("{:.3}", (-delta).exp()), format!("{delta}")];
        table.row(numbers.into_iter().chain([what.to_owned()]));
    }
    lesson.say("With A = -1 and B = 1 the recurrence is h_l = h_{l-1} e^-Δ + Δ u_l.");
    lesson.table("steps.csv", Kind::Computed, &table)?;

    // Noise with three values worth keeping. With B = (1 - e^-Δ) / Δ the state moves towards u.
    let len = 60;
    let u = Array2::from_shape_fn((1, len), |(_, l)| match l {
        8 => 1.0,
        26 => -0.6,
        47 => 0.5,
        l => 0.4 * ((l * l * 37 % 101) as f64 / 50.0 - 1.0),
    });
    let chosen =
        Array2::from_shape_fn((1, len), |(_, l)| if [8, 26, 47].contains(&l) { 7.0 } else { 0.0 });
    let states = |delta: &Array2<f64>| -> lesson::Result<Vec<(f64, f64)>> {
        let b = delta.mapv(|delta| if delta > 0.0 { (1.0 - (-delta).exp()) / delta } else { 0.0 });
        let y = one_state(u.view(), delta.view(), b.view())?;
        Ok(y.into_iter().enumerate().map(|(l, y)| (l as f64, y)).collect())
    };
    let given = u.iter().enumerate().map(|(l, &u)| (l as f64, u));
    let chart = Chart::new("The same input, remembered in three ways")
        .axes("position l", "input u and state h")
        .line("Δ = 7 at three positions, else 0", states(&chosen)?)
        .line("Δ = 0.1 everywhere", states(&Array2::from_elem((1, len), 0.1))?)
        .line("Δ = 1 everywhere", states(&Array2::from_elem((1, len), 1.0))?)
        .dots("input", given);
    lesson.figure("selection.svg", "Selection", Kind::Computed, &plot::svg(&[&chart])?)
}

fn one_state(
    u: ArrayView2<f64>,
    delta: ArrayView2<f64>,
    b: ArrayView2<f64>,
) -> Result<Vec<f64>, linrec::Error> {
    let (a, c) = (Array2::from_elem((1, 1), -1.0), Array4::ones((1, 1, 1, u.ncols())));
    let batch = |array: ArrayView2<f64>| -> Array3<f64> { array.insert_axis(Axis(0)).to_owned() };
    let (u, delta, b) = (batch(u), batch(delta), batch(b).insert_axis(Axis(0)));
    let arguments = Arguments {
        u: u.view(),
        delta: delta.view(),
        a: a.view(),
        b: b.view().into(),
        c: c.view().into(),
        d: None,
        z: None,
        delta_bias: None,
        delta_softplus: false,
        initial: None,
    };
    Ok(direct(&arguments)?.y.into_iter().collect())
}

fn sizes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("sizes", "What there is, and what it becomes")?;
    let (channels, states, len) = (post::CHANNELS, post::STATES, post::LEN);
    lesson.say(&format!(
        "The post's sizes: {channels} channels, {states} states in each, one sequence of {len} steps, in f32.",
    ));
    let mut table = Table::new(["array", "shape", "numbers", "MB"]);
    for (name, shape) in [
        ("A", vec![channels, states]),
        ("B, and C", vec![states, len]),
        ("u, Δ, and y", vec![channels, len]),
        ("x, c, and h", vec![channels, states, len]),
    ] {
        let numbers: usize = shape.iter().product();
        let text: Vec<_> = shape.iter().map(usize::to_string).collect();
        let megabytes = format!("{:.2}", (4 * numbers) as f64 * 1e-6);
        table.row([name.to_owned(), text.join(" × "), numbers.to_string(), megabytes]);
    }
    lesson.table("sizes.csv", Kind::Computed, &table)?;
    lesson.value("rows", channels * states, Kind::Computed);
    Ok(())
}

fn witnesses(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("witnesses", "Two references")?;
    let cpu = Cpu::new();
    let cases = golden::cases()?;
    let (mut by_steps, mut by_dissection): (f64, f64) = (0.0, 0.0);
    for case in &cases {
        let arguments = case.given.arguments();
        let steps = direct(&arguments)?;
        let ours = selective_scan(&cpu, &arguments)?;
        by_steps = by_steps
            .max(array_distance(&ours.y, &steps.y))
            .max(array_distance(&ours.last_state, &steps.last_state));
        if case.given.z.is_none() {
            by_dissection =
                by_dissection.max(array_distance(&dissection::scan(&arguments)?, &steps.y));
        }
    }
    lesson.say("The first is the definition, step by step. In f64, over all cases:");
    lesson.check("dissected scan, largest relative difference", by_dissection, 1e-11);
    lesson.check("channel by channel, largest relative difference", by_steps, 1e-11);

    lesson.say(&format!(
        "The second is Mamba's own selective_scan_ref, with gradients by PyTorch's autograd: {} problems. Its \
         distances, max |a - b| / max |b| of each array:",
        cases.len(),
    ));
    let names: Vec<_> = cases.iter().map(|case| case.name).collect();
    let mut table = Table::new([&["array"][..], &names[..]].concat());
    let distances: Result<Vec<_>, _> =
        cases.iter().map(|case| golden::distances(&cpu, case)).collect();
    let distances = distances?;
    let mut worst: f64 = 0.0;
    for (array, _) in &distances[distances.len() - 1] {
        let cells = distances.iter().map(|case| {
            let found = case.iter().find(|(name, _)| name == array);
            worst = found.map_or(worst, |(_, distance)| worst.max(*distance));
            found.map_or("–".to_owned(), |(_, distance)| format!("{distance:.1e}"))
        });
        table.row([(*array).to_owned()].into_iter().chain(cells));
    }
    // The last digits depend on the machine's vector instructions.
    lesson.table("golden.csv", Kind::Timed, &table)?;
    lesson.check("Mamba's numbers and gradients, largest relative difference", worst, 1e-11);

    // The golden shapes are small: this one has rows that fill many vectors.
    let given = crate::post::draw(1);
    let few = 0..8;
    let mut small = given.widen();
    small.u = small.u.slice_axis(Axis(1), few.clone().into()).to_owned();
    small.delta = small.delta.slice_axis(Axis(1), few.clone().into()).to_owned();
    small.a = small.a.slice_axis(Axis(0), few.into()).to_owned();
    let arguments = small.arguments();
    let difference = array_distance(&selective_scan(&cpu, &arguments)?.y, &direct(&arguments)?.y);
    lesson.check(
        "8 of the post's channels, 1024 steps, f64, largest difference",
        difference,
        1e-11,
    );
    Ok(())
}

// Single precision at the post's sizes.

/// The errors for one seed.
struct Found {
    largest_y: f64,
    error: f64,
    /// The bound of the output that has this error.
    bound_there: f64,
    largest_bound: f64,
    /// The largest quotient of an error and its bound.
    share: f64,
}

fn errors(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("errors", "Single precision, at the post's sizes")?;
    lesson.say(
        "For three seeds: the scan in f32, against the definition in f64 for the same inputs; over all two \
         million outputs.",
    );
    let found: Result<Vec<_>, _> = SEEDS.par_iter().map(|&seed| find(seed)).collect();
    let header = [
        "seed",
        "largest |y|",
        "largest error",
        "bound there",
        "largest bound",
        "largest error / bound",
    ];
    let mut table = Table::new(header);
    let mut worst: (f64, f64) = (0.0, 0.0);
    for (seed, found) in SEEDS.iter().zip(found?) {
        table.row([
            seed.to_string(),
            format!("{:.1}", found.largest_y),
            format!("{:.2e}", found.error),
            format!("{:.2e}", found.bound_there),
            format!("{:.2e}", found.largest_bound),
            format!("{:.3}", found.share),
        ]);
        worst = (worst.0.max(found.error), worst.1.max(found.share));
    }
    // The last bits depend on the machine's vector instructions.
    lesson.table("errors.csv", Kind::Timed, &table)?;
    lesson.say(
        "The post prints 7.629e-6 and 3.815e-6: the largest differences of its scan from Mamba's fused kernel, and \
         from Mamba's reference, all of them in f32.",
    );
    lesson.value("largest_error", format!("{:.1e}", worst.0), Kind::Timed);
    lesson.check("f32 at the post's sizes, largest error / bound", worst.1, 1.0);
    Ok(())
}

fn find(seed: u64) -> Result<Found, linrec::Error> {
    let given = post::draw(seed);
    let arguments = given.arguments();
    let got = selective_scan(&Cpu::new(), &arguments)?.y;
    let exact = direct(&arguments)?.y;
    let bound = bounds::forward(&arguments, Domain::tree_levels(post::LEN))?.y;
    let mut found =
        Found { largest_y: 0.0, error: 0.0, bound_there: 0.0, largest_bound: 0.0, share: 0.0 };
    for ((&got, &exact), &bound) in got.iter().zip(&exact).zip(&bound) {
        let error = (f64::from(got) - exact).abs();
        found.largest_y = found.largest_y.max(exact.abs());
        found.largest_bound = found.largest_bound.max(bound);
        // NaN counts as the worst.
        let error = if error.is_nan() { f64::INFINITY } else { error };
        if error > found.error {
            (found.error, found.bound_there) = (error, bound);
        }
        found.share = found.share.max(if error > 0.0 { error / bound } else { 0.0 });
    }
    Ok(found)
}

// A block that sees its input, and one that does not.

/// Trains both kinds of block; returns the first selective one.
fn training(lesson: &mut Lesson) -> lesson::Result<Trained> {
    lesson.step("training", "Which was the last symbol but one?")?;
    let seeds = &SEEDS[..lesson.size(1, SEEDS.len())];
    let plans = [Plan::of_the_chapter(true), Plan::of_the_chapter(false)];
    let Plan { task, config, batch, steps, .. } = plans[0];
    lesson.say(&format!(
        "{} positions, {} to {} of them with one of {} symbols, the others blank; then {} questions: which symbol was \
         the last, which the last but one, and so on. The block has {} channels with {} states. {} steps with \
         {} fresh sequences in each.",
        task.positions,
        task.asked,
        task.most,
        task.symbols,
        task.asked,
        config.channels,
        config.states,
        steps,
        batch,
    ));
    let bar = progress(2 * seeds.len() * steps, "training");
    let train = |plan: &Plan, seed: u64| plan.train(seed, &|| bar.inc(1));
    let pairs: Result<Vec<(Trained, Trained)>, Error> = seeds
        .iter()
        .map(|&seed| {
            let (selective, fixed) =
                rayon::join(|| train(&plans[0], seed), || train(&plans[1], seed));
            Ok((selective?, fixed?))
        })
        .collect();
    bar.finish_and_clear();
    let pairs = pairs?;

    let mut table = Table::new([
        "block",
        "weights",
        "seed",
        "last",
        "last but one",
        "before that",
        "all",
        "twice as long",
    ]);
    for (seed, (selective, fixed)) in seeds.iter().zip(&pairs) {
        for (name, trained) in [("selective", selective), ("fixed", fixed)] {
            let weights = trained.block.weights.flat().len();
            let all = [trained.accuracy(), twice_as_long(trained, &plans[0])?];
            let shares = trained.right.iter().chain(&all);
            let percents = shares.map(|share| format!("{:.1} %", 100.0 * share));
            let names = [name.to_owned(), weights.to_string(), seed.to_string()];
            table.row(names.into_iter().chain(percents));
        }
    }
    lesson.say(
        "Right answers to each question, to all, and to all for sequences twice as long, as sparse:",
    );
    lesson.table("training.csv", Kind::Computed, &table)?;
    for (seed, (selective, fixed)) in seeds.iter().zip(&pairs) {
        let name = format!("seed {seed}, selective: share of wrong answers");
        lesson.check(&name, 1.0 - selective.accuracy(), 0.05);
        let name = format!("seed {seed}, fixed: share of right answers");
        lesson.check(&name, fixed.accuracy(), 0.6);
    }
    curves(lesson, &pairs, 1.0 / task.symbols as f64)?;
    let (selective, fixed) = &pairs[0];
    let percent = |accuracy: f64| format!("{:.1}", 100.0 * accuracy);
    lesson.value("selective_accuracy", percent(selective.accuracy()), Kind::Computed);
    lesson.value("fixed_accuracy", percent(fixed.accuracy()), Kind::Computed);
    lesson.value("steps", steps, Kind::Computed);
    let enough = selective.curve.iter().find(|(_, accuracy)| *accuracy >= 0.95);
    let enough = enough.map_or("–".to_owned(), |(step, _)| step.to_string());
    lesson.value("steps_to_95", enough, Kind::Computed);
    let first = pairs.into_iter().next().ok_or("no seed was trained with")?;
    Ok(first.0)
}

/// Returns the accuracy on sequences with twice as many positions and the same number of symbols.
fn twice_as_long(trained: &Trained, plan: &Plan) -> Result<f64, Error> {
    let task = Task { positions: 2 * plan.task.positions, ..plan.task };
    let batch = task.draw(&mut StdRng::seed_from_u64(99), 512);
    Ok(mean(&right_answers(&engine(), &trained.block, &batch)?))
}

fn curves(lesson: &mut Lesson, pairs: &[(Trained, Trained)], chance: f64) -> lesson::Result {
    let steps = pairs.first().and_then(|(t, _)| t.curve.last()).map_or(1.0, |last| last.0);
    let mut chart = Chart::new("Right answers to sequences that are not trained with")
        .axes("step", "share of right answers")
        .y_range(0.0, 1.0);
    for (number, (selective, fixed)) in pairs.iter().enumerate() {
        // One legend entry for each kind; further seeds are dashed.
        let line = |chart: Chart, label: &str, trained: &Trained| match number {
            0 => chart.line(label, trained.curve.iter().copied()),
            _ => chart.dashed("", trained.curve.iter().copied()),
        };
        chart = line(chart, "selective", selective);
        chart = line(chart, "fixed", fixed);
    }
    let chart = chart.dashed("guessing", [(0.0, chance), (steps, chance)]);
    lesson.figure("training.svg", "Training", Kind::Computed, &plot::svg(&[&chart])?)
}

// What the trained block does with one sequence.

fn inside(lesson: &mut Lesson, trained: &Trained) -> lesson::Result {
    lesson.step("inside", "Where it lets the states pass, and where it writes")?;
    let task = Plan::of_the_chapter(true).task;
    let batch = task.draw(&mut StdRng::seed_from_u64(31), 1);
    let tokens = batch.tokens.row(0);
    let (delta, kept, written) = steps(&trained.block, &batch.tokens)?;

    // The channels with the largest steps at symbols come first.
    let is_symbol = |token: usize| (1..=task.symbols).contains(&token);
    let at_symbols = |row: usize| -> f64 {
        tokens.iter().zip(delta.row(row)).filter(|(t, _)| is_symbol(**t)).map(|(_, d)| d).sum()
    };
    let mut order: Vec<usize> = (0..delta.nrows()).collect();
    order.sort_by(|&a, &b| at_symbols(b).total_cmp(&at_symbols(a)));
    let sorted = delta.select(Axis(0), &order);
    let limit = 2.0;
    let map = HeatMap::new("Step sizes Δ of all channels", sorted, (0.0, limit))
        .axes("position l", "channels");

    let places = |wanted: &dyn Fn(usize) -> bool, height: f64| -> Vec<(f64, f64)> {
        let found = tokens.iter().enumerate().filter(|(_, token)| wanted(**token));
        found.map(|(l, _)| (l as f64, height)).collect()
    };
    let series = |values: &[f64]| -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(l, &value)| (l as f64, value)).collect()
    };
    let top = written.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let shares: Vec<_> = written.iter().map(|w| w / top).collect();
    let chart = Chart::new("Mean over all states of all channels")
        .axes("position l", "share")
        .y_range(0.0, 1.15)
        .line("coefficient c: what passes", series(&kept))
        .line("size of x, largest 1: what is written", series(&shares))
        .dots("a symbol", places(&is_symbol, 1.08))
        .dots("a question", places(&|token| token > task.symbols, 1.08));
    let svg = plot::grid(&[&Strip(map), &Strip(chart)], 1)?;
    lesson.figure("inside.svg", "What the block does with one sequence", Kind::Computed, &svg)?;

    // Over many sequences, by the kind of token.
    let many = task.draw(&mut StdRng::seed_from_u64(32), 256);
    let (delta, kept, written) = steps(&trained.block, &many.tokens)?;
    let mut table = Table::new(["at", "mean coefficient c", "mean size of x"]);
    let kinds: [(&str, &dyn Fn(usize) -> bool); 3] = [
        ("a blank", &|token| token == 0),
        ("a symbol", &is_symbol),
        ("a question", &|token| token > task.symbols),
    ];
    for (name, wanted) in kinds {
        let mean = |values: &[f64]| -> f64 {
            let found = many.tokens.iter().zip(values).filter(|(token, _)| wanted(**token));
            let (count, sum) = found.fold((0.0, 0.0), |(n, sum), (_, v)| (n + 1.0, sum + v));
            sum / count
        };
        table.row([
            name.to_owned(),
            format!("{:.3}", mean(&kept)),
            format!("{:.3}", mean(&written)),
        ]);
    }
    lesson.say("The mean over all states of all channels, over 256 sequences:");
    lesson.table("inside.csv", Kind::Computed, &table)?;

    // Channels that hardly step anywhere: how much accuracy is lost if nothing is written into
    // their states, and how much if the same is done to as many of the channels that step furthest.
    let furthest = |row: usize| delta.row(row).iter().copied().fold(0.0, f64::max);
    let mut still: Vec<usize> = (0..delta.nrows()).collect();
    still.sort_by(|&a, &b| furthest(a).total_cmp(&furthest(b)));
    let count = still.iter().filter(|&&row| furthest(row) < STILL).count();
    let without = |silent: &[usize]| -> lesson::Result<String> {
        let mut block = trained.block.clone();
        for &row in silent {
            block.weights.delta_bias[[row, 0]] = NEVER;
        }
        Ok(format!("{:.1}", 100.0 * mean(&right_answers(&engine(), &block, &many)?)))
    };
    let (all, no_still) = (without(&[])?, without(&still[..count])?);
    let no_moving = without(&still[still.len() - count..])?;
    lesson.say(&format!(
        "{count} of {} channels never step further than {STILL}. With Δ = 0 in these, the block gives {no_still} % right \
         answers instead of {all} %; with Δ = 0 in the {count} that step furthest, {no_moving} %.",
        still.len(),
    ));
    lesson.value("still_channels", count, Kind::Computed);
    lesson.value("answers_all", all, Kind::Computed);
    lesson.value("answers_without_still", no_still, Kind::Computed);
    lesson.value("answers_without_moving", no_moving, Kind::Computed);
    Ok(())
}

/// The step size below which a channel is still, and the bias that keeps it from stepping.
const STILL: f64 = 0.03;
const NEVER: f32 = -30.0;

/// `Δ` `[channels, positions]`, then at each position the mean coefficient and the mean size of the
/// input over all states. The positions of the sequences `[batch, len]` follow one another.
type Steps = (Array2<f64>, Vec<f64>, Vec<f64>);

fn steps(block: &Block<f32>, tokens: &Array2<usize>) -> Result<Steps, linrec::Error> {
    let inside = block.forward(&engine(), tokens.view())?;
    let states = block.config.states;
    let len = tokens.ncols();
    let bias = block.weights.delta_bias.column(0);
    let delta = Array2::from_shape_fn(inside.delta.dim(), |(j, l)| {
        softplus(f64::from(inside.delta[[j, l]]) + f64::from(bias[j]))
    });
    let count = (delta.nrows() * states) as f64;
    let over_states = |of: &dyn Fn(usize, usize, usize) -> f64| -> Vec<f64> {
        let at = |l| -> f64 {
            let all = (0..delta.nrows()).flat_map(|j| (0..states).map(move |n| (j, n)));
            all.map(|(j, n)| of(j, n, l)).sum()
        };
        (0..delta.ncols()).map(|l| at(l) / count).collect()
    };
    let kept = over_states(&|j, n, l| (delta[[j, l]] * f64::from(inside.a[[j, n]])).exp());
    let written = over_states(&|j, n, l| {
        let (b, u) =
            (inside.b.view().at([l / len, j, n, l % len], delta.nrows()), inside.u[[j, l]]);
        (delta[[j, l]] * f64::from(b) * f64::from(u)).abs()
    });
    Ok((delta, kept, written))
}

struct Strip<P>(P);

impl<P: Panel> Panel for Strip<P> {
    fn draw(&self, area: &Area) -> lesson::Result {
        self.0.draw(area)
    }

    fn height(&self, width: u32) -> u32 {
        width * 2 / 5 + 20
    }
}

/// The seeds of all randomness here; a single seed means the first one.
const SEEDS: [u64; 3] = [11, 12, 13];
