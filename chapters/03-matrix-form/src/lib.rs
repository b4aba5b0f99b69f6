//! Chapter 03: The matrix form.

use linrec::lesson::{self, Chapter, Lesson};

/// This chapter.
pub const CHAPTER: Chapter =
    Chapter { number: 3, slug: "03-matrix-form", title: "The matrix form", run };

fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("todo", "To do")
}
