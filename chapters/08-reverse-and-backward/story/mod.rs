//! The story of chapter 8: reverses the pipe kernel, then derives its backward pass from the trace.
//!
//! The story watches which thread loads which element in both directions, and the loads of the
//! backward pass that are shifted by one position. It repeats chapter 4's example on the kernel,
//! counts the bytes of a backward pass next to an H200's time, and shows which kinds of
//! coefficients reveal a planted mistake. The pictures are in the module `pictures`. `cargo xtask
//! record --check` compares the checks and values of a run with the committed record.

mod pictures;

use bench::draw::{differ, near_one};
use ch04_gradient::ThroughForward;
use lesson::plot;
use lesson::{Kind, Lesson, Table};
use linrec::contract::suspect::examine;
use linrec::device::{Device, KernelEngine};
use linrec::kernels::{Memcode, Pass};
use linrec::simt::Access;
use linrec::{Direction, Engine, Options};
use ndarray::{Array1, Axis, Slice, array};

use self::pictures::{Rows, Windows};
use crate::count::{count, of};
use crate::record::passes;
use crate::watch::{Watched, watch};
use crate::{TILE_LEN, pipe, suspect};

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("pipe:8x64:0@{}", device.label()));
    direction(lesson, &device)?;
    shift(lesson)?;
    ends(lesson, &device)?;
    bytes(lesson)?;
    mistakes(lesson)
}

/// The length of the row, as in chapter 6.
const DIRECTION_STEPS: usize = 77;

/// Watches a warp load a row in both directions.
fn direction(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("direction", "The other way")?;
    let [forward, reverse] = [Direction::Forward, Direction::Reverse]
        .map(|direction| watch(pipe(Memcode::Direct), Pass::Forward, direction, DIRECTION_STEPS));
    let (forward, reverse) = (forward?, reverse?);
    lesson.say(&format!(
        "One warp, a row of {DIRECTION_STEPS} elements. The inputs that a thread loads, in the order of its registers, are at \
         these positions of the row:",
    ));
    let mut table = Table::new(["thread", "forward", "reverse"]);
    let of = |watched: &Watched, thread: u32| -> Vec<usize> {
        let mine = watched.loads.iter().filter(|load| load.array == 0 && load.thread == thread);
        mine.map(|load| load.position).collect()
    };
    let text =
        |positions: &[usize]| positions.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let mut unmirrored = 0;
    for thread in 0..32 {
        let (there, back) = (of(&forward, thread), of(&reverse, thread));
        unmirrored +=
            usize::from(!there.iter().map(|at| DIRECTION_STEPS - 1 - at).eq(back.iter().copied()));
        if [0, 1, 12, 13, 31].contains(&thread) {
            table.row([thread.to_string(), text(&there), text(&back)]);
        }
    }
    lesson.table("direction.csv", Kind::Computed, &table)?;
    lesson.check("threads that do not hold the mirror image", unmirrored as f64, 0.0);
    let rows = |watched: &Watched| {
        (0..DIRECTION_STEPS)
            .map(|at| watched.loads_of(0, at).next().map_or(0, |load| load.thread))
            .collect()
    };
    let picture = Rows { rows: vec![("forward", rows(&forward)), ("reverse", rows(&reverse))] };
    let svg = plot::grid(&[&picture], 1)?;
    lesson.figure("direction.svg", "Which thread holds which element", Kind::Computed, &svg)?;

    // Three tiles, of which the last one is not full.
    let (x, c) = near_one((20, 1300), 81);
    let mirrored = |array: &ndarray::Array2<f32>| {
        array.slice_axis(Axis(1), Slice::new(0, None, -1)).to_owned()
    };
    let engine = KernelEngine::<f32>::new(device, pipe(Memcode::Direct))?;
    let back = Options { direction: Direction::Reverse, ..Options::default() };
    let walked_back = engine.forward(x.view(), c.view(), &back)?.outputs;
    let (mx, mc) = (mirrored(&x), mirrored(&c));
    let of_mirror = engine.forward(mx.view(), mc.view(), &Options::default())?.outputs;
    lesson.say(
        "20 sequences of 1300, in reverse; and forward, with every row written from its end to its beginning before \
         and after:",
    );
    let different = differ(&walked_back, &mirrored(&of_mirror));
    lesson.check("outputs that differ from the mirrored row's", different, 0.0);
    Ok(())
}

