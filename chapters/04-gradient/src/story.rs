//! The chapter's run.

mod chain_rule;
mod logarithms;
mod reach;
mod slopes;
mod training;
mod witnesses;

use ch01_sequential_loop::Loop;
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::{Direction, Engine, Options};
use ndarray::array;

use crate::ThroughForward;
use crate::shift::shift;

/// The engine of all steps: the backward pass through chapter 1's loop.
const ENGINE: ThroughForward<Loop> = ThroughForward(Loop);

/// Tells the chapter.
pub fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.engine("loop, backward through forward");
    by_hand(lesson)?;
    reach::reach(lesson)?;
    slopes::slopes(lesson)?;
    witnesses::witnesses(lesson)?;
    logarithms::logarithms(lesson)?;
    chain_rule::chain_rule(lesson)?;
    training::training(lesson)
}

fn by_hand(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("by-hand", "Four steps there and back")?;
    let (inputs, coeffs) = (array![[1.0, 1.0, 2.0, 0.0]], array![[7.0, 2.0, 3.0, 5.0]]);
    let options = Options { initial: Some(array![1.0]), ..Options::default() };
    let outputs = ENGINE.forward(inputs.view(), coeffs.view(), &options)?.outputs;
    // The loss is y_0 + y_3.
    let d_outputs = array![[1.0, 0.0, 0.0, 1.0]];
    let d = ENGINE.backward(d_outputs.view(), coeffs.view(), outputs.view(), &options)?;
    let next_coeffs = shift(coeffs.view(), Direction::Reverse, array![0.0].view())?;
    let previous = shift(outputs.view(), Direction::Forward, array![1.0].view())?;

    lesson.say(
        "The loss is y_0 + y_3, and the initial state y_{-1} is 1. Read the gradients from the last \
         row upwards: each δ^(x) is the one below times c_{l+1}, plus δ^(y).",
    );
    let header = ["l", "x", "c", "y", "δ^(y)", "c_{l+1}", "δ^(x)", "y_{l-1}", "δ^(c)"];
    let mut table = Table::new(header);
    for l in 0..4 {
        let columns = [&inputs, &coeffs, &outputs, &d_outputs];
        let gradients = [&next_coeffs, &d.d_inputs, &previous, &d.d_coeffs];
        let numbers = columns.into_iter().chain(gradients).map(|array| array[[0, l]].to_string());
        table.row([l.to_string()].into_iter().chain(numbers));
    }
    lesson.table("by-hand.csv", Kind::Computed, &table)?;
    lesson.say(&format!(
        "One step further up the initial state gets c_0 δ^(x)_0 = 7 · {} = {}.",
        d.d_inputs[[0, 0]],
        d.d_initial[0],
    ));
    let by_hand = [array![31.0, 15.0, 5.0, 1.0], array![31.0, 120.0, 85.0, 53.0]];
    let mut wrong = (d.d_initial[0] - 217.0_f64).abs();
    for (got, expected) in [&d.d_inputs, &d.d_coeffs].into_iter().zip(by_hand) {
        wrong += (&got.row(0) - &expected).abs().sum();
    }
    lesson.check("gradients minus those found by hand", wrong, 0.0);
    Ok(())
}
