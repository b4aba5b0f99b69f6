//! Who holds what when the recurrence walks the other way.

use linrec::device::{Device, KernelEngine};
use linrec::kernels::Pass;
use linrec::lesson::{self, Kind, Lesson, Table, plot};
use linrec::{Direction, Engine, Options};
use ndarray::{Axis, Slice};

use super::picture::Rows;
use super::{data, differ};
use crate::pipe;
use crate::watch::{Watched, watch};

/// Steps of the row: chapter 6's.
const STEPS: usize = 77;

/// Watches a warp load a row in both directions.
pub fn direction(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("direction", "The other way")?;
    let [forward, reverse] = [Direction::Forward, Direction::Reverse]
        .map(|direction| watch(pipe(0), Pass::Forward, direction, STEPS));
    let (forward, reverse) = (forward?, reverse?);
    lesson.say(&format!(
        "One warp, a row of {STEPS} elements. The inputs that a thread loads, in the order of its registers, are at \
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
        unmirrored += usize::from(!there.iter().map(|at| STEPS - 1 - at).eq(back.iter().copied()));
        if [0, 1, 12, 13, 31].contains(&thread) {
            table.row([thread.to_string(), text(&there), text(&back)]);
        }
    }
    lesson.table("direction.csv", Kind::Computed, &table)?;
    lesson.check("threads that do not hold the mirror image", unmirrored as f64, 0.0);
    let rows = |watched: &Watched| {
        (0..STEPS).map(|at| watched.loads_of(0, at).next().map_or(0, |load| load.thread)).collect()
    };
    let picture = Rows { rows: vec![("forward", rows(&forward)), ("reverse", rows(&reverse))] };
    let svg = plot::grid(&[&picture], 1)?;
    lesson.figure("direction.svg", "Which thread holds which element", Kind::Computed, &svg)?;

    // Three tiles, the last of them not full.
    let (x, c) = data((20, 1300), 81);
    let mirrored = |array: &ndarray::Array2<f32>| {
        array.slice_axis(Axis(1), Slice::new(0, None, -1)).to_owned()
    };
    let engine = KernelEngine::<f32>::new(device, pipe(0))?;
    let back = Options { direction: Direction::Reverse, ..Options::default() };
    let walked_back = engine.forward(x.view(), c.view(), &back)?.outputs;
    let (mx, mc) = (mirrored(&x), mirrored(&c));
    let of_mirror = engine.forward(mx.view(), mc.view(), &Options::default())?.outputs;
    lesson.say(
        "20 sequences of 1300, in reverse; and forward, with every row written from its end to its beginning before \
         and after:",
    );
    let different = differ(&walked_back, &mirrored(&of_mirror));
    lesson.check("words that differ from the mirrored row's", different, 0.0);
    Ok(())
}