/// The length of the row: a full tile, and a tile that is not full.
const SHIFT_STEPS: usize = 600;

/// Watches a block in the backward pass.
fn shift(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("shift", "Shifted by one")?;
    let watched = watch(pipe(Memcode::Direct), Pass::Backward, Direction::Forward, SHIFT_STEPS)?;
    let border = SHIFT_STEPS - TILE_LEN;
    lesson.say(&format!(
        "The backward pass of a row of {SHIFT_STEPS}, on a block of {} threads. It begins at the end: its first tile has the \
         positions {} to {border}, the second {} to 0. What some threads load:",
        watched.threads,
        SHIFT_STEPS - 1,
        border - 1,
    ));
    let mut table = Table::new(["tile", "thread", "d_outputs", "coeffs", "outputs"]);
    for (tile, thread) in [(0, 0), (0, 1), (0, 63), (1, 0), (1, 1), (1, 63)] {
        let range = |array| {
            let mine = watched
                .loads
                .iter()
                .filter(|load| (load.array, load.tile, load.thread) == (array, tile, thread));
            let at: Vec<usize> = mine.map(|load| load.position).collect();
            // Thread 0's last load is for the gradient of the initial state.
            let at = if array == 1 && at.len() > 1 && at.ends_with(&[0]) && at[at.len() - 2] > 1 {
                &at[..at.len() - 1]
            } else {
                &at[..]
            };
            match at {
                [] => String::from("–"),
                [one] => one.to_string(),
                [first, .., last] => format!("{first} to {last}"),
            }
        };
        table.row([tile.to_string(), thread.to_string(), range(0), range(1), range(2)]);
    }
    lesson.table("shift.csv", Kind::Computed, &table)?;

    let count =
        |wanted: &dyn Fn(usize) -> bool| (0..SHIFT_STEPS).filter(|&at| wanted(at)).count() as f64;
    let owner =
        |array, at: usize| watched.loads_of(array, at).next().map(|load| (load.tile, load.thread));
    let astray = count(&|at| {
        let coeff = at + 1 < SHIFT_STEPS && owner(1, at + 1) != owner(0, at);
        coeff || (at > 0 && owner(2, at - 1) != owner(0, at))
    });
    lesson.check("steps whose shifted elements another thread loads", astray, 0.0);
    let twice = count(&|at| (0..3).any(|array| watched.loads_of(array, at).count() > 1));
    lesson.check("elements that are loaded twice", twice, 0.0);
    let once = |array, at| {
        watched.stores.iter().filter(|store| (store.array, store.position) == (array, at)).count()
            == 1
    };
    lesson.check(
        "gradients that are not stored once",
        count(&|at| !once(0, at) || !once(1, at)),
        0.0,
    );

    let svg = plot::grid(&[&windows(&watched, border)], 1)?;
    lesson.figure("shift.svg", "Who loads what on the way back", Kind::Computed, &svg)
}

/// Selects the beginning of the row, the border between its tiles, and its end.
fn windows(watched: &Watched, border: usize) -> Windows {
    let windows = vec![0..3, border - 3..border + 4, SHIFT_STEPS - 10..SHIFT_STEPS];
    let names = ["d_outputs", "coeffs", "outputs"];
    let arrays = names.into_iter().enumerate().map(|(array, name)| {
        let owner =
            |at: usize| watched.loads_of(array, at).next().map(|load| (load.tile, load.thread));
        (name, windows.iter().map(|window| window.clone().map(owner).collect()).collect())
    });
    Windows { arrays: arrays.collect(), windows: windows.clone() }
}

