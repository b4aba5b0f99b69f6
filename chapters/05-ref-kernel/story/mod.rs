//! The story of chapter 5: launches the reference kernel, compares it, and breaks it.
//!
//! The story shows which device runs the kernels, what the compiler makes of the source, and a
//! launch by hand with its checks. It runs each instance through the test contract, compares the
//! bits with chapter 1's loop, counts the sectors of access patterns, and lets the emulator and the
//! contract find planted mistakes. The module `measured` counts and times the kernel. `cargo xtask
//! record --check` compares the checks and values of a run with the committed record.

mod measured;

use ch01_sequential_loop::Loop;
use ch01_sequential_loop::linrec as sequential;
use lesson::{Kind, Lesson, Table};
use linrec::contract::{self, Domain};
use linrec::device::{Buffer, Device, KernelEngine, Recurrence, Storage};
use linrec::kernels::{ElementType, KernelChoice, OPTIONS, Pass, RefConfig, shipped_as};
use linrec::reference::{self, Rounding};
use linrec::simt::{Access, Module};
use linrec::{Direction, Element, Engine, Error, Options};
use ndarray::{Array1, Array2};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::by_hand::{self, CHOICE, THREADS};
use crate::fused::fused;
use crate::patterns::PATTERNS;
use crate::suspect::{self, Suspect};

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("ref:64@{}", device.label()));
    which(lesson, &device)?;
    compile(lesson)?;
    launch(lesson, &device)?;
    refuse(lesson)?;
    dispatch(lesson, &device)?;
    bits(lesson, &device)?;
    patterns(lesson)?;
    measured::sectors(lesson)?;
    measured::threads(lesson)?;
    measured::clock(lesson, &device)?;
    measured::speed(lesson)?;
    mistakes(lesson)
}

fn which(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("device", "Which device")?;
    if device.is_simt() {
        lesson.say(
            "The kernels run on the emulator: no NVIDIA GPU was found, or LINREC_DEVICE=simt asks for \
             it. The emulator executes the same PTX as a GPU does, an instruction of 32 lanes at a time, \
             and comes to the same bits. It also counts, and it explains mistakes.",
        );
        return Ok(());
    }
    let attributes = device.attributes();
    let (major, minor) = attributes.compute_capability;
    lesson.say(&format!(
        "The kernels run on {} ({}): {} SMs of architecture sm_{major}{minor}. What is \
         counted, and every mistake, comes from the emulator.",
        device.name(),
        device.label(),
        attributes.multiprocessors,
    ));
    Ok(())
}

/// Shows a few lines of the PTX, in which every operation names its rounding.
fn compile(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("ptx", "From source to PTX")?;
    let program = CHOICE.program(ElementType::F32);
    let ptx = shipped_as(&program).ok_or("the reference kernel is not shipped for f32")?;
    let symbol = ptx.symbol("linrec_ref_fwd<float, false>").unwrap_or_default();
    lesson.say(&format!(
        "{} was compiled with {}. In the PTX, linrec_ref_fwd<float, false> is called {symbol}. This is the \
         loop for the last elements, those that are left over when four steps are done at a time:",
        program.file,
        OPTIONS.join(" "),
    ));
    lesson.show(last_loop(ptx.text(), symbol).join("\n"));

    let lines = ptx.text().lines();
    let fused = lines.clone().filter(|line| line.trim().starts_with("fma.rn.f32")).count();
    lesson.say(&format!(
        "The four instances of this type have {} lines, with {fused} fma.rn.f32 among them: multiply, add, \
         and then round once, to nearest.",
        lines.count(),
    ));
    let unrounded = Module::parse(ptx.text())?.unrounded().len();
    lesson.check("operations that do not say how they round", unrounded as f64, 0.0);
    lesson.value("options", OPTIONS.join(" "), Kind::Computed);
    Ok(())
}

/// Returns the label and the lines of a kernel's last loop.
fn last_loop(ptx: &str, symbol: &str) -> Vec<String> {
    let entry = format!(".entry {symbol}(");
    let kernel = ptx.lines().skip_while(|line| !line.contains(&entry));
    let kernel: Vec<&str> = kernel.take_while(|line| *line != "}").collect();
    let start = kernel.iter().rposition(|line| line.contains(".pragma")).unwrap_or(0);
    let body = kernel[start..].iter().filter(|line| !line.contains(".pragma"));
    let end = body.clone().position(|line| line.contains("bra")).map_or(0, |last| last + 1);
    // The label that the loop branches to is on the line before.
    let label = kernel[start.saturating_sub(1)].to_owned();
    [label].into_iter().chain(body.take(end).map(|line| aligned(line.trim()))).collect()
}

