//! The chapter's pictures, drawn from what the emulator saw.

mod requests;
mod rows;
mod windows;

pub use requests::Requests;
pub use rows::Rows;
pub use windows::Windows;

use linrec::lesson::{self, plot::Area, plot::COLORS};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

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
fn cell(area: &Area, corners: [(i32, i32); 2], color: RGBColor) -> lesson::Result {
    area.draw(&Rectangle::new(corners, color.mix(0.45).filled()))?;
    area.draw(&Rectangle::new(corners, color.stroke_width(1)))?;
    Ok(())
}

/// Neighbouring threads differ; a second tile has colours of its own.
fn color(tile: u32, thread: u32) -> RGBColor {
    match (tile % 2, thread % 2) {
        (0, 0) => COLORS[0],
        (0, _) => COLORS[5],
        (_, 0) => COLORS[1],
        (_, _) => COLORS[4],
    }
}
