//! The cost of each way to compute the scan.

use std::cell::RefCell;
use std::time::Duration;

use bench::clock;
use lesson::{Kind, Lesson, Table};
use linrec::cpu::{Cpu, roof};

use crate::channel::slice;
use crate::competitors::{Problem, Unfused, by_time, fused, plain};
use crate::golden::Given;
use crate::{post, selective_scan};

// The selective scan of the post against plain loops and the speed of the memory.

/// Medians of interleaved runs on a given number of threads.
struct Times {
    roof: Duration,
    plain: Duration,
    expand: Duration,
    recurrence: Duration,
    contract: Duration,
    unfused: Duration,
    by_channel: Duration,
    fused: Duration,
}

pub(super) fn speed(lesson: &mut Lesson, given: &Given<f32>) -> lesson::Result {
    lesson.step("speed", "How fast")?;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let runs = lesson.size(3, 9);
    lesson.say(&format!(
        "The post's sizes in f32, {runs} interleaved runs of each way, on 1 core and on {cores}. The floor is what \
         the bytes of the unfused arrays take at the speed of an element-wise addition of arrays of the same size.",
    ));
    let problem = Problem::of(given)?;
    let mut unfused = Unfused::new(&problem);
    let one = in_pool(1, || measure(runs, given, &problem, &mut unfused))?;
    let all = in_pool(cores, || measure(runs, given, &problem, &mut unfused))?;

    let large = (4 * post::CHANNELS * post::STATES * post::LEN) as f64;
    let floor = |times: &Times| Unfused::bytes(&problem) / (3.0 * large) * times.roof.as_secs_f64();
    let mut table = Table::new([
        "way",
        "ms, 1 core",
        "ms, all",
        "plain / this, 1 core",
        "plain / this, all",
        "floor / this, 1 core",
        "floor / this, all",
    ]);
    let ways = [
        ("plain loops", one.plain, all.plain),
        ("unfused: whole arrays", one.unfused, all.unfused),
        ("channel by channel", one.by_channel, all.by_channel),
        ("one fused loop", one.fused, all.fused),
    ];
    for (name, on_one, on_all) in ways {
        let (on_one, on_all) = (on_one.as_secs_f64(), on_all.as_secs_f64());
        let cells = [
            1e3 * on_one,
            1e3 * on_all,
            one.plain.as_secs_f64() / on_one,
            all.plain.as_secs_f64() / on_all,
            floor(&one) / on_one,
            floor(&all) / on_all,
        ];
        let texts = cells.iter().enumerate().map(|(column, cell)| match column {
            0 | 1 => format!("{cell:.0}"),
            _ => format!("{cell:.2}"),
        });
        table.row([name.to_owned()].into_iter().chain(texts));
    }
    lesson.table("speed.csv", Kind::Timed, &table)?;
    for (key, times) in [("one", &one), ("all", &all)] {
        let bandwidth = 3.0 * large / times.roof.as_secs_f64();
        let ratio = |a: f64, b: Duration| format!("{:.2}", a / b.as_secs_f64());
        let plain = times.plain.as_secs_f64();
        let values = [
            ("bandwidth", format!("{:.1}", bandwidth * 1e-9)),
            ("floor", format!("{:.0}", 1e3 * floor(times))),
            ("unfused_of_floor", ratio(floor(times), times.unfused)),
            ("channel_of_floor", ratio(floor(times), times.by_channel)),
            ("unfused_over_plain", ratio(plain, times.unfused)),
            ("channel_over_plain", ratio(plain, times.by_channel)),
            ("fused_over_plain", ratio(plain, times.fused)),
        ];
        for (name, value) in values {
            lesson.value(&format!("{name}_{key}"), value, Kind::Timed);
        }
    }
    lesson.value("cores", cores, Kind::Timed);
    lesson.say(&format!(
        "The addition moves {:.1} GB/s on one core and {:.1} on all. So the floor is {:.0} ms and {:.0} ms.",
        3.0 * large / one.roof.as_secs_f64() * 1e-9,
        3.0 * large / all.roof.as_secs_f64() * 1e-9,
        1e3 * floor(&one),
        1e3 * floor(&all),
    ));
    parts(lesson, &all, large)
}

/// Breaks the unfused scan's time down into its passes.
fn parts(lesson: &mut Lesson, times: &Times, large: f64) -> lesson::Result {
    lesson.say("What the unfused scan's time on all cores is made of, pass by pass:");
    let mut table =
        Table::new(["pass", "large arrays moved", "ms", "floor, ms", "floor / this", "computes"]);
    let passes = [
        ("expand", 2.0, times.expand, "an exponential and three products per element"),
        ("recurrence", 3.0, times.recurrence, "the recurrence"),
        ("contract", 1.0, times.contract, "a product and a sum per element"),
    ];
    for (name, arrays, time, computes) in passes {
        let floor = arrays / 3.0 * times.roof.as_secs_f64();
        table.row([
            name.to_owned(),
            format!("{arrays}"),
            format!("{:.0}", 1e3 * time.as_secs_f64()),
            format!("{:.0}", 1e3 * floor),
            format!("{:.2}", floor / time.as_secs_f64()),
            computes.to_owned(),
        ]);
    }
    lesson.table("parts.csv", Kind::Timed, &table)?;
    let expand = times.expand.as_secs_f64() - 2.0 / 3.0 * times.roof.as_secs_f64();
    let elements = large / 4.0;
    lesson.value("expand_ns", format!("{:.1}", expand.max(0.0) / elements * 1e9), Kind::Timed);
    Ok(())
}

/// Runs `work` on `threads` threads.
fn in_pool<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(work),
        // Without a new pool, the work runs in the current one.
        Err(_) => work(),
    }
}

fn measure(
    runs: usize,
    given: &Given<f32>,
    problem: &Problem,
    unfused: &mut Unfused,
) -> Result<Times, linrec::Error> {
    let cpu = Cpu::new();
    let arguments = given.arguments();
    let flat = |mixing: &crate::MixingArray<f32>| {
        by_time(mixing.as_slice().unwrap_or_default(), post::LEN)
    };
    let (b, c) = (flat(&given.b), flat(&given.c));
    let mut y = vec![0.0; given.u.len()];
    let (unfused, y) = (RefCell::new(unfused), RefCell::new(&mut y[..]));
    let failed = RefCell::new(Ok(()));
    let keep = |result: Result<(), linrec::Error>| {
        if result.is_err() {
            *failed.borrow_mut() = result;
        }
    };
    let [roof, plain, expand, recurrence, contract, whole, by_channel, fused] = clock::medians(
        runs,
        [
            &mut || {
                let Unfused { inputs, coeffs, outputs } = &mut **unfused.borrow_mut();
                let sources = [inputs, coeffs].map(|array| &*slice(array));
                roof::forward(&cpu, sources[0], sources[1], slice(outputs));
            },
            &mut || plain(problem, &mut y.borrow_mut()),
            &mut || unfused.borrow_mut().expand(problem),
            &mut || keep(unfused.borrow_mut().recurrence(&cpu)),
            &mut || unfused.borrow().contract(problem, &mut y.borrow_mut()),
            &mut || keep(unfused.borrow_mut().scan(&cpu, problem, &mut y.borrow_mut())),
            &mut || keep(selective_scan(&cpu, &arguments).map(drop)),
            &mut || fused(problem, [&b, &c], &mut y.borrow_mut()),
        ],
    );
    failed.into_inner()?;
    let unfused = whole;
    Ok(Times { roof, plain, expand, recurrence, contract, unfused, by_channel, fused })
}
