//! The chapter's pictures, drawn from what the emulator saw.

mod deal;
mod rounds;
mod warps;

pub use deal::Deal;
pub use rounds::Rounds;
pub use warps::Warps;

use linrec::lesson::{self, plot::Area};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Where the first of 32 columns begins, and how wide each is.
const LEFT: i32 = 64;
const COLUMN: i32 = 20;

const GREY: RGBColor = RGBColor(128, 128, 128);

/// Text around a point.
fn middle(area: &Area, text: impl Into<String>, at: (i32, i32), size: u32) -> lesson::Result {
    write(area, text, at, size, HPos::Center)
}

/// Text from a point on.
fn left(area: &Area, text: impl Into<String>, at: (i32, i32), size: u32) -> lesson::Result {
    write(area, text, at, size, HPos::Left)
}

fn write(
    area: &Area,
    text: impl Into<String>,
    at: (i32, i32),
    size: u32,
    horizontal: HPos,
) -> lesson::Result {
    let style = ("sans-serif", size).into_text_style(&(1, 1)).color(&BLACK);
    let style = style.pos(Pos::new(horizontal, VPos::Center));
    area.draw(&Text::new(text.into(), at, style))?;
    Ok(())
}

/// A cell with a tinted ground and a frame.
fn cell(area: &Area, corners: [(i32, i32); 2], color: RGBColor, strength: f64) -> lesson::Result {
    area.draw(&Rectangle::new(corners, color.mix(strength).filled()))?;
    area.draw(&Rectangle::new(corners, color.stroke_width(1)))?;
    Ok(())
}

fn line(area: &Area, ends: [(i32, i32); 2], color: RGBColor, strength: f64) -> lesson::Result {
    area.draw(&PathElement::new(ends, color.mix(strength).stroke_width(1)))?;
    Ok(())
}
