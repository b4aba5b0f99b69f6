//! Timelines of the ranks: one row for each rank, and one bar for each group of rows.

use lesson::plot::sketch::{left, middle};
use lesson::plot::{self, Area, COLORS, Panel};
use plotters::prelude::*;

use crate::simulate::Span;

const LEFT: i32 = 70;
const RIGHT: i32 = 12;
const TOP: i32 = 34;
const ROW: i32 = 24;
const BAR: i32 = 18;
const BELOW: i32 = 26;

/// The timeline of one way.
struct Timeline<'a> {
    title: &'static str,
    spans: &'a [Vec<Span>],
    /// The time at which the slower of both ways is done.
    end: f64,
}

/// Draws a pipeline of a few groups above a pipeline of many.
pub(super) fn stages(pipeline: &[Vec<Span>], boxes: &[Vec<Span>]) -> lesson::Result<String> {
    let ends = [pipeline, boxes].into_iter().flatten().flatten().map(|span| span.1);
    let end = ends.fold(0.0, f64::max);
    let above = Timeline { title: "NCCL, 12 groups of rows", spans: pipeline, end };
    let below = Timeline { title: "Mailboxes, a hundred waves of blocks", spans: boxes, end };
    plot::grid(&[&above, &below], 1)
}

impl Panel for Timeline<'_> {
    fn height(&self, _width: u32) -> u32 {
        (TOP + ROW * self.spans.len() as i32 + BELOW) as u32
    }

    fn draw(&self, area: &Area) -> lesson::Result {
        let width = f64::from(area.dim_in_pixel().0 as i32 - LEFT - RIGHT);
        let x = |time: f64| LEFT + (width * time / self.end).round() as i32;
        left(area, self.title, (LEFT, 14), 15)?;
        for (rank, spans) in self.spans.iter().enumerate() {
            let y = TOP + ROW * rank as i32;
            middle(area, format!("rank {rank}"), (LEFT / 2, y + BAR / 2), 12)?;
            for (group, span) in spans.iter().enumerate() {
                let color = if group % 2 == 0 { COLORS[0].mix(1.0) } else { COLORS[0].mix(0.6) };
                let corners = [(x(span.0), y), (x(span.1).max(x(span.0) + 1), y + BAR)];
                area.draw(&Rectangle::new(corners, color.filled()))?;
            }
        }
        let last = self.spans.iter().flatten().map(|span| span.1).fold(0.0, f64::max);
        let y = TOP + ROW * self.spans.len() as i32 + 8;
        left(area, format!("the last rank is done after {:.0} µs", 1e6 * last), (LEFT, y), 12)?;
        Ok(())
    }
}
