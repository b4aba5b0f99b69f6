//! The chapter's run.

mod ahead;
mod any;
mod backward;
mod calls;
mod climb;
mod picture;
mod result;
mod short;
mod start;
mod types;
mod walk;
mod words;

use linrec::lesson::{self, Lesson};

/// Tells the chapter.
pub fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.engine("pipe, ladder, rows, wide@simt");
    start::right(lesson)?;
    start::start(lesson)?;
    words::words(lesson)?;
    words::pieces(lesson)?;
    short::side_by_side(lesson)?;
    short::shares(lesson)?;
    ahead::ahead(lesson)?;
    ahead::on_their_way(lesson)?;
    words::others(lesson)?;
    any::any(lesson)?;
    backward::backward(lesson)?;
    types::types(lesson)?;
    walk::walk(lesson)?;
    calls::calls(lesson)?;
    result::result(lesson)
}

/// A number of the record, or a dash where there is none.
fn cell(number: Option<f64>, digits: usize) -> String {
    match number {
        Some(number) if number.is_finite() => format!("{number:.digits$}"),
        _ => String::from("–"),
    }
}
