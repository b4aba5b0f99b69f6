//! Chapter 01: The sequential loop.

use linrec::lesson::{self, Chapter, Lesson};

/// This chapter.
pub const CHAPTER: Chapter =
    Chapter { number: 1, slug: "01-sequential-loop", title: "The sequential loop", run };

fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("todo", "To do")
}
