//! Words of 16 bytes, and what else was tried with them.

use ch09_tuning::counted::{PerElement, counters};
use linrec::kernels::{Config, KernelChoice, Pass};
use linrec::lesson::{self, Kind, Lesson};

use super::{climb, picture};
use crate::count::count;
use crate::record::Ladder;
use crate::rung::{Idea, Rung};

/// Rows that are counted.
const SHAPE: (usize, usize) = (4, 4096);

/// A word for each thread.
pub fn words(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("words", "A word for each thread")?;
    let ladder = Ladder::read()?;
    lesson.say(&format!("Counted by the emulator over rows of {}. {}", SHAPE.1, climb::COLUMNS));
    let config =
        Config { max_elems_per_thread: 4, max_threads_per_block: 128, ..Config::default() };
    let pipe = counters::<f32>(KernelChoice::Pipe(config), Pass::Forward, SHAPE)?;
    let words = count(Rung::shipped(Idea::Words), SHAPE)?;
    let [before, after] =
        [&pipe, &words].map(|counters| PerElement::new(counters, SHAPE.0 * SHAPE.1).requests);
    let launches = [("pipe:4x128:0", pipe), ("words:1x256", words)];
    let table = climb::counts(launches, SHAPE.0 * SHAPE.1)?;
    lesson.table("words.csv", Kind::Computed, &table)?;
    lesson.value("fewer_requests", format!("{:.0}", before / after), Kind::Computed);
    lesson.say(&format!(
        "On an H200, as parts of the roof in the same rounds, of each kernel the fastest size; medians of at least {} \
         runs:",
        ladder.runs(4096)
    ));
    let table = climb::speeds(&ladder, &["pipe", "words"]);
    lesson.table("words-speed.csv", Kind::Computed, &table)
}

/// Several words for each thread.
pub fn pieces(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("pieces", "Neighbours or pieces")?;
    let ladder = Ladder::read()?;
    let rungs = [Idea::Words, Idea::Neighbours, Idea::Pieces].map(Rung::shipped);
    let mut launches = Vec::new();
    let names = rungs.map(|rung| rung.name());
    for (rung, name) in rungs.iter().zip(&names) {
        launches.push((name.as_str(), count(*rung, SHAPE)?));
    }
    let table = climb::counts(launches, SHAPE.0 * SHAPE.1)?;
    lesson.table("pieces.csv", Kind::Computed, &table)?;
    let table = climb::speeds(&ladder, &["words", "neighbours", "pieces"]);
    lesson.table("pieces-speed.csv", Kind::Computed, &table)?;
    let svg = picture::requests([rungs[1], rungs[2]])?;
    lesson.figure("pieces.svg", "Which lane asks for which bytes", Kind::Computed, &svg)
}

/// What did not help.
pub fn others(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("others", "What else was tried")?;
    let ladder = Ladder::read()?;
    lesson.say(
        "With hints at loads (l), at stores (s), at both; and as many blocks as there is room for, each with one row \
         after the other:",
    );
    let names = ["pieces", "hints:l", "hints:s", "hints:ls", "persistent"];
    let table = climb::speeds(&ladder, &names);
    lesson.table("others.csv", Kind::Computed, &table)
}
