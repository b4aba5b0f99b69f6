//! The chapter's pictures, drawn from what the emulator saw.

mod deal;
mod rounds;
mod warps;

pub use deal::Deal;
pub use rounds::Rounds;
pub use warps::Warps;

use linrec::lesson::{self, plot::Area};
use plotters::prelude::*;

/// Where the first of 32 columns begins, and how wide each is.
const LEFT: i32 = 64;
const COLUMN: i32 = 20;

fn line(area: &Area, ends: [(i32, i32); 2], color: RGBColor, strength: f64) -> lesson::Result {
    area.draw(&PathElement::new(ends, color.mix(strength).stroke_width(1)))?;
    Ok(())
}
