//! The run of the chapter: it computes, checks and records every number that the page quotes.
//!
//! All ranks are emulated devices: threads of this program that exchange messages through the same
//! groups as real GPUs. The emulator counts the bytes of every way to cut rows, and compares its
//! bits. Measured times come from records, by `measured`, and the model of many hosts is in
//! `modelled`. The last steps plant mistakes and let ranks fail.

mod measured;
mod modelled;
mod pictures;

use bench::draw::{differ, near_one};
use lesson::{Kind, Lesson, Table, broken};
use linrec::contract::Domain;
use linrec::device::{
    Buffer, Device, Exponential, Group, GroupEngine, GroupRecurrence, Rank, ScanShape, Split, Way,
};
use linrec::reference::{self, Rounding};
use linrec::simt::{Access, Counters};
use linrec::{Engine, Error, Options};
use ndarray::{Array2, s};

use crate::by_hand::{ByHand, stretch};
use crate::mailbox::Mailboxes;
use crate::scan::problem::Problem;
use crate::suspect;

/// The numbers of ranks to try.
const SIZES: [usize; 5] = [1, 2, 3, 4, 8];

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.engine("groups of emulated devices");
    measured::links(lesson)?;
    by_hand(lesson)?;
    ways(lesson)?;
    bits(lesson)?;
    mailboxes(lesson)?;
    mistakes(lesson)?;
    fused(lesson)?;
    failures(lesson)?;
    modelled::paper(lesson)?;
    modelled::hosts(lesson)?;
    measured::reached(lesson)?;
    measured::all_ways(lesson)?;
    measured::trials(lesson)
}

fn emulated(ranks: usize) -> Result<Group, Error> {
    Group::from_devices(&Device::emulated(ranks))
}

/// Makes ranks for states by mail: it needs memory that all of them reach, so they share a device.
fn by_mail(ranks: usize) -> Result<Group, Error> {
    Group::through_host(&vec![Device::simt(); ranks])
}

/// Returns the largest error of outputs relative to its bound.
fn error(outputs: &Array2<f32>, x: &Array2<f32>, c: &Array2<f32>) -> Result<f64, Error> {
    let options = Options::default();
    let exact = reference::forward(x.view(), c.view(), &options)?.outputs;
    let levels = 2 * Domain::tree_levels(x.ncols());
    let rounding = Rounding { levels, exp_ulps: 0.0 };
    let bound = reference::forward_bound(x.view(), c.view(), &options, rounding)?.outputs;
    let errors = outputs.iter().zip(&exact).zip(&bound);
    let errors = errors.map(|((&y, exact), bound)| (f64::from(y) - exact).abs() / bound);
    // In this form, NaN counts as the largest.
    Ok(errors.fold(0.0, |most: f64, error| if error <= most { most } else { error }))
}

fn by_hand(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("cut", "A row over several ranks")?;
    let (rows, seq_len) = (5, 4000);
    let (x, c) = near_one((rows, seq_len), 170);
    lesson.say(&format!(
        "{rows} rows of {seq_len} steps, each cut over ranks that are emulated devices. The bytes that \
         each rank sends to all others, and the largest error as a part of its bound:",
    ));
    let mut table = Table::new(["ranks", "steps of a rank", "sent by each", "error / bound"]);
    let mut worst: f64 = 0.0;
    for ranks in SIZES {
        let engine = ByHand::new(emulated(ranks)?);
        let outputs = engine.forward(x.view(), c.view(), &Options::default())?.outputs;
        let error = error(&outputs, &x, &c)?;
        worst = worst.max(error);
        let steps = stretch(seq_len, 0, ranks).len();
        table.row([
            ranks.to_string(),
            steps.to_string(),
            (8 * rows).to_string(),
            format!("{error:.3}"),
        ]);
    }
    lesson.table("cut.csv", Kind::Computed, &table)?;
    lesson.check("largest error / bound, by hand", worst, 1.0);
    Ok(())
}

// The ways of the library.

