//! The story of chapter 9: compares the ways between memory and registers, and chooses one.

mod measured;
mod pictures;
mod strides;
mod waiting;

use ch08_reverse_and_backward::pipe;
use ch08_reverse_and_backward::record::compared;
use half::{bf16, f16};
use lesson::{Kind, Lesson, Table};
use linrec::contract::{self, Domain, Report};
use linrec::device::{Device, KernelEngine, Storage};
use linrec::kernels::{Memcode, Pass};
use num_complex::Complex;

use crate::record::{speed, times};
use crate::stored::{engine, errors};

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("pipe:8x64:0@{}", device.label()));
    measured::ways(lesson)?;
    measured::speed(lesson)?;
    measured::price(lesson)?;
    measured::banks(lesson)?;
    waiting::ahead(lesson)?;
    waiting::first(lesson)?;
    strides::strides(lesson, &device)?;
    types(lesson, &device)?;
    choose(lesson)?;
    contract(lesson, &device)
}

/// Shows errors, bytes and speed of each type.
fn types(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("types", "Other numbers")?;
    let shape = lesson.size((20, 2000), (13_200, 4096));
    lesson.say(&format!(
        "{} sequences of {}, coefficients near one, 8 x 64. The largest error of the outputs, as a part of the largest \
         output; beside it that of a loop which rounds its state to the stored format at every step:",
        shape.0, shape.1,
    ));
    let header = ["stored", "computed in", "bytes forward", "backward", "error", "narrow state"];
    let mut table = Table::new(header);
    row::<f32>(device, shape, &mut table)?;
    row::<f64>(device, shape, &mut table)?;
    let [kernel, narrow] = row::<bf16>(device, shape, &mut table)?;
    row::<f16>(device, shape, &mut table)?;
    row::<Complex<f32>>(device, shape, &mut table)?;
    row::<Complex<f64>>(device, shape, &mut table)?;
    lesson.table("types.csv", Kind::Computed, &table)?;
    lesson.value("bf16_error", format!("{:.1} %", 100.0 * kernel), Kind::Computed);
    lesson.value("bf16_narrow", format!("{:.0} %", 100.0 * narrow), Kind::Computed);

    lesson.say(
        "From the record of the H200: 10^9 elements per second for 13200 sequences of 4096, forward / backward, and \
         numbers that differ from the emulator's:",
    );
    let header =
        ["stored", "8 x 64", "4 x 128", "better one / roof", "numbers compared", "different"];
    let mut table = Table::new(header);
    for (name, bytes) in [
        ("f32", 4.0),
        ("f64", 8.0),
        ("bf16", 2.0),
        ("f16", 2.0),
        ("complex64", 8.0),
        ("complex128", 16.0),
    ] {
        let mut rates = [Vec::new(), Vec::new()];
        let mut ratios = Vec::new();
        for pass in Pass::ALL {
            let runs = times(pass, name)?;
            let mut best = f64::NAN;
            for (rates, size) in rates.iter_mut().zip(["8x64", "4x128"]) {
                let run = runs.median(&format!("types:pipe:{size}:0"), 4096);
                let run = run.ok_or("a run is missing in the record")?;
                rates.push(format!("{:.0}", run.gb_per_s / bytes / pass.arrays() as f64));
                best = run.ratio.max(best);
            }
            ratios.push(format!("{best:.2}"));
        }
        let [small, large] = rates.map(|rates| rates.join(" / "));
        let (words, different) = compared(name)?;
        table.row([
            name.to_owned(),
            small,
            large,
            ratios.join(" / "),
            words.to_string(),
            different.to_string(),
        ]);
    }
    lesson.table("types-speed.csv", Kind::Computed, &table)
}

