//! Which thread holds which steps, as one warp loads them.

use linrec::lesson::{self, Kind, Lesson, Table, plot};

use super::picture::Deal;
use crate::layout::shares;
use crate::levels::LANES;
use crate::watch::watch;

/// Steps of the sequence that this step and level 2 look at: no multiple of a warp.
pub const STEPS: usize = 77;

/// Watches a warp load a tile.
pub fn layout(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("layout", "Who holds what")?;
    let watched = watch(&[1.0; STEPS], &[0.5; STEPS])?;
    let shares = shares(STEPS, LANES);
    let tail = shares.iter().filter(|share| share.count < shares[0].count).count();
    lesson.say(&format!(
        "{STEPS} steps on one warp, as the emulator saw them being loaded. A thread has registers for 4 steps. \
         {} threads get {} steps each; the last {tail}, the tail, get {}.",
        LANES - tail,
        shares[0].count,
        shares[LANES - 1].count,
    ));
    let mut table = Table::new(["thread", "first step", "steps", "registers without a step"]);
    for thread in [0, LANES - tail - 1, LANES - tail, LANES - 1] {
        let loaded = &watched.loaded[thread];
        let first = loaded.first().map_or(String::from("–"), usize::to_string);
        let (steps, free) = (loaded.len(), 4 - loaded.len());
        table.row([thread.to_string(), first, steps.to_string(), free.to_string()]);
    }
    lesson.table("layout.csv", Kind::Computed, &table)?;
    lesson.value("tail", tail, Kind::Computed);

    let mut holders = [0_usize; STEPS];
    watched.loaded.iter().flatten().for_each(|&step| holders[step] += 1);
    let wrong = holders.iter().filter(|&&holders| holders != 1).count();
    lesson.check("steps that no thread loads, or more than one", wrong as f64, 0.0);
    let differ = watched.loaded.iter().zip(&shares);
    let differ = differ.filter(|(loaded, share)| !loaded.iter().copied().eq(share.steps())).count();
    lesson.check("threads that load other steps than `shares` says", differ as f64, 0.0);

    let svg = plot::grid(&[&Deal { loaded: watched.loaded, registers: 4, num_steps: STEPS }], 1)?;
    lesson.figure("layout.svg", "Who holds what", Kind::Computed, &svg)
}
