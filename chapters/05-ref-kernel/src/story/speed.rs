//! How fast the emulator itself is.

use std::time::Duration;

use ch01_sequential_loop::Loop;
use linrec::device::{Device, ForwardOptions, Recurrence};
use linrec::lesson::{self, Kind, Lesson, Table, clock};
use linrec::{Engine, Options};
use ndarray::Array2;
use rayon::{ThreadPoolBuilder, current_num_threads};

use crate::by_hand::CHOICE;

/// Measurements of each; their median counts.
const RUNS: usize = 15;

/// Measures the kernel on the emulator, on one thread of this machine and on all, beside chapter 1's loop.
pub fn speed(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("speed", "How fast the emulator is")?;
    let shape @ (num_seqs, seq_len) = lesson.size((4096, 512), (13_200, 4096));
    let device = Device::simt();
    let (inputs, coeffs) = (Array2::from_elem(shape, 1.0_f32), Array2::from_elem(shape, 0.5_f32));
    let copies = [&inputs, &coeffs].map(|array| device.upload(array.as_slice().unwrap_or(&[])));
    let [x, c] = copies;
    let (x, c, mut y) = (x?, c?, device.allocate::<f32>(num_seqs * seq_len)?);
    let recurrence = Recurrence::<f32>::new(&device, CHOICE)?;
    let mut launch = || recurrence.forward_into(&x, &c, &mut y, shape, ForwardOptions::default());
    // The two that are timed only say that they failed; this one says why.
    launch()?;

    let pool = ThreadPoolBuilder::new().num_threads(1).build()?;
    let one = clock::median(RUNS, || drop(pool.install(&mut launch)));
    let all = clock::median(RUNS, || drop(launch()));
    let options = Options::default();
    let host = clock::median(RUNS, || drop(Loop.forward(inputs.view(), coeffs.view(), &options)));

    let speed = |time: Duration| (num_seqs * seq_len) as f64 / time.as_secs_f64() / 1e6;
    let threads = current_num_threads();
    lesson.say(&format!(
        "{num_seqs} sequences of {seq_len} in f32, forward, medians of {RUNS} runs on this machine's processor. \
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
