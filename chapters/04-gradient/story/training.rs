//! Uses the gradient: applies the chain rule through a layer, and trains a small model.

use lesson::plot::{self, Area, Chart, Panel};
use lesson::{Kind, Lesson, Table};
use linrec::{Element, Engine, Error, Options};
use ndarray::{Array1, Array2, ArrayView1, Axis};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::ENGINE;
use crate::chain::{common_input, shared_coeff, sigmoid, sigmoid_slope};
use crate::differences::complex_step;
use crate::model::{Adam, Memory};
use crate::task::Batch;

pub(super) fn chain_rule(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("chain", "What the coefficients are made of")?;
    let seq_len = 64;
    let mut rng = StdRng::seed_from_u64(43);
    let z = Array1::from_shape_simple_fn(seq_len, || rng.random_range(0.0..2.0));
    let complex_sigmoid = |z: Complex<f64>| (Complex::from(1.0) + (-z).exp()).inv();
    lesson.say(
        "Inputs between 0 and 2, the loss is half the sum of squares. Nothing is negative, so nothing \
         cancels: each side may be off by its roundings, at most eight per step, and no more.",
    );
    // Two passes of at most 4 roundings per step and side, and about 16 in sigmoid and loss.
    let limit = (16 * seq_len + 16) as f64 * f64::UNIT_ROUNDOFF;

    // One number z_0 determines all coefficients: a moving average, or S4.
    let z_0 = 1.5;
    let d = gradients(&z, &Array1::from_elem(seq_len, sigmoid(z_0)))?;
    let gradient = shared_coeff(&d)[0] * sigmoid_slope(sigmoid(z_0));
    let slope = complex_step(ArrayView1::from(&[z_0]), |at| {
        loss(z.mapv(Complex::from), Array1::from_elem(seq_len, complex_sigmoid(at[0])))
    })?;
    lesson.say(&format!(
        "One shared coefficient σ(z_0) for all positions: its gradient is a sum over them, here \
         {gradient:.6}.",
    ));
    lesson.check(
        "shared coefficient, relative difference to slope",
        (gradient / slope[0] - 1.0).abs(),
        limit,
    );

    // Every position determines its own coefficient from the input that is also added: x = z, c =
    // σ(z).
    let coeffs = z.mapv(sigmoid);
    let d = gradients(&z, &coeffs)?;
    let gradient = common_input(&d, coeffs.view().insert_axis(Axis(0)));
    let slopes = complex_step(z.view(), |at| loss(at.to_owned(), at.mapv(complex_sigmoid)))?;
    let worst = (&gradient.row(0) / &slopes - 1.0).abs().fold(0.0, |m: f64, &e| m.max(e));
    lesson.say("Inputs that make their own coefficients, x = z and c = σ(z): two ways, two terms.");
    lesson.check("x = z, c = σ(z), relative difference to slopes", worst, limit);
    Ok(())
}

fn loss<T: Element>(inputs: Array1<T>, coeffs: Array1<T>) -> Result<T, Error> {
    let outputs = outputs(&inputs, &coeffs)?;
    Ok(outputs.mapv(|y| y * y * T::from_real(0.5)).sum())
}

fn outputs<T: Element>(inputs: &Array1<T>, coeffs: &Array1<T>) -> Result<Array2<T>, Error> {
    let (inputs, coeffs) = (inputs.view().insert_axis(Axis(0)), coeffs.view().insert_axis(Axis(0)));
    Ok(ENGINE.forward(inputs, coeffs, &Options::default())?.outputs)
}

fn gradients(inputs: &Array1<f64>, coeffs: &Array1<f64>) -> Result<linrec::Gradients<f64>, Error> {
    let y = outputs(inputs, coeffs)?;
    let coeffs = coeffs.view().insert_axis(Axis(0));
    ENGINE.backward(y.view(), coeffs, y.view(), &Options::default())
}

const STEPS: usize = 600;

/// Trains a gate that depends on features, and a gate that does not.
pub(super) fn training(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("training", "A memory that learns when to listen")?;
    let (batch_size, seq_len) = lesson.size((32, 64), (64, 256));
    lesson.say(&format!(
        "At every position comes a random number. Some are marked 'keep', some carry a decoy mark, most \
         none. The target at every position is the number that was last marked 'keep'. The model has one \
         number of memory and four weights; it is trained for {STEPS} steps, each on {batch_size} fresh \
         sequences of {seq_len} positions.",
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
        .dashed("best coefficient, afterwards", [(1.0, best_loss), (STEPS as f64, best_loss)])
        .color(plot::TEXT);
    lesson.figure("training.svg", "Training", Kind::Computed, &plot::svg(&[&chart])?)?;

    let mut table = Table::new(["the gate looks at", "weight"]);
    for (feature, weight) in selective.features.iter().zip(&selective.weights) {
        table.row([format!("{feature:?}").to_lowercase(), format!("{weight:.1}")]);
    }
    lesson.table("weights.csv", Kind::Computed, &table)?;
    lesson.say(&format!(
        "On 1024 sequences that it has not seen, the gate's loss is {selective_loss:.4}. With one \
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
        "Sequences 64 times as long as any in training change little: there the loss is \
         {longer_loss:.4}. The same four weights serve every length.",
    ));
    lesson.check("the same at 64 times the length", longer_loss / best_loss, 1.0 / 20.0);
    example(lesson, selective)
}

/// Finds the best of 99 fixed coefficients on the same data, and its loss.
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

/// Draws a sequence that the model has not seen.
fn example(lesson: &mut Lesson, memory: &Memory) -> lesson::Result {
    let batch = Batch::draw(&mut StdRng::seed_from_u64(46), 1, 64);
    let gates = memory.gates(&batch);
    let outputs = memory.outputs(&ENGINE, &batch, gates.view())?;
    // A value that is held at a position is drawn as wide as the position.
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
            .y_range(-3.0, 3.0)
            .line("memory y", steps(&outputs))
            .dots("value marked 'keep'", marked(&batch.keep))
            .dots("with the decoy mark", marked(&batch.decoy))
            .dots("not marked", marked(&unmarked)),
    );
    let gate = Strip(Chart::new("Its gate").axes("position l", "gate g").line("", steps(&gates)));
    let svg = plot::grid(&[&memory, &gate], 1)?;
    lesson.figure("memory.svg", "What the gate learned", Kind::Computed, &svg)
}

/// A wide and low chart.
struct Strip(Chart);

impl Panel for Strip {
    fn draw(&self, area: &Area) -> lesson::Result {
        self.0.draw(area)
    }

    fn height(&self, width: u32) -> u32 {
        width * 2 / 5
    }
}
