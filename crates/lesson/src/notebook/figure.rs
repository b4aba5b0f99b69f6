//! Figures that are displayed in the cell that makes them.

use super::content::{Content, Show};
use crate::plot::{Chart, HeatMap, Panel, svg};

/// A drawn figure.
#[derive(Debug, Clone)]
pub struct Figure {
    svg: String,
    panels: usize,
}

/// Draws a figure of one or more panels: `figure(&[&chart])`. If a panel cannot be drawn, the
/// figure shows the error instead.
pub fn figure(panels: &[&dyn Panel]) -> Figure {
    let svg = svg(panels).unwrap_or_else(|error| {
        let what = super::content::escaped(&format!("this figure cannot be drawn: {error}"));
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"30\"><text y=\"20\">{what}</text></svg>")
    });
    Figure { svg, panels: panels.len() }
}

impl Figure {
    /// Makes a figure of finished SVG, such as the chapters' own drawings.
    pub fn from_svg(svg: impl Into<String>) -> Figure {
        Figure { svg: svg.into(), panels: 1 }
    }
}

impl Show for Figure {
    fn content(&self) -> Content {
        let plain = match self.panels {
            1 => "a figure".to_owned(),
            n => format!("a figure of {n} panels"),
        };
        Content::svg(plain, self.svg.clone())
    }
}

impl Show for Chart {
    fn content(&self) -> Content {
        figure(&[self]).content()
    }
}

impl Show for HeatMap {
    fn content(&self) -> Content {
        figure(&[self]).content()
    }
}
