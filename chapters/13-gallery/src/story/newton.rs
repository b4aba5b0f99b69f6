//! A recurrence that is not linear, by linear ones.

use linrec::lesson::{self, Kind, Lesson, Table, plot, plot::Chart};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::newton::{Gated, Slopes, errors};

/// An iteration counts as arrived when the largest error is below this.
const ARRIVED: f64 = 1e-10;

/// The largest error that is drawn.
const CUT: f64 = 1e6;

/// States of the network.
const SIZE: usize = 16;

/// Networks from tame to wild.
pub fn newton(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("newton", "A network that is not linear")?;
    let (seq_len, most) = lesson.size((512, 512), (4096, 200));
    lesson.say(&format!(
        "A gated network with {SIZE} states, {seq_len} positions, and weights that add up to a gain in each \
         row. Each guess of all its states, beginning with zero, gives a linear recurrence; its solution is the \
         next guess.",
    ));
    let gains = [0.5, 2.0, 4.0, 8.0, 32.0];
    let header = ["gain", "exponent", "with the diagonal", "error left", "without", "error left "];
    let mut table = Table::new(header);
    let mut chart = Chart::new("Largest error of a guess, with the diagonal")
        .axes("iteration", "largest error")
        .log_y(10.0)
        .y_range(1e-17, CUT);
    let mut wild = Chart::new("Positions that are right from the start on, gain 32")
        .axes("iteration", "positions");
    let mut peak = 0.0;
    for gain in gains {
        let network = Gated::draw(&mut StdRng::seed_from_u64(140), (SIZE, seq_len), gain);
        let states = network.sequential()?;
        let mut cells = vec![format!("{gain}")];
        for slopes in [Slopes::Diagonal, Slopes::Zero] {
            let guesses = network.iterate(slopes, most)?;
            let at: Vec<_> =
                guesses.iter().map(|guess| errors(guess.view(), states.view())).collect();
            let largest: Vec<f64> =
                at.iter().map(|e| e.iter().fold(0.0, |a: f64, &b| a.max(b))).collect();
            let first = largest.iter().position(|&error| error < ARRIVED);
            cells.push(first.map_or(format!("> {most}"), |i| (i + 1).to_string()));
            cells.push(match largest.last() {
                Some(&error) if error > 0.0 => format!("{error:.0e}"),
                _ => String::from("0"),
            });
            if slopes == Slopes::Diagonal {
                let points = largest.iter().enumerate().take(100);
                let points = points.map(|(i, &e)| ((i + 1) as f64, e.min(CUT)));
                chart = chart.line(&format!("gain {gain}"), points.collect::<Vec<_>>());
            }
            if gain == gains[4] && slopes == Slopes::Diagonal {
                peak = largest.iter().fold(0.0, |a: f64, &b| a.max(b));
            }
            if gain == gains[4] {
                let right = at.iter().map(|e| e.iter().take_while(|e| **e < 1e-6).count() as f64);
                let label =
                    if slopes == Slopes::Diagonal { "with the diagonal" } else { "without" };
                let points: Vec<_> = right.enumerate().map(|(i, n)| ((i + 1) as f64, n)).collect();
                wild = wild.line(label, points);
            }
            if gain == gains[0] && slopes == Slopes::Diagonal {
                let [.., last, guess] = guesses.as_slice() else { continue };
                let bound =
                    network.error_bound(slopes, last.view(), guess.view(), states.view())?;
                let error = errors(guess.view(), states.view());
                let ratio = error.iter().zip(&bound).fold(0.0, |a: f64, (e, b)| a.max(e / b));
                lesson.check("tame network, error of the last guess / bound", ratio, 1.0);
                let limit = bound.iter().fold(0.0, |a: f64, &b| a.max(b));
                lesson.say(&format!("There the bound is {limit:.0e}."));
                lesson.value("newton_bound", format!("{limit:.0e}"), Kind::Timed);
            }
        }
        let exponent = network.lyapunov(states.view())?;
        cells.insert(1, format!("{exponent:.3}"));
        table.row(cells);
    }
    wild = wild.dashed("one a step", (1..=most).map(|i| (i as f64, i as f64)));
    lesson.say(&format!(
        "Iterations until the largest error is below {ARRIVED:.0e}, and the average growth of a small \
         difference from step to step, as a logarithm:",
    ));
    // The last digits depend on the width of the processor's vectors.
    lesson.table("newton.csv", Kind::Timed, &table)?;
    lesson.say(&format!("The wildest network's guesses are off by up to {peak:.0e} on their way."));
    lesson.value("newton_peak", format!("{peak:.0e}"), Kind::Timed);
    let svg = plot::grid(&[&chart, &wild], 1)?;
    lesson.figure("newton.svg", "Convergence", Kind::Timed, &svg)
}
