//! The chapter's run.

mod bits;
mod clock;
mod compile;
mod cost;
mod dispatch;
mod launch;
mod mistakes;
mod patterns;
mod picture;
mod speed;

use linrec::device::Device;
use linrec::lesson::{self, Lesson};

/// Tells the chapter.
pub fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("ref@{}", device.label()));
    launch::which(lesson, &device)?;
    compile::compile(lesson)?;
    launch::launch(lesson, &device)?;
    launch::refuse(lesson)?;
    dispatch::dispatch(lesson, &device)?;
    bits::bits(lesson, &device)?;
    patterns::patterns(lesson)?;
    cost::sectors(lesson)?;
    cost::threads(lesson)?;
    clock::clock(lesson, &device)?;
    speed::speed(lesson)?;
    mistakes::mistakes(lesson)
}