fn row<S: Storage>(
    device: &Device,
    shape: (usize, usize),
    table: &mut Table,
) -> lesson::Result<[f64; 2]> {
    let found = errors(&engine::<S>(device)?, shape)?;
    let bytes = size_of::<S>();
    table.row([
        S::ELEMENT.to_string(),
        S::Accum::ELEMENT.to_string(),
        (3 * bytes).to_string(),
        (5 * bytes).to_string(),
        format!("{:.1e}", found.kernel),
        format!("{:.1e}", found.narrow_state),
    ]);
    Ok([found.kernel, found.narrow_state])
}

/// The configuration that the post uses at every length.
const FIXED: &str = "pipe:8x64:0";

/// Shows the best of the record at each length.
fn choose(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("choose", "Which one to take")?;
    lesson.say(
        "The fastest of the record's eight configurations, and 8 x 64 with memcode 0, which the post takes for every \
         length; f32, as a part of the roof:",
    );
    let header =
        ["length", "forward", "ratio", "8 x 64", "backward", "ratio, backward", "8 x 64, backward"];
    let mut table = Table::new(header);
    let mut naive = [0, 0];
    let lengths: Vec<usize> = speed(Pass::Forward)?.lengths();
    for &seq_len in &lengths {
        let mut row = vec![seq_len.to_string()];
        for pass in Pass::ALL {
            let runs = speed(pass)?;
            let (name, best) = runs.kernel("pipe", seq_len).ok_or("the record is empty")?;
            let fixed = runs.median(FIXED, seq_len).ok_or("the record is not complete")?;
            let parts: Vec<&str> = name.split(':').collect();
            let [_, size, memcode] = parts.as_slice() else { return Err("no pipe".into()) };
            naive[0] += usize::from(*memcode == "0");
            naive[1] += 1;
            row.push(format!("{}, {memcode}", size.replace('x', " x ")));
            row.push(format!("{:.2}", best.ratio));
            row.push(format!("{:.2}", fixed.ratio));
        }
        table.row(row);
    }
    lesson.table("choose.csv", Kind::Computed, &table)?;
    lesson.value("naive_wins", naive[0], Kind::Computed);
    lesson.value("of_lengths", naive[1], Kind::Computed);
    Ok(())
}

/// The longest sequence of the test contract that runs here; the tests run all of them.
const CONTRACT_LEN: usize = 257;

/// Runs each kernel through the test contract, in both passes.
fn contract(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("contract", "The contract")?;
    lesson.say(&format!("Both passes, both directions, sequences up to {CONTRACT_LEN}:"));
    let of_way = |memcode: Memcode| -> lesson::Result<Report> {
        let engine = KernelEngine::<f32>::new(device, pipe(memcode))?;
        let domain = Domain { max_len: CONTRACT_LEN, ..engine.domain() };
        Ok(contract::run::<f32>(&engine, &domain))
    };
    let reports = [
        of_way(Memcode::Shared)?,
        of_way(Memcode::SharedVectors)?,
        narrow::<bf16>(device)?,
        narrow::<f16>(device)?,
    ];
    let mut table = Table::new(["kernel", "element", "cases", "failed", "error / bound"]);
    for report in &reports {
        table.row([
            report.engine.clone(),
            report.element.to_owned(),
            report.cases.to_string(),
            report.failures.len().to_string(),
            format!("{:.2}", report.worst),
        ]);
    }
    lesson.table("contract.csv", Kind::Computed, &table)?;
    let failed: usize = reports.iter().map(|report| report.failures.len()).sum();
    lesson.check("the contract, cases that failed", failed as f64, 0.0);
    let worst = reports.iter().map(|report| report.worst).fold(0.0, f64::max);
    lesson.check("the contract, largest error / bound", worst, 1.0);
    Ok(())
}

fn narrow<S: linrec::device::Storage>(device: &Device) -> lesson::Result<Report> {
    let engine = KernelEngine::<S>::new(device, pipe(Memcode::Direct))?;
    let domain = Domain { max_len: CONTRACT_LEN, ..engine.domain() };
    Ok(contract::run_stored::<S>(&engine, &domain))
}
