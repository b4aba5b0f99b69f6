//! What the loop costs, against an element-wise addition of the same arrays.

use std::hint::black_box;
use std::time::Duration;

use linrec::lesson::{Kind, Lesson, Result, Table, clock};
use ndarray::{Array1, Zip};

use super::random;
use crate::linrec_into;
use crate::side_by_side::side_by_side;

/// How many sequences go side by side.
const N: usize = 16;

/// The loop, the addition and the loop over many sequences side by side, from cache to memory.
pub fn loop_against_add(lesson: &mut Lesson) -> Result {
    lesson.step("cost", "What it costs")?;
    lesson.say(
        "The loop, against an addition x + c of the same arrays: both read 8 bytes and write 4 for \
         every element. Then the loop once more, over 16 sequences in step: element 0 of all 16, \
         element 1 of all 16, and so on.",
    );
    let lengths = lesson.size(
        vec![1 << 10, 1 << 14, 1 << 18, 1 << 22],
        vec![1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26],
    );
    let mut table = Table::new([
        "elements",
        "loop (ns/element)",
        "16 in step (ns/element)",
        "addition (ns/element)",
        "loop / addition",
    ]);
    let bar = linrec::lesson::progress(lengths.len(), "measuring");
    let mut ratios = Vec::new();
    for &len in &lengths {
        let [looped, in_step, added] = measure(len);
        let ratio = looped / added;
        let cells = [looped, in_step, added].map(|nanos| format!("{nanos:.3}"));
        table.row([vec![len.to_string()], cells.to_vec(), vec![format!("{ratio:.1}")]].concat());
        ratios.push(ratio);
        if len == 1 << 14 {
            lesson.value("loop_ns", format!("{looped:.2}"), Kind::Timed);
            lesson.value("in_step_ns", format!("{in_step:.3}"), Kind::Timed);
            lesson.value("add_ns", format!("{added:.3}"), Kind::Timed);
            lesson.value("loop_ratio", format!("{ratio:.0}"), Kind::Timed);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    lesson.table("cost.csv", Kind::Timed, &table)?;
    let (least, most) =
        ratios.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &r| (a.min(r), b.max(r)));
    lesson.say(&format!(
        "An element of the loop took {least:.1} to {most:.1} times as long as one of the addition, \
         though it moves the same bytes. The loop waits: a step cannot begin before the step before \
         has its result, which takes one multiplication and one addition, several cycles each. Sixteen \
         sequences side by side wait together, and share the wait."
    ));
    lesson.value("least_ratio", format!("{least:.1}"), Kind::Timed);
    lesson.value("most_ratio", format!("{most:.0}"), Kind::Timed);
    Ok(())
}

/// Nanoseconds per element: the loop, the loop over `N` sequences in step, the addition.
fn measure(len: usize) -> [f64; 3] {
    let floats = |range, seed| -> Vec<f32> {
        // A long sequence repeats a short one: what the numbers are does not matter here.
        let some = random(len.min(1 << 16), range, seed);
        some.iter().cycle().take(len).map(|&value| value as f32).collect()
    };
    let (x, c) = (floats(-1.0..1.0, 11), floats(0.9..1.0, 12));
    let (rows_x, rows_c) = (x.as_chunks::<N>().0, c.as_chunks::<N>().0);
    let (x, c) = (Array1::from(x.clone()), Array1::from(c.clone()));
    let [mut y, mut sum] = [Array1::zeros(len), Array1::zeros(len)];
    let mut rows_y = vec![[0.0_f32; N]; len / N];
    // Short arrays many times over, so that a measurement is long enough for the clock.
    let times = ((1 << 18) / len).max(1);
    let medians = clock::medians(
        11,
        [
            &mut || {
                repeat(times, || _ = linrec_into(x.view(), c.view(), 0.0, black_box(y.view_mut())))
            },
            &mut || repeat(times, || side_by_side(rows_x, rows_c, black_box(&mut rows_y))),
            &mut || {
                repeat(times, || {
                    Zip::from(black_box(&mut sum))
                        .and(&x)
                        .and(&c)
                        .for_each(|sum, &x, &c| *sum = x + c)
                })
            },
        ],
    );
    medians.map(|median: Duration| median.as_secs_f64() * 1e9 / (times * len) as f64)
}

fn repeat(times: usize, mut work: impl FnMut()) {
    for _ in 0..times {
        work();
    }
}
