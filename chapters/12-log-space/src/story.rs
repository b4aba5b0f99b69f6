//! What the chapter tells when it runs.

mod atlas;
mod bound;
mod by_hand;
mod gradients;
mod min_gru;
mod range;
mod restart;
mod signs;
mod stable;
mod zeros;

use linrec::lesson::{Lesson, Result};

pub(crate) fn run(lesson: &mut Lesson) -> Result {
    lesson.engine("log space, loop, tree");
    by_hand::by_hand(lesson)?;
    stable::stable(lesson)?;
    signs::signs(lesson)?;
    zeros::zeros(lesson)?;
    range::range(lesson)?;
    bound::bound(lesson)?;
    atlas::atlas(lesson)?;
    restart::restart(lesson)?;
    gradients::gradients(lesson)?;
    min_gru::min_gru(lesson)
}

/// A number for a table: four digits, or a power of ten where it is tiny.
fn number(value: f64) -> String {
    match value.abs() {
        v if v == 0.0 || (1e-3..1e5).contains(&v) => {
            let text = format!("{value:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        v if v.is_finite() => format!("{value:.1e}"),
        _ => value.to_string(),
    }
}
