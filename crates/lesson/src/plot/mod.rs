//! Charts and heat maps in one style, drawn as SVG by plotters.
//!
//! Backgrounds are pure white and text is pure black; the book replaces exactly these two by the
//! colours of the reader's theme. The data's colours are the palette of Okabe and Ito, which
//! colour-blind readers can tell apart and which is visible on both backgrounds.
//!
//! ```
//! use lesson::plot::{self, Chart};
//!
//! let points = (0..10).map(|l| (f64::from(l), 0.9_f64.powi(l)));
//! let chart = Chart::new("An impulse fades").axes("position l", "output y");
//! let chart = chart.line("c = 0.9", points);
//! let svg = plot::svg(&[&chart])?;
//! assert!(svg.starts_with("<svg"));
//! # Ok::<(), lesson::Error>(())
//! ```

mod chart;
mod heat_map;
pub mod kernels;
mod legend;
mod mark;
pub mod sketch;
mod ticks;

pub use chart::Chart;
pub use heat_map::HeatMap;
pub use mark::Dot;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::Result;

/// The colours of data series, in the order in which charts use them. Kernels have their own
/// colours: [`kernels`].
pub const COLORS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// The colour of text and of lines over data. The book replaces it by the text colour of the
/// reader's theme.
pub const TEXT: RGBColor = BLACK;

/// The width of a figure in pixels; the book shows it at this size or smaller.
pub const WIDTH: u32 = 720;

/// The drawing area of a panel.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A part of a figure.
pub trait Panel {
    /// Draws the panel.
    ///
    /// # Errors
    ///
    /// Returns an error if the backend cannot draw.
    fn draw(&self, area: &Area) -> Result;

    /// Returns the height in pixels that suits a panel of this width.
    fn height(&self, width: u32) -> u32;
}

/// Draws a figure of one or more panels: up to two next to each other, the others below.
///
/// # Errors
///
/// Returns an error if a panel cannot be drawn.
pub fn svg(panels: &[&dyn Panel]) -> Result<String> {
    grid(panels, panels.len().clamp(1, 2))
}

/// Draws a figure with `columns` panels in each row.
///
/// # Errors
///
/// Returns an error if a panel cannot be drawn.
pub fn grid(panels: &[&dyn Panel], columns: usize) -> Result<String> {
    let columns = columns.max(1);
    let rows = panels.len().div_ceil(columns).max(1);
    let panel_width = WIDTH / columns as u32;
    let panel_height = panels.iter().map(|panel| panel.height(panel_width)).max().unwrap_or(1);
    let mut svg = String::new();
    {
        let size = (WIDTH, panel_height * rows as u32);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        for (panel, area) in panels.iter().zip(root.split_evenly((rows, columns))) {
            panel.draw(&area)?;
        }
        root.present()?;
    }
    Ok(without_defaults(&svg))
}

/// Removes attributes with default values from an SVG of plotters, which saves a quarter of its
/// bytes.
#[must_use]
pub fn without_defaults(svg: &str) -> String {
    let svg = [r#" opacity="1""#, r#" stroke="none""#, r#" stroke-width="1""#]
        .iter()
        .fold(svg.to_owned(), |svg, default| svg.replace(default, ""));
    // Font sizes have some fifteen digits; no more than two are visible.
    let mut pieces = svg.split(r#" font-size=""#);
    let mut slim = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (size, rest) = piece.split_once('"').unwrap_or((piece, ""));
        let digits = size.find('.').map_or(size.len(), |point| size.len().min(point + 3));
        slim += &format!(r#" font-size="{}"{rest}"#, &size[..digits]);
    }
    slim
}

fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(1, 1)).color(&BLACK)
}
