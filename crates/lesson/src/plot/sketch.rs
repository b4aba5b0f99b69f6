//! Draws the parts of pictures that are not charts: words and cells at positions in pixels.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, Result};

/// The colour of frames, axes and missing parts.
pub const GREY: RGBColor = RGBColor(128, 128, 128);

/// Writes text centred on a point.
///
/// # Errors
///
/// Returns an error if the backend cannot draw.
pub fn middle(area: &Area, text: impl Into<String>, at: (i32, i32), size: u32) -> Result {
    write(area, text, at, size, HPos::Center)
}

/// Writes text that begins at a point.
///
/// # Errors
///
/// Returns an error if the backend cannot draw.
pub fn left(area: &Area, text: impl Into<String>, at: (i32, i32), size: u32) -> Result {
    write(area, text, at, size, HPos::Left)
}

fn write(
    area: &Area,
    text: impl Into<String>,
    at: (i32, i32),
    size: u32,
    horizontal: HPos,
) -> Result {
    let style = ("sans-serif", size).into_text_style(&(1, 1)).color(&BLACK);
    let style = style.pos(Pos::new(horizontal, VPos::Center));
    area.draw(&Text::new(text.into(), at, style))?;
    Ok(())
}

/// Draws a cell with a frame, filled with the colour at an opacity of `strength` (0 to 1).
///
/// # Errors
///
/// Returns an error if the backend cannot draw.
pub fn cell(area: &Area, corners: [(i32, i32); 2], color: RGBColor, strength: f64) -> Result {
    area.draw(&Rectangle::new(corners, color.mix(strength).filled()))?;
    area.draw(&Rectangle::new(corners, color.stroke_width(1)))?;
    Ok(())
}
