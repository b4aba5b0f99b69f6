//! The run of the appendix.

mod found;
mod measured;
mod pictures;

use lesson::{Lesson, Result};

pub(crate) fn run(lesson: &mut Lesson) -> Result {
    lesson.engine("simt::special");
    measured::sums(lesson)?;
    measured::promises(lesson)?;
    measured::reduction(lesson)?;
    pictures::errors(lesson)?;
    found::segments(lesson)?;
    found::squares(lesson)?;
    found::coefficients(lesson)
}