/// Returns the outputs of all ranks, joined, and the counters.
fn computed(
    group: &Group,
    way: Way,
    (x, c): (&Array2<f32>, &Array2<f32>),
) -> Result<(Array2<f32>, Counters), Error> {
    let parts = group.run(|rank: &Rank| {
        let recurrence = GroupRecurrence::<f32>::new(rank, Split::Steps).with_way(way);
        let part = recurrence.part(x.dim())?;
        let mine = |array: &Array2<f32>| -> Result<Buffer<f32>, Error> {
            let mine = array.slice(s![.., part.steps.clone()]);
            rank.device().upload(&mine.iter().copied().collect::<Vec<_>>())
        };
        let mut outputs = rank.device().allocate(part.len())?;
        let launched = recurrence.forward_into(
            &mine(x)?,
            &mine(c)?,
            &mut outputs,
            x.dim(),
            Default::default(),
        )?;
        let counted = launched.counters().cloned().unwrap_or_default();
        Ok((part.steps, outputs.download()?, counted))
    })?;
    let mut outputs = Array2::zeros(x.dim());
    let mut all = Counters::default();
    for (steps, part, counted) in parts {
        let mut place = outputs.slice_mut(s![.., steps]);
        place.iter_mut().zip(part).for_each(|(to, from)| *to = from);
        all += &counted;
    }
    Ok((outputs, all))
}

/// Returns the bytes that kernels read and write in global memory, without messages between blocks.
fn moved(counters: &Counters) -> [u64; 2] {
    let is_message =
        |opcode: &str| ["relaxed", "acquire", "release"].iter().any(|how| opcode.contains(how));
    let sum = |wanted: &[Access]| {
        let sites = counters.sites.iter().filter(|site| wanted.contains(&site.access));
        let sites = sites.filter(|site| !is_message(&site.opcode));
        sites.map(|site| site.bytes).sum()
    };
    [sum(&[Access::GlobalLoad, Access::CopyAsync]), sum(&[Access::GlobalStore])]
}

fn ways(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("ways", "Ways to the state before a stretch")?;
    let (rows, seq_len) = (2, 1 << 16);
    let (x, near) = near_one((rows, seq_len), 171);
    let fading = near.mapv(|c| 50.0 * (c - 0.98));
    lesson.say(&format!(
        "{rows} rows of {seq_len} steps over 4 ranks: bytes read and written for each step, and the largest error as a part of its \
         bound. Coefficients are near one (0.98 to 1), or fade (0 to 1):",
    ));
    let mut table = Table::new(["way", "coefficients", "read", "written", "error / bound"]);
    let mut worst: f64 = 0.0;
    let (apart, together) = (emulated(4)?, by_mail(4)?);
    for (named, group, way) in [
        ("passes", &apart, Way::Passes),
        ("tail first", &apart, Way::TailFirst),
        ("passes by mail", &together, Way::Passes),
        ("mailboxes", &together, Way::Mailboxes),
        ("tail by mail", &together, Way::TailByMail),
    ] {
        for (name, c) in [("near one", &near), ("fading", &fading)] {
            let (outputs, counted) = computed(group, way, (&x, c))?;
            let [read, written] = moved(&counted).map(|bytes| bytes as f64 / x.len() as f64);
            let error = error(&outputs, &x, c)?;
            worst = worst.max(error);
            if name == "fading" {
                let key = named.replace(' ', "_");
                lesson.value(&format!("read_{key}"), format!("{read:.1}"), Kind::Computed);
            }
            table.row([
                named.to_owned(),
                name.to_owned(),
                format!("{read:.2}"),
                format!("{written:.2}"),
                format!("{error:.3}"),
            ]);
        }
    }
    lesson.table("ways.csv", Kind::Computed, &table)?;
    lesson.check("largest error / bound, by the library", worst, 1.0);
    Ok(())
}

