//! The shifted loads of the backward pass, from the emulator's trace.

use linrec::Direction;
use linrec::kernels::Pass;
use linrec::lesson::{self, Kind, Lesson, Table, plot};

use super::picture::Windows;
use crate::watch::{Watched, watch};
use crate::{TILE_LEN, pipe};

/// Steps of the row: a full tile, and one that is not full.
const STEPS: usize = 600;

/// Watches a block on its way back.
pub fn shift(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("shift", "Shifted by one")?;
    let watched = watch(pipe(0), Pass::Backward, Direction::Forward, STEPS)?;
    let border = STEPS - TILE_LEN;
    lesson.say(&format!(
        "The backward pass of a row of {STEPS}, on a block of {} threads. It begins at the end: its first tile has the \
         positions {} to {border}, the second {} to 0. What some threads load:",
        watched.threads,
        STEPS - 1,
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
            // What thread 0 loads last is for the gradient of the initial state.
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

    let count = |wanted: &dyn Fn(usize) -> bool| (0..STEPS).filter(|&at| wanted(at)).count() as f64;
    let owner =
        |array, at: usize| watched.loads_of(array, at).next().map(|load| (load.tile, load.thread));
    let astray = count(&|at| {
        let coeff = at + 1 < STEPS && owner(1, at + 1) != owner(0, at);
        coeff || (at > 0 && owner(2, at - 1) != owner(0, at))
    });
    lesson.check("steps whose neighbours another thread loads", astray, 0.0);
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

/// The beginning of the row, the border between its tiles, and its end.
fn windows(watched: &Watched, border: usize) -> Windows {
    let windows = vec![0..3, border - 3..border + 4, STEPS - 10..STEPS];
    let names = ["d_outputs", "coeffs", "outputs"];
    let arrays = names.into_iter().enumerate().map(|(array, name)| {
        let owner =
            |at: usize| watched.loads_of(array, at).next().map(|load| (load.tile, load.thread));
        (name, windows.iter().map(|window| window.clone().map(owner).collect()).collect())
    });
    Windows { arrays: arrays.collect(), windows: windows.clone() }
}
