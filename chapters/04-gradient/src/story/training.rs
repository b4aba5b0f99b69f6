//! A memory that learns when to listen.

use linrec::lesson::plot::{self, Area, Chart, Panel};
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::{Engine, Options};
use ndarray::Array2;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::ENGINE;
use crate::model::{Adam, Memory};
use crate::task::Batch;

const STEPS: usize = 600;

/// Trains a gate that sees, and one that does not.
pub fn training(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("training", "A memory that learns when to listen")?;
    let (batch_size, seq_len) = lesson.size((32, 64), (64, 256));
    lesson.say(&format!(
        "At every position comes a random number. Some are marked 'keep', some carry a decoy mark, most \
         none. Asked for is, at every position, the number that was last to be kept. The model has one \
         number of memory and four weights; it is trained for {STEPS} steps on {batch_size} fresh \
         sequences of {seq_len} each.",
    ));
    let mut rng = StdRng::seed_from_u64(44);
    let held_out = Batch::draw(&mut rng, 1024, seq_len);
    let mut memories = [Memory::selective(), Memory::fixed()];
    let mut curves = [Vec::new(), Vec::new()];
    for (memory, curve) in memories.iter_mut().zip(&mut curves) {
        let mut rng = StdRng::seed_from_u64(45);
        let mut adam = Adam::new(memory.weights.len(), 0.05);
        for step in 1..=STEPS {
            let batch = Batch::draw(&mut rng, batch_size, seq_len);
            let (loss, gradient) = memory.loss_and_gradient(&ENGINE, &batch)?;
            curve.push((step as f64, loss));
            adam.step(&mut memory.weights, &gradient);
        }
    }
    let [selective, fixed] = &memories;
    let loss =
        |memory: &Memory| Ok::<_, linrec::Error>(memory.loss_and_gradient(&ENGINE, &held_out)?.0);
    let (selective_loss, fixed_loss) = (loss(selective)?, loss(fixed)?);
    let (best, best_loss) = best_fixed(&held_out)?;
    let silent_loss = held_out.targets.mapv(|target| target * target).mean().unwrap_or(f64::NAN);

    let chart = Chart::new("Mean square error in training")
        .axes("step", "loss")
        .log_y(10.0)
        .line("gate that sees the marks", curves[0].iter().copied())
        .line("one coefficient for all", curves[1].iter().copied())
        .dashed("best coefficient, afterwards", [(1.0, best_loss), (STEPS as f64, best_loss)]);
    lesson.figure("training.svg", "Training", Kind::Computed, &plot::svg(&[&chart])?)?;

    let mut table = Table::new(["the gate looks at", "weight"]);
    for (feature, weight) in selective.features.iter().zip(&selective.weights) {
        table.row([format!("{feature:?}").to_lowercase(), format!("{weight:.1}")]);
    }
    lesson.table("weights.csv", Kind::Computed, &table)?;
    lesson.say(&format!(
        "On 1024 sequences that it has not seen the gate's loss is {selective_loss:.4}. With one \
         coefficient for all positions training ends at {fixed_loss:.3}. The best of 99 such \
         coefficients, found with the answers in hand, is {best:.2}: it reaches {best_loss:.3}. \
         Answering 0 all the time would give {silent_loss:.3}.",
    ));
    lesson.value("selective_loss", format!("{selective_loss:.4}"), Kind::Computed);
    lesson.value("best_fixed_loss", format!("{best_loss:.3}"), Kind::Computed);
    lesson.value("silent_loss", format!("{silent_loss:.3}"), Kind::Computed);
    lesson.value("loss_ratio", format!("{:.0}", best_loss / selective_loss), Kind::Computed);
    lesson.check("gate's loss / best fixed coefficient's", selective_loss / best_loss, 1.0 / 20.0);

    let longer = Batch::draw(&mut rng, 16, 64 * seq_len);
    let longer_loss = selective.loss_and_gradient(&ENGINE, &longer)?.0;
    lesson.say(&format!(
        "Sequences 64 times as long as any in training change nothing: there the loss is \
         {longer_loss:.4}. The same four weights serve every length.",
    ));
    lesson.check("the same at 64 times the length", longer_loss / best_loss, 1.0 / 20.0);
    example(lesson, selective)
}

/// The best of 99 fixed coefficients on these very data, with its loss.
fn best_fixed(batch: &Batch) -> lesson::Result<(f64, f64)> {
    let mut best = (f64::NAN, f64::INFINITY);
    for hundredths in 1..100 {
        let coeff = f64::from(hundredths) / 100.0;
        let coeffs = Array2::from_elem(batch.values.dim(), coeff);
        let inputs = (1.0 - coeff) * &batch.values;
        let outputs = ENGINE.forward(inputs.view(), coeffs.view(), &Options::default())?.outputs;
        let loss = (outputs - &batch.targets).mapv(|e| e * e).mean().unwrap_or(f64::INFINITY);
        if loss < best.1 {
            best = (coeff, loss);
        }
    }
    Ok(best)
}

/// Draws one sequence that the model has not seen.
fn example(lesson: &mut Lesson, memory: &Memory) -> lesson::Result {
    let batch = Batch::draw(&mut StdRng::seed_from_u64(46), 1, 64);
    let gates = memory.gates(&batch);
    let outputs = memory.outputs(&ENGINE, &batch, gates.view())?;
    // What is held for a position is drawn as wide as the position.
    let steps = |array: &Array2<f64>| -> Vec<(f64, f64)> {
        let edges = |(l, &value): (usize, &f64)| [(l as f64 - 0.5, value), (l as f64 + 0.5, value)];
        array.iter().enumerate().flat_map(edges).collect()
    };
    let unmarked = 1.0 - &batch.keep - &batch.decoy;
    let marked = |marks: &Array2<f64>| -> Vec<(f64, f64)> {
        let values = batch.values.iter().zip(marks).enumerate();
        values.filter(|(_, (_, mark))| **mark == 1.0).map(|(l, (v, _))| (l as f64, *v)).collect()
    };
    let memory = Strip(
        Chart::new("A sequence that it has not seen")
            .axes("position l", "value")
            .y_range(-3.0, 6.0)
            .line("memory y", steps(&outputs))
            .dots("value marked 'keep'", marked(&batch.keep))
            .dots("with the decoy mark", marked(&batch.decoy))
            .dots("not marked", marked(&unmarked)),
    );
    let gate = Strip(Chart::new("Its gate").axes("position l", "gate g").line("", steps(&gates)));
    let svg = plot::grid(&[&memory, &gate], 1)?;
    lesson.figure("memory.svg", "What the gate learned", Kind::Computed, &svg)
}

/// A chart that is wide and low.
struct Strip(Chart);

impl Panel for Strip {
    fn draw(&self, area: &Area) -> lesson::Result {
        self.0.draw(area)
    }

    fn height(&self, width: u32) -> u32 {
        width * 2 / 5
    }
}