/// Runs chapter 4's example on the kernel, and a larger one.
fn ends(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("ends", "The two ends")?;
    let engine = KernelEngine::<f32>::new(device, pipe(Memcode::Direct))?;
    let (x, c) = (array![[1.0_f32, 1.0, 1.0, 1.0]], array![[7.0_f32, 2.0, 3.0, 5.0]]);
    let d_outputs = array![[1.0_f32, 0.0, 0.0, 1.0]];
    let options = Options { initial: Some(array![4.0].into()), ..Options::default() };
    let outputs = engine.forward(x.view(), c.view(), &options)?.outputs;
    let gradients = engine.backward(d_outputs.view(), c.view(), outputs.view(), &options)?;
    lesson.say(
        "Chapter 4's four steps, with all inputs 1 and the initial state 4, on the pipe kernel. The loss is y_0 + y_3:",
    );
    let mut table = Table::new(["l", "c", "y", "d_output", "d_input", "d_coeff"]);
    for l in 0..4 {
        let row = [&c, &outputs, &d_outputs, &gradients.d_inputs, &gradients.d_coeffs];
        let numbers = row.map(|array| array[[0, l]].to_string());
        table.row([l.to_string()].into_iter().chain(numbers));
    }
    lesson.table("ends.csv", Kind::Computed, &table)?;
    let d_initial = gradients.d_initial[0];
    lesson.say(&format!("And the gradient of the initial state: {d_initial}."));
    let by_hand = [array![[31.0, 15.0, 5.0, 1.0]], array![[31.0 * 4.0, 15.0 * 29.0, 295.0, 178.0]]];
    let off = differ(&gradients.d_inputs, &by_hand[0]) + differ(&gradients.d_coeffs, &by_hand[1]);
    let off = off + f64::from(d_initial - 7.0 * 31.0).abs();
    lesson.check("numbers that differ from the results by hand", off, 0.0);

    let shape @ (num_seqs, seq_len) = lesson.size((50, 1300), (13_200, 4096));
    lesson.say(&format!(
        "{num_seqs} sequences of {seq_len}, both directions. Chapter 4 makes a backward pass of this kernel's forward \
         pass, with arrays that are shifted in memory. Numbers that differ from the backward kernel's:",
    ));
    let mut table = Table::new(["direction", "d_inputs", "d_coeffs", "d_initial"]);
    let mut different = 0.0;
    let through = ThroughForward(KernelEngine::<f32>::new(device, pipe(Memcode::Direct))?);
    for direction in [Direction::Forward, Direction::Reverse] {
        let (d_outputs, coeffs) = near_one(shape, 82);
        let (outputs, _) = near_one(shape, 83);
        let initial = Array1::from_shape_fn(num_seqs, |row| (row as f32).sin());
        let options = Options { direction, initial: Some(initial.into()), ..Options::default() };
        let (d, c, y) = (d_outputs.view(), coeffs.view(), outputs.view());
        let kernel = engine.backward(d, c, y, &options)?;
        let shifted = through.backward(d, c, y, &options)?;
        let inputs = differ(&kernel.d_inputs, &shifted.d_inputs);
        let coeffs = differ(&kernel.d_coeffs, &shifted.d_coeffs);
        let initial = differ(&kernel.d_initial, &shifted.d_initial);
        different += inputs + coeffs;
        let name = format!("{direction:?}").to_lowercase();
        table.row([name, inputs.to_string(), coeffs.to_string(), initial.to_string()]);
    }
    lesson.table("words.csv", Kind::Computed, &table)?;
    lesson.check("gradients that differ from chapter 4's way", different, 0.0);
    Ok(())
}

const SHAPE: (usize, usize) = (10, 4096);

