//! The same question on this machine's processor.

use linrec::cpu::{Cpu, Simd, roof};
use linrec::lesson::{self, Kind, Lesson, Table, clock};
use linrec::{Error, Options};
use ndarray::{ArrayView2, ArrayViewMut2};

/// Elements of arrays that stay in a core's cache, and of arrays that do not fit into any.
const SIZES: [(&str, usize); 2] = [("in cache", 1 << 15), ("in memory", 1 << 24)];

/// What vectors and threads buy.
pub fn cpu(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("cpu", "On the processor")?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    lesson.say(&format!(
        "The engine for processors, forward in f32, rows of 1024, as parts of its own roof with the same vectors and \
         threads; and how many times faster than with one thread and no vector instructions beyond the usual. This \
         machine has {threads} threads.",
    ));
    let mut table = Table::new(["arrays", "vectors", "threads", "/ roof", "times faster"]);
    for (place, elements) in SIZES {
        let mut first = None;
        for simd in Simd::ALL.into_iter().rev() {
            let Some(cpu) = Cpu::new().with_simd(simd) else { continue };
            for single in [true, false] {
                // Threads have nothing to do for arrays that one core has in its cache.
                if !single && elements == SIZES[0].1 {
                    continue;
                }
                let cpu = if single { cpu.clone().single_threaded() } else { cpu.clone() };
                let [ours, theirs] = race(&cpu, elements)?;
                let base = *first.get_or_insert(ours);
                table.row([
                    place.to_owned(),
                    simd.to_string(),
                    if single { String::from("1") } else { threads.to_string() },
                    format!("{:.2}", theirs / ours),
                    format!("{:.1}", base / ours),
                ]);
            }
        }
    }
    lesson.table("cpu.csv", Kind::Timed, &table)
}

/// Seconds of the engine and of its roof.
fn race(cpu: &Cpu, elements: usize) -> Result<[f64; 2], Error> {
    let (x, c) = (vec![1.0_f32; elements], vec![0.5_f32; elements]);
    let (mut y, mut sums) = (vec![0.0_f32; elements], vec![0.0_f32; elements]);
    let shape = (elements / 1024, 1024);
    let options = Options::default();
    // As often as it takes for a few milliseconds.
    let repeats = (1_usize << 22).div_ceil(elements);
    let view = |array| ArrayView2::from_shape(shape, array).map_err(|_| too_large(elements));
    let (x_rows, c_rows) = (view(&x[..])?, view(&c[..])?);
    let mut failed = Ok(());
    let mut ours = || {
        for _ in 0..repeats {
            let rows = ArrayViewMut2::from_shape(shape, &mut y[..]);
            let run = rows
                .map_err(|_| too_large(elements))
                .and_then(|rows| cpu.forward_into(x_rows, c_rows, &options, rows).map(drop));
            if let Err(error) = run {
                failed = Err(error);
            }
        }
    };
    let mut theirs = || {
        for _ in 0..repeats {
            roof::forward(cpu, &x, &c, &mut sums);
        }
    };
    let times = clock::medians(9, [&mut ours, &mut theirs]);
    failed?;
    Ok(times.map(|time| time.as_secs_f64()))
}

fn too_large(elements: usize) -> Error {
    Error::OutOfMemory { operation: "forward", bytes: 4 * elements }
}