fn bits(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("bits", "What the bits depend on")?;
    let shape = (24, 4096);
    let (x, c) = near_one(shape, 172);
    let outputs =
        |group: Group, split: Split, pieces: Option<usize>, way: Way| -> lesson::Result<_> {
            let engine = GroupEngine::<f32>::new(group, split).with_way(way);
            let engine = match pieces {
                Some(pieces) => engine.with_pieces(pieces),
                None => engine,
            };
            Ok(engine.forward(x.view(), c.view(), &Options::default())?.outputs)
        };
    lesson.say(&format!(
        "{} rows of {} steps. How many of the outputs on 2, 4 and 8 ranks have other bits than on one rank:",
        shape.0, shape.1
    ));
    let mut table = Table::new(["split", "2 ranks", "4 ranks", "8 ranks"]);
    let cases = [
        ("rows dealt out", Split::Rows, None, Way::Passes),
        ("cut into 16 pieces", Split::Steps, Some(16), Way::Passes),
        ("the same, by mail", Split::Steps, Some(16), Way::Passes),
        ("the same, tail first", Split::Steps, Some(16), Way::TailFirst),
        ("cut, by mailboxes", Split::Steps, None, Way::Mailboxes),
    ];
    let mut changed = 0.0;
    for (name, split, pieces, way) in cases {
        let group = if name.contains("by mail") { by_mail } else { emulated };
        let alone = outputs(group(1)?, split, pieces, way)?;
        let mut counts = Vec::new();
        for ranks in [2, 4, 8] {
            let count = differ(&alone, &outputs(group(ranks)?, split, pieces, way)?);
            if !name.starts_with("cut, ") {
                changed += count;
            }
            counts.push(format!("{count:.0}"));
        }
        table.row([name.to_owned()].into_iter().chain(counts));
    }
    lesson.table("bits.csv", Kind::Computed, &table)?;
    lesson.check("outputs that depend on the number of ranks", changed, 0.0);
    lesson.value("outputs", shape.0 * shape.1, Kind::Computed);
    Ok(())
}

fn mailboxes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("mailboxes", "Mailboxes in each other's memory")?;
    let (rows, seq_len) = (4, 2400);
    let (x, c) = near_one((rows, seq_len), 173);
    lesson.say(&format!(
        "{rows} rows of {seq_len} steps. All ranks' launches take turns in the emulator, in two orders. Bytes read \
         and written for each step, how often a rank found no message, and the largest error as a part of its bound:",
    ));
    let header = ["ranks", "first turn", "read", "written", "no message", "error / bound"];
    let mut table = Table::new(header);
    let mut worst: f64 = 0.0;
    let mut others = 0.0;
    for ranks in [2, 4] {
        let mailboxes = Mailboxes::new(ranks)?;
        let mut before: Option<Array2<f32>> = None;
        let orders: [(&str, Vec<usize>); 2] =
            [("first rank", (0..ranks).collect()), ("last rank", (0..ranks).rev().collect())];
        for (name, order) in orders {
            let (outputs, counted) = mailboxes.outputs(x.view(), c.view(), order)?;
            let mut all = Counters::default();
            counted.iter().for_each(|counted| all += counted);
            let [read, written] = moved(&all).map(|bytes| bytes as f64 / x.len() as f64);
            let asked: u64 = sites(&all, "acquire");
            let in_vain = asked.saturating_sub((rows * (ranks - 1)) as u64);
            let error = error(&outputs, &x, &c)?;
            worst = worst.max(error);
            others += before.as_ref().map_or(0.0, |before| differ(before, &outputs));
            before = Some(outputs);
            table.row([
                ranks.to_string(),
                name.to_owned(),
                format!("{read:.2}"),
                format!("{written:.2}"),
                in_vain.to_string(),
                format!("{error:.3}"),
            ]);
        }
    }
    lesson.table("mailboxes.csv", Kind::Computed, &table)?;
    lesson.check("largest error / bound, by mailboxes", worst, 1.0);
    lesson.check("outputs that depend on whose turn it is", others, 0.0);
    Ok(())
}

/// Returns the number of requests by opcodes that contain this word.
fn sites(counters: &Counters, word: &str) -> u64 {
    let sites = counters.sites.iter().filter(|site| site.opcode.contains(word));
    sites.map(|site| site.requests).sum()
}

fn mistakes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("mistakes", "What goes wrong")?;
    lesson.say("A pipeline and a mailbox with one mistake at a time.");
    let unnoticed = broken::narrate(lesson, suspect::NAMES, suspect::examine)?;
    lesson.check("mistakes that went unnoticed", unnoticed as f64, 0.0);
    let accused = suspect::examine("mailbox")?.is_some();
    lesson.check("correct kernels that were reported", f64::from(accused), 0.0);
    Ok(())
}

