//! An addition that walks along rows.

use linrec::lesson::{self, Kind, Lesson};

use super::{cell, climb};
use crate::record::Ladder;

/// The addition, beside the recurrence.
pub fn walk(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("walk", "The last percent")?;
    let ladder = Ladder::read()?;
    lesson.say(
        "An addition whose blocks walk along rows, as the recurrence's do, beside the recurrence; of each the fastest \
         size, as parts of the roof, which goes through memory from its beginning to its end:",
    );
    let table = climb::speeds(&ladder, &["walk", "pieces", "early", "wide"]);
    lesson.table("walk.csv", Kind::Computed, &table)?;
    for name in ["walk", "wide"] {
        let ratio = ladder.best(name, 65_536).map(|(_, run)| run.ratio);
        lesson.value(&format!("{name}_65536"), cell(ratio, 3), Kind::Computed);
    }
    Ok(())
}
