//! A kernel with a planted mistake.

use linrec::lesson::{self, Kind, Lesson};

use crate::suspect;

/// Shows what is found in it.
pub fn mistake(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("mistake", "A mistake, found")?;
    let mut missed = 0;
    for name in suspect::names() {
        lesson.say(&format!("kernels/broken/{name}.cu:"));
        match suspect::examine(&format!("broken/{name}"))? {
            Some(finding) => {
                lesson.quote(&finding.to_string());
                lesson.value(&format!("found_{name}"), &finding, Kind::Computed);
            }
            None => missed += 1,
        }
    }
    lesson
        .say("The emulator has no objection: no rule is broken. It is the contract that finds it.");
    lesson.check("planted mistakes that nothing finds", f64::from(missed), 0.0);
    Ok(())
}
