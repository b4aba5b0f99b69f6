//! The scan in other places: on a device, and in a model that receives one token at a time.

use lesson::{Kind, Lesson, Table};
use linrec::contract::Domain;
use linrec::device::{Choice, Device};
use ndarray::{Axis, Slice};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::block::{Block, engine};
use crate::golden::{self, Given};
use crate::on_device::{Scan, Traffic};
use crate::training::{Plan, mean, score};
use crate::writer::{self, Lessons, Sampler, Text};
use crate::{Mixing, MixingArray, Output, bounds, direct, post, step_by_step};

/// Runs expansion, recurrence and contraction as kernels.
pub(super) fn on_device(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("device", "Unfused, on a GPU")?;
    lesson.say(&format!(
        "The dissection's three steps as kernels, on {}. In f64, against Mamba's numbers and gradients:",
        device.name(),
    ));
    let scan = Scan::<f64>::new(device, Choice::FastestShipped)?;
    let mut worst: f64 = 0.0;
    for case in golden::cases()? {
        let arguments = case.given.arguments();
        let output = scan.compute(&arguments)?.output;
        let d = scan.differentiate(&arguments, case.d_y.view(), None)?.gradients;
        let distances = golden::compared(&case, &output, &d);
        worst = distances.into_iter().map(|(_, distance)| distance).fold(worst, f64::max);
    }
    lesson.check("on the device, Mamba's numbers and gradients", worst, 1e-11);

    // The emulator executes each instruction of each warp, so it gets a part of the post's problem.
    let given = post::draw(super::SEEDS[0]);
    let given = if device.is_simt() { part(&given) } else { given };
    let (_, channels, len) = given.u.dim();
    let output =
        Scan::<f32>::new(device, Choice::FastestShipped)?.compute(&given.arguments())?.output;
    lesson.say(&format!("{channels} of the post's channels, {len} steps, in f32:"));
    lesson.check("on the device, largest error / bound", share(&given, &output)?, 1.0);
    if !device.is_simt() {
        let given = part(&given);
        let scans = [device, &Device::simt()].map(|device| {
            let scan = Scan::<f32>::new(device, Choice::FastestShipped)?;
            let output = scan.compute(&given.arguments())?.output;
            let d_y = output.y.view();
            let gradients = scan.differentiate(&given.arguments(), d_y, None)?.gradients;
            Ok::<_, linrec::Error>((output, gradients))
        });
        let [here, there] = scans;
        let differ = if here? == there? { 0.0 } else { 1.0 };
        lesson.check("results and gradients that differ from the emulator's", differ, 0.0);
    }
    traffic(lesson)
}

/// Cuts the problem down to 64 channels and 256 steps.
fn part(given: &Given<f32>) -> Given<f32> {
    let cut = |array: &ndarray::Array3<f32>| {
        let channels = array.slice_axis(Axis(1), Slice::from(..64));
        channels.slice_axis(Axis(2), Slice::from(..256)).to_owned()
    };
    let mixing = |mixing: &MixingArray<f32>| -> MixingArray<f32> {
        match mixing {
            Mixing::Varying(array) => {
                array.slice_axis(Axis(3), Slice::from(..256)).to_owned().into()
            }
            Mixing::Fixed(array) => array.slice_axis(Axis(0), Slice::from(..64)).to_owned().into(),
        }
    };
    let a = given.a.slice_axis(Axis(0), Slice::from(..64)).to_owned();
    Given::new(cut(&given.u), cut(&given.delta), a, mixing(&given.b), mixing(&given.c))
}

/// Returns the largest ratio of an output's error to its bound.
fn share(given: &Given<f32>, output: &Output<f32>) -> lesson::Result<f64> {
    let exact = direct(&given.arguments())?.y;
    let bound = bounds::forward(&given.arguments(), Domain::tree_levels(given.u.dim().2))?.y;
    let errors = output.y.iter().zip(&exact).map(|(&got, exact)| (f64::from(got) - exact).abs());
    let shares =
        errors.zip(&bound).map(|(error, bound)| if error > 0.0 { error / bound } else { 0.0 });
    // NaN counts as the worst.
    Ok(shares.fold(0.0, |worst, share| if share <= worst { worst } else { share }))
}

