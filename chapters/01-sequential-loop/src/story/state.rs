//! The state, and the two directions.

use linrec::lesson::{Lesson, Result};
use linrec::{Direction, Engine, Options};
use ndarray::{Array2, array};

use super::{differing, random};
use crate::{Loop, linrec};

/// Splits a sequence at every place: the first part's final state is the second one's initial state.
pub fn any_split(lesson: &mut Lesson) -> Result {
    lesson.step("state", "The state is all that the past leaves behind")?;
    let (x, c) = (random(1000, -1.0..1.0, 1), random(1000, 0.98..1.0, 2));
    let whole = linrec(&x, &c, 0.5);
    lesson.say(
        "A sequence of 1000 elements is cut in two, at each of its 1001 places in turn. The second \
         part starts from the state in which the first one ended.",
    );
    let mut wrong = 0.0;
    for place in 0..=x.len() {
        let mut parts = linrec(&x[..place], &c[..place], 0.5);
        let state = parts.last().copied().unwrap_or(0.5);
        parts.extend(linrec(&x[place..], &c[place..], state));
        wrong += differing(&parts, &whole);
    }
    lesson.check("outputs, of 1001 cuts, that differ in a bit", wrong, 0.0);

    let (y_last, zero) = (whole[x.len() - 1], linrec(&x, &c, 0.0)[x.len() - 1]);
    lesson.say(&format!(
        "How much of the past is left is a matter of the coefficients. From the initial state 0.5 \
         the last output is {y_last:.6}, from 0 it is {zero:.6}: of the difference of 0.5, \
         {:.0e} is left after 1000 coefficients between 0.98 and 1.",
        y_last - zero
    ));
    Ok(())
}

/// Runs the loop from the end.
pub fn reverse(lesson: &mut Lesson) -> Result {
    lesson.step("reverse", "The other direction")?;
    lesson.say(
        "In reverse the loop starts at the last element, and the initial state stands behind the \
         end. Two sequences at once, one per row:",
    );
    let inputs = array![[1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 0.0, 0.0]];
    let coeffs = array![[1.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5]];
    let options = Options {
        direction: Direction::Reverse,
        initial: Some(array![0.0, 16.0]),
        ..Options::default()
    };
    let result = Loop.forward(inputs.view(), coeffs.view(), &options)?;
    lesson.show(format!("inputs\n{inputs}\ncoeffs\n{coeffs}\ninitial state {}", array![0.0, 16.0]));
    lesson.show(format!("outputs\n{}\nfinal state {}", result.outputs, result.final_state));

    let (x, c) = (random(1000, -1.0..1.0, 3), random(1000, 0.0..1.0, 4));
    let backwards = |values: &[f64]| values.iter().rev().copied().collect::<Vec<_>>();
    let flipped = backwards(&linrec(&backwards(&x), &backwards(&c), 0.0));
    let row = |values: Vec<f64>| Array2::from_shape_vec((1, 1000), values);
    let options = Options { direction: Direction::Reverse, ..Options::default() };
    let result = Loop.forward(row(x)?.view(), row(c)?.view(), &options)?;
    let reversed = result.outputs.into_iter().collect::<Vec<_>>();
    lesson.check(
        "outputs in reverse that differ from flip, loop, flip",
        differing(&reversed, &flipped),
        0.0,
    );
    Ok(())
}