/// Counts the bytes, and shows the time that an H200 took to move them.
fn bytes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("bytes", "Three reads, two writes")?;
    lesson.say(&format!(
        "{} sequences of {} in f32, as the emulator counts them; and chapter 4's way, whose four operations each read \
         and write whole arrays:",
        SHAPE.0, SHAPE.1,
    ));
    let header = ["pass", "arrays read", "arrays written", "bytes per element, counted"];
    let mut table = Table::new(header);
    let elements = (SHAPE.0 * SHAPE.1) as f64;
    let mut beyond = 0.0_f64;
    for (pass, name, read, written) in
        [(Pass::Forward, "forward", 2, 1), (Pass::Backward, "backward", 3, 2)]
    {
        let counters = count::<f32>(pipe(Memcode::Direct), pass, SHAPE)?;
        let loads = of(&counters, Access::GlobalLoad).bytes as f64 / elements;
        let stores = of(&counters, Access::GlobalStore).bytes as f64 / elements;
        let floor = f64::from(4 * (read + written));
        beyond += (loads + stores - floor).max(0.0);
        table.row([
            name.to_owned(),
            read.to_string(),
            written.to_string(),
            format!("{:.4}", loads + stores),
        ]);
    }
    table.row(["backward, chapter 4's way", "6", "4", "40"]);
    lesson.table("bytes.csv", Kind::Computed, &table)?;
    lesson.check("bytes per element beyond 12 and 20", beyond, 0.0);

    lesson.say(
        "From the record of an H200, 13200 sequences of 4096, medians. The roof of a pass reads and writes as many \
         arrays, and computes next to nothing:",
    );
    let header = ["pass", "kernel 4 x 128, ms", "roof, ms", "roof / kernel", "GB/s"];
    let mut table = Table::new(header);
    let mut ms = [0.0; 2];
    for (number, pass) in Pass::ALL.into_iter().enumerate() {
        let runs = passes(pass)?;
        let median = |engine| runs.median(engine, 4096).ok_or("a run is missing in the record");
        let (kernel, roof) = (median("pipe:4x128:0")?, median("roof")?);
        ms[number] = kernel.ms;
        table.row([
            pass.name().to_owned(),
            format!("{:.3}", kernel.ms),
            format!("{:.3}", roof.ms),
            format!("{:.2}", roof.ms / kernel.ms),
            format!("{:.0}", kernel.gb_per_s),
        ]);
    }
    lesson.table("floor.csv", Kind::Computed, &table)?;
    lesson.value("times_longer", format!("{:.2}", ms[1] / ms[0]), Kind::Computed);
    Ok(())
}

/// The length of the longest cases.
const MISTAKES_LEN: usize = 65;

/// Tries the broken kernel on each kind of coefficients.
fn mistakes(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("mistakes", "A mistake to be found")?;
    let (engine, domain) = suspect::load()?;
    lesson.say(&format!(
        "{}, which breaks no rule of the machine. The contract's cases up to {MISTAKES_LEN} steps, by their coefficients:",
        suspect::NAME,
    ));
    let mut table = Table::new(["coefficients", "cases", "wrong"]);
    let mut wrong = 0;
    for verdict in suspect::by_kind(&engine, &domain, MISTAKES_LEN) {
        let (cases, mistaken) = verdict.cases;
        wrong += mistaken;
        table.row([format!("{:?}", verdict.kind), cases.to_string(), mistaken.to_string()]);
    }
    lesson.table("mistakes.csv", Kind::Computed, &table)?;
    let found = examine(&engine, &domain).map(|found| found.to_string()).unwrap_or_default();
    lesson.say("And of the whole table, up to 1000 steps, the first that goes wrong, the longest sequences first:");
    lesson.quote(&found);
    lesson.check(
        "mistakes that went unnoticed",
        u8::from(wrong == 0 || found.is_empty()).into(),
        0.0,
    );
    let right = KernelEngine::<f32>::new(&Device::simt(), pipe(Memcode::Direct))?;
    let [inputs, initial] = suspect::shared_coefficient(&engine, &right, 1000)?;
    let off = f64::from(inputs.max(initial));
    lesson.check("with one coefficient for all steps, the mistake's largest error", off, 0.0);
    Ok(())
}
