//! What the pieces cost: starting threads, and a step of either loop.

use std::hint::black_box;
use std::thread;

use ch01_sequential_loop::linrec_into;
use linrec::lesson::{Kind, Lesson, Result, Table, clock};
use ndarray::Array1;

use super::{around_one, random};
use crate::Part;

/// Seconds: one thread, and one element of each loop.
pub struct Pieces {
    /// Starting a thread, and waiting for its end.
    pub thread: f64,
    /// The plain loop of chapter 1.
    pub plain: f64,
    /// The loop that also keeps the products.
    pub scan: f64,
    /// Adding what comes from before.
    pub combine: f64,
}

/// Threads that do nothing.
pub fn cost_of_a_thread(lesson: &mut Lesson) -> Result {
    lesson.step("threads", "What a thread costs")?;
    let cores = thread::available_parallelism().map_or(1, |n| n.get());
    lesson.say(&format!(
        "This machine has {cores} cores. Threads with nothing to do, started and waited for:"
    ));
    let mut table = Table::new(["threads", "all of them", "each"]);
    for threads in [1, 4, 16, 64] {
        let all = clock::median(21, || start(threads));
        table.row([threads.to_string(), clock::text(all), clock::text(all / threads)]);
    }
    lesson.value("cores", cores, Kind::Timed);
    lesson.table("threads.csv", Kind::Timed, &table)
}

fn start(threads: u32) {
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| black_box(()));
        }
    });
}

/// One element of the plain loop, of the loop that keeps products, and of the combining loop.
pub fn cost_of_a_step(lesson: &mut Lesson) -> Result<Pieces> {
    lesson.step("pieces", "What a step costs")?;
    lesson.say("One thread, 65,536 elements, nanoseconds per element:");
    let around = measure(around_one(1 << 16))?;
    let fading = measure(random(1 << 16, 0.98..1.0))?;
    let mut table = Table::new(["loop", "c in [0.99, 1.01)", "c in [0.98, 1)"]);
    let names = ["plain (chapter 1)", "with products", "combining"];
    for (i, name) in names.into_iter().enumerate() {
        table.row([name.to_owned(), format!("{:.3}", around[i]), format!("{:.3}", fading[i])]);
    }
    lesson.table("pieces.csv", Kind::Timed, &table)?;
    let [plain, scan, combine] = around;
    lesson.say(&format!(
        "A step is not a step: combining took {:.2} of the time of the plain loop. Its elements do \
         not wait for each other. Keeping the products took {:.2} times the plain loop with \
         coefficients around 1, and {:.2} times with coefficients below 1.",
        combine / plain,
        scan / plain,
        fading[1] / fading[0],
    ));
    let normal = smallest_normal(1 << 16);
    lesson.say(&format!(
        "Below 1 the products shrink. Here they leave the range of normal f32 numbers after \
         {normal} elements; from there on they are subnormal numbers, for which many processors \
         take extra time."
    ));
    lesson.value("normal_until", normal, Kind::Computed);
    lesson.value("combine_share", format!("{:.2}", combine / plain), Kind::Timed);
    lesson.value("scan_share", format!("{:.2}", scan / plain), Kind::Timed);
    lesson.value("fading_share", format!("{:.2}", fading[1] / fading[0]), Kind::Timed);
    let [plain, scan, combine] = around.map(|nanos| nanos * 1e-9);
    let thread = clock::median(51, || start(1)).as_secs_f64();
    Ok(Pieces { thread, plain, scan, combine })
}

/// How many products of coefficients in [0.98, 1) are normal numbers.
fn smallest_normal(len: usize) -> usize {
    let products = random(len, 0.98..1.0).1.cumprod(ndarray::Axis(0));
    products.iter().take_while(|product| product.is_normal()).count()
}

/// Nanoseconds per element of the three loops.
fn measure((x, c): (Array1<f32>, Array1<f32>)) -> Result<[f64; 3]> {
    let [mut y, mut local] = [Array1::zeros(x.len()), Array1::zeros(x.len())];
    let mut added = Array1::zeros(x.len());
    let mut part = Part::new(x.view(), c.view(), local.view_mut())?;
    let mut other = Part::new(x.view(), c.view(), added.view_mut())?;
    other.scan(0.0);
    let times = clock::medians(
        15,
        [
            &mut || _ = black_box(linrec_into(x.view(), c.view(), 0.0, y.view_mut())),
            &mut || _ = black_box(part.scan(0.0)),
            &mut || other.combine(black_box(1e-9)),
        ],
    );
    Ok(times.map(|time| time.as_secs_f64() * 1e9 / x.len() as f64))
}
