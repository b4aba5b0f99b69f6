//! Chapter 04: The gradient.

use linrec::lesson::{self, Chapter, Lesson};

/// This chapter.
pub const CHAPTER: Chapter = Chapter { number: 4, slug: "04-gradient", title: "The gradient", run };

fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("todo", "To do")
}