/// Aligns the operands of a line in a column instead of after a tab.
fn aligned(line: &str) -> String {
    match line.split_once('\t') {
        Some((opcode, operands)) => format!("  {opcode:<14}{}", operands.trim_start()),
        None => format!("  {line}"),
    }
}

fn launch(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("launch", "A launch by hand")?;
    let inputs = [1.0, 2.0, 3.0, 4.0, 1.0, 0.0, 0.0, 0.0, 8.0, 4.0, 2.0, 1.0];
    let coeffs = [0.5, 0.5, 0.5, 0.5, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 0.0, 1.0];
    let (outputs, _) = by_hand::forward(device, &inputs, &coeffs, (3, 4))?;

    lesson.say("Three sequences of four elements, one thread for each:");
    let mut table = Table::new(["thread", "inputs", "coeffs", "outputs"]);
    let mut wrong = 0;
    for (thread, row) in (0..3).map(|thread| (thread, 4 * thread..4 * thread + 4)) {
        let numbers = [&inputs[row.clone()], &coeffs[row.clone()], &outputs[row.clone()]];
        let cells =
            numbers.map(|numbers| numbers.iter().map(f32::to_string).collect::<Vec<_>>().join(" "));
        table.row([thread.to_string()].into_iter().chain(cells));
        wrong += usize::from(
            sequential(&inputs[row.clone()], &coeffs[row.clone()], 0.0) != outputs[row],
        );
    }
    lesson.table("launch.csv", Kind::Computed, &table)?;
    lesson.say(&format!(
        "The launch had one block of {THREADS} threads. Of these, {} found that there is no sequence for \
         them, and left.",
        THREADS - 3,
    ));
    lesson.check("sequences that differ from chapter 1's loop", wrong as f64, 0.0);
    Ok(())
}

fn refuse(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("checks", "What is refused")?;
    let device = Device::simt();
    let mut noticed = 0;
    let mut tell = |lesson: &mut Lesson, what: &str, outcome: Result<(), Error>| {
        if let Err(error) = outcome {
            noticed += 1;
            lesson.say(&format!("{what}:"));
            lesson.quote(&error.to_string());
        }
    };
    let (six, five) = (device.upload(&[1.0_f32; 6])?, device.upload(&[1.0_f32; 5])?);
    let mut outputs = device.allocate::<f32>(6)?;

    let recurrence = Recurrence::<f32>::new(&device, CHOICE)?;
    let outcome = recurrence.forward_into(&six, &five, &mut outputs, (2, 3), Default::default());
    tell(lesson, "Two sequences of three, and five coefficients", outcome.map(drop));

    let crowded = Recurrence::<f32>::new(&device, KernelChoice::Ref(RefConfig { threads: 2048 }))?;
    let outcome = crowded.forward_into(&six, &six, &mut outputs, (2, 3), Default::default());
    tell(lesson, "A block of 2048 threads", outcome.map(drop));

    let kernel = by_hand::instance::<f32>(&device, Direction::Forward)?;
    let launch = kernel.launch(1, 64).arg(&six).arg(&six).arg(&mut outputs);
    let launch = launch.arg(None::<&Buffer<f32>>).arg(None::<&Buffer<f32>>);
    let outcome = launch.arg(2_i32).arg(3_i32).run(&device.stream());
    tell(lesson, "A 32-bit number where the kernel takes 64 bits", outcome.map(drop));

    let module = device.program(&CHOICE.program(ElementType::F32))?;
    let outcome = module.function("linrec_ref_fwd<int, false>");
    tell(lesson, "An instance that nobody compiled", outcome.map(drop));

    let ones = Array2::<f32>::ones((2, 3));
    let options = Options { initial: Some(Array1::ones(3).into()), ..Options::default() };
    let engine = KernelEngine::<f32>::new(&device, CHOICE)?;
    let outcome = engine.forward(ones.view(), ones.view(), &options);
    tell(lesson, "Three initial states for two sequences", outcome.map(drop));

    lesson.say(
        "The launch by hand does not look at the arrays' lengths. With five coefficients the kernel reads a \
         sixth, and the emulator stops it there:",
    );
    if let Err(error) = by_hand::forward(&device, &[1.0; 6], &[1.0; 5], (2, 3)) {
        noticed += 1;
        lesson.quote(&error.to_string());
    }
    lesson.check("wrong calls that went unnoticed", f64::from(6 - noticed), 0.0);
    Ok(())
}

