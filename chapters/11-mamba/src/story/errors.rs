//! Single precision at the post's sizes.

use linrec::contract::Domain;
use linrec::cpu::Cpu;
use linrec::lesson::{self, Kind, Lesson, Table};
use rayon::prelude::*;

use super::SEEDS;
use crate::{bounds, direct, post, selective_scan};

/// What one seed gives.
struct Found {
    largest_y: f64,
    error: f64,
    /// The bound of the output that has this error.
    bound_there: f64,
    largest_bound: f64,
    /// The largest quotient of error and bound.
    share: f64,
}

/// The error of f32 against f64, beside the bound and beside the post's figures.
pub fn errors(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("errors", "Single precision, at the post's sizes")?;
    lesson.say(
        "For three seeds: the scan in f32, against the definition in f64 for the same inputs; over all two \
         million outputs.",
    );
    let found: Result<Vec<_>, _> = SEEDS.par_iter().map(|&seed| find(seed)).collect();
    let header =
        ["seed", "largest |y|", "largest error", "bound there", "largest bound", "error / bound"];
    let mut table = Table::new(header);
    let mut worst: (f64, f64) = (0.0, 0.0);
    for (seed, found) in SEEDS.iter().zip(found?) {
        table.row([
            seed.to_string(),
            format!("{:.1}", found.largest_y),
            format!("{:.2e}", found.error),
            format!("{:.2e}", found.bound_there),
            format!("{:.2e}", found.largest_bound),
            format!("{:.3}", found.share),
        ]);
        worst = (worst.0.max(found.error), worst.1.max(found.share));
    }
    // The last bits depend on the machine's vector instructions.
    lesson.table("errors.csv", Kind::Timed, &table)?;
    lesson.say(
        "The post prints 7.629e-6 and 3.815e-6: the largest differences of its scan from Mamba's fused kernel, and \
         from Mamba's reference, all of them in f32.",
    );
    lesson.value("largest_error", format!("{:.1e}", worst.0), Kind::Timed);
    lesson.check("f32 at the post's sizes, largest error / bound", worst.1, 1.0);
    Ok(())
}

fn find(seed: u64) -> Result<Found, linrec::Error> {
    let given = post::draw(seed);
    let arguments = given.arguments();
    let got = selective_scan(&Cpu::new(), &arguments)?.y;
    let exact = direct(&arguments)?.y;
    let bound = bounds::forward(&arguments, Domain::tree_levels(post::LEN))?.y;
    let mut found =
        Found { largest_y: 0.0, error: 0.0, bound_there: 0.0, largest_bound: 0.0, share: 0.0 };
    for ((&got, &exact), &bound) in got.iter().zip(&exact).zip(&bound) {
        let error = (f64::from(got) - exact).abs();
        found.largest_y = found.largest_y.max(exact.abs());
        found.largest_bound = found.largest_bound.max(bound);
        // NaN counts as the worst.
        let error = if error.is_nan() { f64::INFINITY } else { error };
        if error > found.error {
            (found.error, found.bound_there) = (error, bound);
        }
        found.share = found.share.max(if error > 0.0 { error / bound } else { 0.0 });
    }
    Ok(found)
}