fn fused(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("scan", "The fused scan, cut along its length")?;
    let shape = ScanShape { batch: 3, channels: 32, seq_len: 192, states: 8, groups: 1 };
    let ScanShape { batch, channels, seq_len, states, .. } = shape;
    let (problem, exponential) = (Problem::drawn(shape), Exponential::Exact);
    let alone = problem.alone(exponential)?;
    let rates = channels * states;
    lesson.say(&format!(
        "Mamba's function over {batch} batches of {channels} channels with {states} states and {seq_len} steps, forward and backward. \
         What a rank sends to the next or the one before for each batch; how many outputs, gradients of u, delta, B and C, and \
         gradients of the {rates} rates A have other bits than on one device; and by how much those of A differ, as a part of \
         their bound:",
    ));
    let header = ["ranks", "steps", "bytes sent", "outputs", "of u to C", "of A", "of A / bound"];
    let mut table = Table::new(header);
    let (mut changed, mut worst, mut by_rank): (f64, f64, f64) = (0.0, 0.0, 0.0);
    for ranks in [2, 3, 4] {
        let stretches: Vec<usize> =
            (0..ranks).map(|rank| stretch(seq_len, rank, ranks).len()).collect();
        let over = problem.over(&stretches, exponential)?;
        let outputs = differ(&alone.out, &over.out);
        let along = differ(alone.d.iter().flatten(), over.d.iter().flatten());
        let (one, all) = (&alone.d_a[0], &over.d_a[0]);
        by_rank += over.d_a.iter().map(|rank| differ(all, rank)).sum::<f64>();
        let bounds = problem.apart(&stretches, exponential)?;
        let parts = one.iter().zip(all).zip(bounds);
        let parts =
            parts.map(|((&one, &all), bound)| (f64::from(one) - f64::from(all)).abs() / bound);
        let part = parts.fold(0.0, |most: f64, part| if part <= most { most } else { part });
        changed += outputs + along;
        worst = worst.max(part);
        let counts = [ranks, stretches[0], 4 * rates].map(|count| count.to_string());
        let differ = [outputs, along, differ(one, all)].map(|count| format!("{count:.0}"));
        table.row(counts.into_iter().chain(differ).chain([format!("{part:.3}")]));
    }
    lesson.table("scan.csv", Kind::Computed, &table)?;
    lesson.check(
        "results other than the gradient of A that depend on the number of ranks",
        changed,
        0.0,
    );
    lesson.check("gradients of A that differ between ranks", by_rank, 0.0);
    lesson.check("largest difference of gradients of A / bound", worst, 1.0);
    // On each of four ranks: 4 bytes for each rate of the other three.
    lesson.value("scan_received", 3 * 4 * rates, Kind::Computed);
    Ok(())
}

fn failures(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("failures", "When a rank does not do its part")?;
    lesson.say("Two ranks, of which one fails, ends early, or has other rows than the other. What is reported to the other:");
    let reported = |work: &(dyn Fn(&Rank) -> Result<(), Error> + Sync)| -> lesson::Result<String> {
        let seen = std::sync::Mutex::new(Vec::new());
        let outcome = emulated(2)?.run(|rank| {
            let result = work(rank);
            if let (0, Err(error)) = (rank.number(), &result) {
                seen.lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .push(error.to_string());
            }
            result
        });
        let seen = seen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let nothing =
            || format!("nothing, and {} ranks are done", outcome.map_or(0, |all| all.len()));
        Ok(seen.first().cloned().unwrap_or_else(nothing))
    };
    let fails = reported(&|rank| match rank.number() {
        1 => rank.device().upload(&[1.0_f32])?.upload(&[1.0, 2.0]),
        _ => rank.barrier(),
    })?;
    let ends = reported(&|rank| if rank.number() == 1 { Ok(()) } else { rank.barrier() })?;
    let differs = reported(&|rank| {
        let rows = if rank.number() == 1 { 3 } else { 2 };
        let recurrence = GroupRecurrence::<f32>::new(rank, Split::Steps);
        let len = recurrence.part((rows, 300))?.len();
        let ones = rank.device().upload(&vec![1.0; len])?;
        let mut outputs = rank.device().allocate(len)?;
        recurrence.forward_into(&ones, &ones, &mut outputs, (rows, 300), Default::default())?;
        Ok(())
    })?;
    let mut silent = 0;
    for (what, sentence, word) in [
        ("rank 1 fails", fails, "rank 1 failed"),
        ("rank 1 ends", ends, "rank 1 has ended"),
        ("rank 1 has another shape", differs, "ranks disagree"),
    ] {
        silent += usize::from(!sentence.contains(word));
        lesson.say(&format!("{what}:"));
        lesson.quote(&sentence);
    }
    lesson.check("failures that were not reported", silent as f64, 0.0);
    Ok(())
}
