//! Two broken pipe kernels, and what is found in them.

use linrec::lesson::{self, Kind, Lesson};

use crate::suspect;

/// Totals that are not taken in turns.
pub fn turns(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("turns", "Without turns")?;
    lesson.say(
        "totals_not_in_turns is the same kernel with one array of totals instead of two. The emulator runs it over \
         the contract's cases, the longest first:",
    );
    let found = examine("totals_not_in_turns")?;
    lesson.quote(&found);
    lesson.check("races that went unnoticed", u8::from(!found.contains("no barrier")).into(), 0.0);
    Ok(())
}

/// The others, for the exercises.
pub fn others(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("mistakes", "A mistake to be found")?;
    lesson.say("And forgotten_between_tiles, which breaks no rule of the machine:");
    let found = examine("forgotten_between_tiles")?;
    lesson.quote(&found);
    lesson.value("found_forgotten", &found, Kind::Computed);
    lesson.check("mistakes that went unnoticed", u8::from(found.is_empty()).into(), 0.0);
    Ok(())
}

/// What is found, as a sentence; nothing if nothing is.
fn examine(name: &str) -> lesson::Result<String> {
    let (engine, domain) = suspect::load(name)?;
    let finding = suspect::examine(&engine, &domain);
    Ok(finding.map(|finding| finding.to_string()).unwrap_or_default())
}
