//! A block that may look at its input, and one that may not.

use linrec::Error;
use linrec::lesson::plot::{self, Chart};
use linrec::lesson::{self, Kind, Lesson, Table, progress};

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::SEEDS;
use crate::block::engine;
use crate::task::Task;
use crate::training::{Plan, Trained, mean, right_answers};

/// Trains both kinds of block; returns the first selective one.
pub fn training(lesson: &mut Lesson) -> lesson::Result<Trained> {
    lesson.step("training", "Which was the last symbol but one?")?;
    let seeds = &SEEDS[..lesson.size(1, SEEDS.len())];
    let plans = [Plan::of_the_chapter(true), Plan::of_the_chapter(false)];
    let Plan { task, config, batch, steps, .. } = plans[0];
    lesson.say(&format!(
        "{} positions, {} to {} of them with one of {} symbols, the others blank; then {} questions: which symbol was \
         the last, which the last but one, and so on. The block has {} channels with {} states. {} steps with \
         {} fresh sequences in each.",
        task.positions,
        task.asked,
        task.most,
        task.symbols,
        task.asked,
        config.channels,
        config.states,
        steps,
        batch,
    ));
    let bar = progress(2 * seeds.len() * steps, "training");
    let train = |plan: &Plan, seed: u64| plan.train(seed, &|| bar.inc(1));
    let pairs: Result<Vec<(Trained, Trained)>, Error> = seeds
        .iter()
        .map(|&seed| {
            let (selective, fixed) =
                rayon::join(|| train(&plans[0], seed), || train(&plans[1], seed));
            Ok((selective?, fixed?))
        })
        .collect();
    bar.finish_and_clear();
    let pairs = pairs?;

    let mut table = Table::new([
        "block",
        "weights",
        "seed",
        "last",
        "last but one",
        "before that",
        "all",
        "twice as long",
    ]);
    for (seed, (selective, fixed)) in seeds.iter().zip(&pairs) {
        for (name, trained) in [("selective", selective), ("fixed", fixed)] {
            let weights = trained.block.weights.flat().len();
            let all = [trained.accuracy(), twice_as_long(trained, &plans[0])?];
            let shares = trained.right.iter().chain(&all);
            let percents = shares.map(|share| format!("{:.1} %", 100.0 * share));
            let names = [name.to_owned(), weights.to_string(), seed.to_string()];
            table.row(names.into_iter().chain(percents));
        }
    }
    lesson.say(
        "Right answers to each question, to all, and to all for sequences twice as long, as sparse:",
    );
    lesson.table("training.csv", Kind::Computed, &table)?;
    for (seed, (selective, fixed)) in seeds.iter().zip(&pairs) {
        let name = format!("seed {seed}, selective: share of wrong answers");
        lesson.check(&name, 1.0 - selective.accuracy(), 0.05);
        let name = format!("seed {seed}, fixed: share of right answers");
        lesson.check(&name, fixed.accuracy(), 0.6);
    }
    curves(lesson, &pairs, 1.0 / task.symbols as f64)?;
    let (selective, fixed) = &pairs[0];
    let percent = |accuracy: f64| format!("{:.1}", 100.0 * accuracy);
    lesson.value("selective_accuracy", percent(selective.accuracy()), Kind::Computed);
    lesson.value("fixed_accuracy", percent(fixed.accuracy()), Kind::Computed);
    lesson.value("steps", steps, Kind::Computed);
    let enough = selective.curve.iter().find(|(_, accuracy)| *accuracy >= 0.95);
    let enough = enough.map_or("–".to_owned(), |(step, _)| step.to_string());
    lesson.value("steps_to_95", enough, Kind::Computed);
    let first = pairs.into_iter().next().ok_or("no seed was trained with")?;
    Ok(first.0)
}

/// The accuracy on sequences with twice as many positions and as many symbols.
fn twice_as_long(trained: &Trained, plan: &Plan) -> Result<f64, Error> {
    let task = Task { positions: 2 * plan.task.positions, ..plan.task };
    let batch = task.draw(&mut StdRng::seed_from_u64(99), 512);
    Ok(mean(&right_answers(&engine(), &trained.block, &batch)?))
}

fn curves(lesson: &mut Lesson, pairs: &[(Trained, Trained)], chance: f64) -> lesson::Result {
    let steps = pairs.first().and_then(|(t, _)| t.curve.last()).map_or(1.0, |last| last.0);
    let mut chart = Chart::new("Right answers to sequences that are not trained with")
        .axes("step", "share of right answers")
        .y_range(0.0, 1.0);
    for (number, (selective, fixed)) in pairs.iter().enumerate() {
        // One entry in the legend for each kind; further seeds are drawn dashed.
        let line = |chart: Chart, label: &str, trained: &Trained| match number {
            0 => chart.line(label, trained.curve.iter().copied()),
            _ => chart.dashed("", trained.curve.iter().copied()),
        };
        chart = line(chart, "selective", selective);
        chart = line(chart, "fixed", fixed);
    }
    let chart = chart.dashed("guessing", [(0.0, chance), (steps, chance)]);
    lesson.figure("training.svg", "Training", Kind::Computed, &plot::svg(&[&chart])?)
}