/// The longest sequence of the test contract that runs here; the tests run all of them.
const MAX_LEN: usize = 65;

/// Lists the instances, and runs each type through the test contract.
fn dispatch(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("dispatch", "One source, many instances")?;
    lesson.say(&format!(
        "A type and a direction name an instance. This table has the forward ones, and what the contract \
         says of each type: both passes, both directions, sequences up to {MAX_LEN}. What is not shipped is \
         compiled on demand, by NVRTC.",
    ));
    let mut reports = vec![
        contract_of::<f32>(device)?,
        contract_of::<f64>(device)?,
        contract_of::<Complex<f32>>(device)?,
        contract_of::<Complex<f64>>(device)?,
    ]
    .into_iter();
    let mut table = Table::new(["element", "bytes", "instance", "PTX", "cases", "error / bound"]);
    let (mut worst, mut failures) = (0.0_f64, 0);
    for element in [
        ElementType::F32,
        ElementType::F64,
        ElementType::Complex64,
        ElementType::Complex128,
        ElementType::Bf16,
        ElementType::F16,
    ] {
        let shipped = shipped_as(&CHOICE.program(element)).is_some();
        let report = if shipped { reports.next() } else { None };
        let (cases, error) = match &report {
            Some(report) => (report.cases.to_string(), format!("{:.2}", report.worst)),
            None => (String::from("–"), String::from("–")),
        };
        if let Some(report) = &report {
            worst = worst.max(report.worst);
            failures += report.failures.len();
        }
        table.row([
            element.to_string(),
            element.bytes().to_string(),
            CHOICE.entry(element, Pass::Forward, Direction::Forward),
            String::from(if shipped { "shipped" } else { "on demand" }),
            cases,
            error,
        ]);
    }
    lesson.table("instances.csv", Kind::Computed, &table)?;
    lesson.check("the contract, largest error / bound", worst, 1.0);
    lesson.check("the contract, cases that failed", failures as f64, 0.0);
    Ok(())
}

fn contract_of<T: Element + Storage<Accum = T>>(
    device: &Device,
) -> lesson::Result<contract::Report> {
    let engine = KernelEngine::<T>::new(device, CHOICE)?;
    let domain = Domain { max_len: MAX_LEN, ..engine.domain() };
    Ok(contract::run::<T>(&engine, &domain))
}

/// Compares with the loop, and with the loop that rounds once per step.
fn bits(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("bits", "Against chapter 1, bit by bit")?;
    let shape = lesson.size((300, 1000), (13_200, 4096));
    let mut rng = StdRng::seed_from_u64(51);
    let mut draw =
        |low: f32, high: f32| Array2::from_shape_simple_fn(shape, || rng.random_range(low..high));
    let (inputs, coeffs) = (draw(-1.0, 1.0), draw(0.9, 1.0));
    let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());

    let kernel = KernelEngine::<f32>::new(device, CHOICE)?.forward(x, c, &options)?.outputs;
    let once = fused(x, c, &options)?.outputs;
    let twice = Loop.forward(x, c, &options)?.outputs;
    let exact = reference::forward(x, c, &options)?.outputs;
    let bound = reference::forward_bound(x, c, &options, Rounding { levels: 0, exp_ulps: 0.0 })?;
    let worst = |outputs: &Array2<f32>| {
        let errors = outputs.iter().zip(&exact).zip(&bound.outputs);
        errors.fold(0.0_f64, |worst, ((&y, exact), bound)| {
            worst.max((f64::from(y) - exact).abs() / bound)
        })
    };
    let mean = |outputs: &Array2<f32>| {
        let errors = outputs.iter().zip(&exact).map(|(&y, exact)| (f64::from(y) - exact).abs());
        errors.sum::<f64>() / outputs.len() as f64
    };

    let (num_seqs, seq_len) = shape;
    lesson.say(&format!(
        "{num_seqs} sequences of {seq_len} in f32, coefficients in [0.9, 1). The kernel uses fma, which rounds \
         a multiplication and an addition once. Chapter 1's loop rounds each; `fused` is that loop with \
         mul_add, Rust's name for fma.",
    ));
    let header = ["on the host", "numbers that differ", "mean error", "largest error / bound"];
    let mut table = Table::new(header);
    let differ = |outputs: &Array2<f32>| {
        kernel.iter().zip(outputs).filter(|(a, b)| a.to_bits() != b.to_bits()).count()
    };
    let mut add = |name: &str, outputs: &Array2<f32>| {
        let (error, worst) = (mean(outputs), worst(outputs));
        let cells = [differ(outputs).to_string(), format!("{error:.2e}"), format!("{worst:.3}")];
        table.row([name.to_owned()].into_iter().chain(cells));
        worst
    };
    add("fused: one rounding a step", &once);
    add("chapter 1's loop: two", &twice);
    add("(the kernel itself)", &kernel);
    lesson.table("bits.csv", Kind::Computed, &table)?;
    lesson.check("numbers that differ from the fused loop", differ(&once) as f64, 0.0);
    lesson.check("the kernel, largest error / bound", worst(&kernel), 1.0);
    let share = 100.0 * differ(&twice) as f64 / kernel.len() as f64;
    lesson.value("outputs", kernel.len(), Kind::Computed);
    lesson.value("differ", format!("{share:.0} %"), Kind::Computed);
    lesson.value("gain", format!("{:.1}", mean(&twice) / mean(&kernel)), Kind::Computed);
    if !device.is_simt() {
        let emulated =
            KernelEngine::<f32>::new(&Device::simt(), CHOICE)?.forward(x, c, &options)?;
        let differing = differ(&emulated.outputs) as f64;
        lesson.check("numbers that differ between GPU and emulator", differing, 0.0);
    }
    Ok(())
}

