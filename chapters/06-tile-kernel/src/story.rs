//! The chapter's run.

mod bits;
mod block;
mod cost;
mod deals;
mod layout;
mod limits;
mod mistake;
mod picture;
mod speed;
mod stages;
mod thread;
mod warp;

use linrec::device::Device;
use linrec::lesson::{self, Lesson};

/// Tells the chapter.
pub fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("tile@{}", device.label()));
    layout::layout(lesson)?;
    thread::thread(lesson, &device)?;
    warp::warp(lesson)?;
    block::block(lesson)?;
    stages::stages(lesson, &device)?;
    bits::bits(lesson, &device)?;
    limits::limits(lesson)?;
    cost::cost(lesson)?;
    speed::speed(lesson)?;
    deals::deals(lesson)?;
    mistake::mistake(lesson)
}