fn traffic(lesson: &mut Lesson) -> lesson::Result {
    lesson.say(&format!(
        "What goes through the memory for each channel and position, with {} states, D and z, in f32:",
        post::STATES,
    ));
    let mut table =
        Table::new(["kernel", "reads", "bytes read", "writes", "bytes written", "bytes"]);
    let passes = Traffic::of_passes(post::STATES, true, true, 4);
    let all = passes.iter().map(Traffic::all).sum::<usize>();
    let fused = Traffic::fused(true, 4);
    for (name, reads, writes, traffic) in [
        ("expand", "u, Δ", "x, c", passes[0]),
        ("recurrence", "x, c", "h", passes[1]),
        ("contract", "h, u, z", "y", passes[2]),
        ("all in one, states on the chip", "u, Δ, z", "y", fused),
    ] {
        let Traffic { read, written } = traffic;
        let (read, written) = (read.to_string(), written.to_string());
        let row = [name, reads, &read, writes, &written].map(str::to_owned);
        table.row(row.into_iter().chain([traffic.all().to_string()]));
    }
    lesson.table("traffic.csv", Kind::Computed, &table)?;
    lesson.say(&format!("The three kernels move {all} bytes, a single one {}.", fused.all()));
    lesson.value("unfused_bytes", all, Kind::Computed);
    lesson.value("fused_bytes", fused.all(), Kind::Computed);
    lesson.value("bytes_ratio", format!("{:.0}", all as f64 / fused.all() as f64), Kind::Computed);
    Ok(())
}

/// Feeds the trained block one token at a time.
pub(super) fn tokens(lesson: &mut Lesson, block: &Block<f32>) -> lesson::Result {
    lesson.step("tokens", "One token at a time")?;
    let mut worst: f64 = 0.0;
    for case in golden::cases()? {
        let given = case.given.narrow::<f32>();
        let output = step_by_step(&given.arguments())?;
        let (exact, bound) =
            (direct(&given.arguments())?.y, bounds::forward(&given.arguments(), 0)?.y);
        for ((&got, exact), bound) in output.y.iter().zip(&exact).zip(&bound) {
            let share = (f64::from(got) - exact).abs() / bound.max(f64::MIN_POSITIVE);
            worst = if share <= worst { worst } else { share };
        }
    }
    lesson.check("the scan step by step in f32, largest error / bound", worst, 1.0);

    let task = Plan::of_the_chapter(true).task;
    let sequences = 256;
    let batch = task.draw(&mut StdRng::seed_from_u64(33), sequences);
    let whole = block.forward(&engine(), batch.tokens.view())?.logits;
    let mut memory = block.memory(sequences);
    let mut by_token = whole.clone();
    for (l, tokens) in batch.tokens.columns().into_iter().enumerate() {
        let logits = block.step(&tokens.to_vec(), &mut memory)?;
        for (sequence, logits) in logits.columns().into_iter().enumerate() {
            by_token.column_mut(sequence * task.len() + l).assign(&logits);
        }
    }
    let size = whole.iter().fold(0.0, |size: f32, logit| size.max(logit.abs()));
    let difference = (&whole - &by_token).iter().fold(0.0, |most: f32, d| most.max(d.abs())) / size;
    let [right, in_one_go] = [&by_token, &whole].map(|logits| mean(&score(logits, &batch).right));
    let numbers = memory.len() / sequences;
    lesson.say(&format!(
        "The trained block, given {sequences} sequences token by token: {:.1} % right answers, as against {:.1} % in one \
         go. Between two tokens it remembers {numbers} numbers of each sequence, after the first token as after the last.",
        100.0 * right,
        100.0 * in_one_go,
    ));
    lesson.check("share of right answers lost token by token", (in_one_go - right).abs(), 0.0);
    lesson.say(&format!("The logits differ by at most {difference:.0e} of the largest one."));
    lesson.value("right_by_token", format!("{:.1}", 100.0 * right), Kind::Computed);
    lesson.value("remembered", numbers, Kind::Computed);
    Ok(())
}

/// Teaches a block a text and lets it write.
pub(super) fn writing(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("writing", "A block that writes")?;
    let text = Text::new(writer::TEXT);
    let plan = Lessons::OF_THE_CHAPTER;
    let (block, bits) = plan.teach(&engine(), &text, 41)?;
    let uniform = (text.alphabet() as f64).log2();
    lesson.say(&format!(
        "A poem of {} characters, {} of them different: {} steps of {} pieces of {} characters. A character then costs {bits:.2} \
         bits, where {uniform:.2} would say nothing but which of all it is.",
        writer::TEXT.len(), text.alphabet(), plan.steps, plan.batch, plan.len,
    ));
    let begin = text.token('t').ok_or("the poem has no t")?;
    for temperature in [0.3, 1.0, 2.0] {
        let mut sampler = Sampler::new(&block, begin, temperature, 42)?;
        let mut tokens = vec![begin];
        for _ in 0..180 {
            tokens.push(sampler.write()?);
        }
        let written = text.read(&tokens).replace('\n', " / ");
        lesson.say(&format!("At a temperature of {temperature} it writes: {written}"));
    }
    let foreseen = writer::foreseen(&engine(), &block, &text)?;
    lesson.say(&format!(
        "Of the poem itself, {:.0} % of the characters are the ones that it expects.",
        100.0 * foreseen
    ));
    lesson.value("bits_per_character", format!("{bits:.2}"), Kind::Computed);
    lesson.value("uniform_bits", format!("{uniform:.2}"), Kind::Computed);
    lesson.value("foreseen", format!("{:.0}", 100.0 * foreseen), Kind::Computed);
    Ok(())
}
