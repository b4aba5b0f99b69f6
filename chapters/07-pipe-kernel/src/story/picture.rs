//! The picture of a block's life.

use linrec::lesson::Result;
use linrec::lesson::plot::{Area, COLORS, Panel};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::life::{Act, Stretch};

/// What the warps of a block do, one row for each, from left to right in the order of execution.
pub struct Lives(pub Vec<Stretch>);

const LEFT: i32 = 60;
const RIGHT: i32 = 10;
const TOP: i32 = 30;
/// From one warp to the next: a line of words, the marks of shared memory, the bar.
const ROW: i32 = 84;
const MARKS: i32 = 30;
const BAR: i32 = 40;
const BAR_HEIGHT: i32 = 24;
const LEGEND: i32 = 52;

/// The colour of each of the two arrays of totals.
const TURNS: [RGBColor; 2] = [COLORS[1], COLORS[4]];

fn style(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(1, 1)).color(&BLACK)
}

impl Lives {
    fn warps(&self) -> i32 {
        self.0.iter().map(|stretch| stretch.warp as i32 + 1).max().unwrap_or(0)
    }

    fn events(&self) -> usize {
        self.0.iter().map(|stretch| stretch.first + stretch.count).max().unwrap_or(1)
    }
}

impl Panel for Lives {
    fn height(&self, _width: u32) -> u32 {
        (TOP + ROW * self.warps() + LEGEND) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let width = area.dim_in_pixel().0 as i32 - LEFT - RIGHT;
        let events = self.events() as f64;
        let x = |event: usize| LEFT + (f64::from(width) * event as f64 / events).round() as i32;
        let grey = RGBColor(128, 128, 128);
        let title = "One block, two warps: what they do, in the order of execution";
        area.draw(&Text::new(title, (LEFT, 8), style(15)))?;

        for warp in 0..self.warps() {
            let top = TOP + ROW * warp;
            let (bar, middle) = (top + BAR, top + BAR + BAR_HEIGHT / 2);
            let left = Pos::new(HPos::Left, VPos::Center);
            area.draw(&Text::new(format!("warp {warp}"), (8, middle), style(14).pos(left)))?;
            let mine: Vec<_> = self.0.iter().filter(|one| one.warp as i32 == warp).collect();
            // From the first to the last thing it does, so that waiting shows as a thin line.
            if let (Some(first), Some(last)) = (mine.first(), mine.last()) {
                let line = [(x(first.first), middle), (x(last.first + last.count), middle)];
                area.draw(&PathElement::new(line, grey.stroke_width(1)))?;
            }
            for one in &mine {
                let (from, to) = (x(one.first), x(one.first + one.count));
                let color = match one.act {
                    Act::Load => COLORS[0],
                    Act::Shuffle => COLORS[3],
                    Act::Store => COLORS[2],
                    Act::Publish(turn) | Act::Take(turn) => TURNS[turn as usize % 2],
                    Act::Arrive => grey,
                };
                let corners = [(from, bar), (to, bar + BAR_HEIGHT)];
                area.draw(&Rectangle::new(corners, color.filled()))?;
                let mark = ((from + to) / 2, top + MARKS);
                match one.act {
                    Act::Publish(_) => area.draw(&Circle::new(mark, 5, color.filled()))?,
                    Act::Take(_) => area.draw(&Circle::new(mark, 5, color.stroke_width(2)))?,
                    Act::Arrive => {
                        let line = [(mark.0, bar - 6), (mark.0, bar + BAR_HEIGHT + 6)];
                        area.draw(&PathElement::new(line, BLACK.stroke_width(2)))?;
                    }
                    _ => {}
                }
            }
            self.name_tiles(area, warp as u32, top + 12, &x)?;
        }
        legend(area, TOP + ROW * self.warps() + 12)
    }
}

impl Lives {
    /// The number of each tile, above where the warp begins with it.
    fn name_tiles(&self, area: &Area, warp: u32, y: i32, x: &dyn Fn(usize) -> i32) -> Result {
        let mut seen = None;
        for one in self.0.iter().filter(|one| one.warp == warp) {
            if seen != Some(one.tile) {
                seen = Some(one.tile);
                let text = Text::new(format!("tile {}", one.tile), (x(one.first), y), style(13));
                area.draw(&text)?;
            }
        }
        Ok(())
    }
}

fn legend(area: &Area, top: i32) -> Result {
    let left = Pos::new(HPos::Left, VPos::Center);
    let words = style(13).pos(left);
    let boxes = [("loads", COLORS[0]), ("shuffles", COLORS[3]), ("stores", COLORS[2])];
    let mut x = LEFT;
    for (name, color) in boxes {
        area.draw(&Rectangle::new([(x, top - 6), (x + 12, top + 6)], color.filled()))?;
        area.draw(&Text::new(name, (x + 18, top), words.clone()))?;
        x += 100;
    }
    area.draw(&PathElement::new([(x + 6, top - 9), (x + 6, top + 9)], BLACK.stroke_width(2)))?;
    area.draw(&Text::new("arrives at the barrier", (x + 18, top), words.clone()))?;
    let (mut x, top) = (LEFT, top + 24);
    for (turn, color) in TURNS.into_iter().enumerate() {
        area.draw(&Circle::new((x + 6, top), 5, color.filled()))?;
        area.draw(&Text::new(format!("writes totals[{turn}]"), (x + 18, top), words.clone()))?;
        area.draw(&Circle::new((x + 156, top), 5, color.stroke_width(2)))?;
        area.draw(&Text::new(format!("reads totals[{turn}]"), (x + 168, top), words.clone()))?;
        x += 310;
    }
    Ok(())
}
