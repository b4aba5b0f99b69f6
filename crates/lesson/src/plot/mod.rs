//! Figures: charts and heat maps in one style, drawn by plotters as SVG.
//!
//! Backgrounds are pure white and text pure black; the book replaces exactly these two by the
//! colours of the reader's theme. The colours of the data are Okabe and Ito's, told apart by
//! colour-blind readers and visible on both.
//!
//! ```
//! use lesson::plot::{self, Chart};
//!
//! let points = (0..10).map(|l| (f64::from(l), 0.9_f64.powi(l)));
//! let chart = Chart::new("An impulse fades").axes("position l", "output y").line("c = 0.9", points);
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

/// The colours of data series, in the order in which charts use them. Kernels have colours of their
/// own: [`kernels`].
pub const COLORS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// The colour of text, which the book replaces by that of the reader's theme: for lines over data.
pub const TEXT: RGBColor = BLACK;

/// The width of a figure in pixels; the book shows it at this size or smaller.
pub const WIDTH: u32 = 720;

/// The area that a panel draws into.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Something that fills a part of a figure.
pub trait Panel {
    /// Draws it.
    ///
    /// # Errors
    ///
    /// If the backend cannot draw.
    fn draw(&self, area: &Area) -> Result;

    /// The height that suits a panel of this width, in pixels.
    fn height(&self, width: u32) -> u32;
}

/// A figure of one or more panels: up to two side by side, further ones below.
///
/// # Errors
///
/// If a panel cannot be drawn.
pub fn svg(panels: &[&dyn Panel]) -> Result<String> {
    grid(panels, panels.len().clamp(1, 2))
}

/// A figure with so many panels side by side.
///
/// # Errors
///
/// If a panel cannot be drawn.
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

/// An SVG of plotters without the attributes that say what is so anyway: a quarter of its bytes.
#[must_use]
pub fn without_defaults(svg: &str) -> String {
    let svg = [r#" opacity="1""#, r#" stroke="none""#, r#" stroke-width="1""#]
        .iter()
        .fold(svg.to_owned(), |svg, default| svg.replace(default, ""));
    // Sizes of letters have some fifteen digits, of which nobody sees more than two.
    let mut pieces = svg.split(r#" font-size=""#);
    let mut slim = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (size, rest) = piece.split_once('"').unwrap_or((piece, ""));
        let digits = size.find('.').map_or(size.len(), |point| size.len().min(point + 3));
        slim += &format!(r#" font-size="{}"{rest}"#, &size[..digits]);
    }
    slim
}

/// The text style of titles and labels.
fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(1, 1)).color(&BLACK)
}
