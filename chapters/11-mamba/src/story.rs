//! The chapter's run.

use linrec::lesson::{self, Lesson};

/// Tells the chapter.
pub fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.engine("cpu");
    Ok(())
}
