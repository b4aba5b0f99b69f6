//! What the chapter tells when it runs.

use linrec::lesson::{Lesson, Result};

pub(crate) fn run(_lesson: &mut Lesson) -> Result {
    Ok(())
}
