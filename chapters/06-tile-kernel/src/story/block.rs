//! Level 3: the warps of a block.

use linrec::lesson::{self, Kind, Lesson, Table, plot};
use linrec::reference::{self, Rounding};
use linrec::{Options, contract::Domain};
use ndarray::ArrayView2;

use super::picture::Warps;
use crate::layout::shares;
use crate::levels::{LANES, scan_block};
use crate::watch::watch;

/// Steps of the sequence: 232 threads with four, 24 with three.
pub const STEPS: usize = 1000;

/// Watches the warps of a block meet in shared memory.
pub fn block(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("block", "Level 3: the warps of a block")?;
    let (inputs, coeffs) = ([1.0_f32; STEPS], [0.99_f32; STEPS]);
    let watched = watch(&inputs, &coeffs)?;
    let states = scan_block(&watched.totals, 0.0);
    let (warps, threads) = (watched.totals.len(), watched.loaded.len());
    lesson.say(&format!(
        "{STEPS} steps on {threads} threads, all inputs 1, all coefficients 0.99. The last lane of each of the {warps} \
         warps writes the warp's transition to shared memory. After a barrier, every thread walks along them.",
    ));
    let header = ["warp", "steps", "coeff", "state", "before the warp", "after it"];
    let mut table = Table::new(header);
    let shares = shares(STEPS, threads);
    let mut last_steps = Vec::new();
    for (warp, total) in watched.totals.iter().enumerate() {
        let (first, last) = (shares[LANES * warp], shares[LANES * warp + LANES - 1]);
        last_steps.push(last.steps().end - 1);
        table.row([
            warp.to_string(),
            format!("{} to {}", first.begin, last.steps().end - 1),
            format!("{:.4}", total.coeff),
            format!("{:.4}", total.state),
            format!("{:.4}", states[warp]),
            format!("{:.4}", states[warp + 1]),
        ]);
    }
    lesson.table("block.csv", Kind::Computed, &table)?;
    let barriers = watched.arrivals as f64 / warps as f64 - 1.0;
    lesson.check("barriers of a warp beyond the one", barriers.abs(), 0.0);

    // The state after a warp and the output of its last step are one number, rounded on two ways.
    let rounding = Rounding { levels: Domain::tree_levels(STEPS), exp_ulps: 0.0 };
    let [x, c] = [&inputs, &coeffs].map(|array| ArrayView2::from_shape((1, STEPS), array));
    let bound = reference::forward_bound(x?, c?, &Options::default(), rounding)?;
    let off = last_steps.iter().zip(&states[1..]).map(|(&step, state)| {
        f64::from((watched.outputs[step] - state).abs()) / (2.0 * bound.outputs[[0, step]])
    });
    let off = off.fold(0.0, f64::max);
    lesson.check("states after the warps - outputs there, of what rounding allows", off, 1.0);

    let svg = plot::grid(&[&Warps { totals: watched.totals, states }], 1)?;
    lesson.figure("block.svg", "The carry across the warps", Kind::Computed, &svg)
}
