//! What the chapter tells when it runs.

/// Tells the chapter.
pub(crate) fn run(_: &mut lesson::Lesson) -> lesson::Result {
    Ok(())
}
