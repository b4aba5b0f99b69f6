//! The chapter's run.

mod errors;
mod inside;
mod selection;
mod speed;
mod training;
mod witnesses;

use linrec::lesson::{self, Lesson};

use crate::post;

/// Tells the chapter.
pub fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.engine("cpu");
    selection::selection(lesson)?;
    selection::sizes(lesson)?;
    witnesses::witnesses(lesson)?;
    errors::errors(lesson)?;
    speed::speed(lesson, &post::draw(SEEDS[0]))?;
    let trained = training::training(lesson)?;
    inside::inside(lesson, &trained)
}

/// Seeds of everything random here: the first one is taken where one is enough.
const SEEDS: [u64; 3] = [11, 12, 13];
