//! The chapter's run.

mod attributes;
mod best;
mod choice;
mod counters;
mod cpu;
mod empty;
mod here;
mod peers;
mod pick;
mod race;
mod room;

use linrec::device::Device;
use linrec::lesson::{self, Lesson};

/// Tells the chapter.
pub fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("ref, tile, pipe, wide@{}, cpu", device.label()));
    attributes::attributes(lesson)?;
    attributes::ptx(lesson)?;
    room::room(lesson)?;
    best::judged(lesson)?;
    best::best(lesson)?;
    empty::bandwidth(lesson)?;
    empty::empty(lesson)?;
    choice::choice(lesson)?;
    counters::counters(lesson)?;
    race::race(lesson)?;
    peers::peers(lesson)?;
    pick::pick(lesson)?;
    cpu::cpu(lesson)?;
    here::here(lesson, &device)
}

/// A number of the record, or a dash where there is none yet.
fn cell(number: Option<f64>, digits: usize) -> String {
    match number {
        Some(number) if number.is_finite() => format!("{number:.digits$}"),
        _ => String::from("–"),
    }
}

/// Said where the record has nothing.
const NOTHING: &str = "Nothing of this has been recorded yet.";
