//! The chapter's pictures, drawn from what the emulator saw.

mod requests;
mod rows;
mod windows;

pub use requests::Requests;
pub use rows::Rows;
pub use windows::Windows;

use linrec::lesson::plot::COLORS;
use plotters::prelude::RGBColor;

/// How strong the ground of a cell is.
const TINT: f64 = 0.45;

/// Neighbouring threads differ; a second tile has colours of its own.
fn color(tile: u32, thread: u32) -> RGBColor {
    match (tile % 2, thread % 2) {
        (0, 0) => COLORS[0],
        (0, _) => COLORS[5],
        (_, 0) => COLORS[1],
        (_, _) => COLORS[4],
    }
}
