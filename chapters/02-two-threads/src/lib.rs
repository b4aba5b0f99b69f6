//! Chapter 02: Two threads, then many.

use linrec::lesson::{self, Chapter, Lesson};

/// This chapter.
pub const CHAPTER: Chapter =
    Chapter { number: 2, slug: "02-two-threads", title: "Two threads, then many", run };

fn run(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("todo", "To do")
}