fn patterns(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("patterns", "What a request costs")?;
    lesson.say(
        "Each kernel of access_patterns.cu copies an array, with 4 warps on the emulator. A load instruction \
         of a warp is one request; it costs one sector of 32 bytes for every sector that some lane touches.",
    );
    let header = ["each lane takes", "sectors per load", "bytes fetched", "of them used"];
    let mut table = Table::new(header);
    for pattern in PATTERNS {
        let cost = pattern.cost()?;
        let sectors = cost.sectors_per_request(Access::GlobalLoad);
        table.row([
            pattern.to_string(),
            format!("{sectors}"),
            format!("{}", 32.0 * sectors),
            format!("{:.1} %", 100.0 * cost.used()),
        ]);
    }
    lesson.table("patterns.csv", Kind::Computed, &table)?;
    Ok(())
}

/// The kernels that the page's exercises ask about, with the key of the value.
const IN_EXERCISES: [(&str, &str); 4] = [
    ("found_unshifted", "unshifted_coefficient"),
    ("found_early_exit", "early_exit_before_shuffle"),
    ("found_reuse", "missing_barrier_before_reuse"),
    ("found_offset", "row_offset_32_bits"),
];

/// Shows two findings, and counts the others.
fn mistakes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("mistakes", "Mistakes, found")?;
    for (what, name) in [
        ("Without the line `if (sequence >= num_seqs) return;`", "out_of_bounds_tail"),
        ("Shared memory, read without a barrier", "missing_barrier_after_publishing"),
    ] {
        let suspect = Suspect::new(name)?;
        let [file, _] = suspect.files();
        lesson.say(&format!("{what} ({file}):"));
        match suspect.examine() {
            Some(finding) => lesson.quote(&finding.to_string()),
            None => lesson.show("nothing was found"),
        }
    }

    let (mut found, mut by_emulator, mut all) = (0, 0, 0);
    for name in Suspect::names() {
        all += 1;
        if let Some(finding) = Suspect::new(name)?.examine() {
            found += 1;
            // The emulator's reports name the line of the source.
            by_emulator += usize::from(finding.what.contains("kernels/broken/"));
            if let Some((key, _)) = IN_EXERCISES.iter().find(|(_, kernel)| *kernel == name) {
                lesson.value(key, format!("{}: {}", finding.case, finding.what), Kind::Computed);
            }
        }
    }
    lesson.say(&format!(
        "This chapter tries {all} of the kernels with a planted mistake. {by_emulator} are stopped by the emulator; {} \
         compute to the end, and the contract finds their numbers wrong.",
        found - by_emulator,
    ));
    lesson.value("broken", all, Kind::Computed);
    lesson.value("by_emulator", by_emulator, Kind::Computed);
    lesson.value("by_contract", found - by_emulator, Kind::Computed);
    lesson.check("planted mistakes that nothing finds", (all - found) as f64, 0.0);

    let kernel = by_hand::instance::<f32>(&Device::simt(), linrec::Direction::Forward)?;
    let row: Result<Vec<f32>, Error> = suspect::far_rows(&kernel);
    let off = (row?[63] - 2.0).abs();
    lesson.say(
        "The correct kernel finds its row at element 2^31, too: three arrays of 8 GiB are declared for it, of \
         which the emulator keeps what is touched.",
    );
    lesson.check("a row past element 2^31, error of its last output", f64::from(off), 0.0);
    Ok(())
}
