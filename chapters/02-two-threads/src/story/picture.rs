//! A picture of a tree over the threads.

use linrec::lesson::Result;
use linrec::lesson::plot::{Area, COLORS, Panel};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Which parts every thread's transition covers, level by level. A line comes from every entry that
/// was combined into another one.
pub struct WhoHoldsWhat {
    /// For every level and every thread, the first and the last part.
    pub levels: Vec<Vec<(usize, usize)>>,
}

const LEFT: i32 = 74;
const TOP: i32 = 34;
const ROW: i32 = 78;
const BOX: (i32, i32) = (60, 28);

impl Panel for WhoHoldsWhat {
    fn height(&self, _width: u32) -> u32 {
        (TOP + ROW * self.levels.len() as i32 - 20) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let threads = self.levels.first().map_or(1, Vec::len).max(1) as i32;
        let column = (area.dim_in_pixel().0 as i32 - LEFT) / threads;
        let center = |level: usize, t: usize| {
            (LEFT + column * t as i32 + column / 2, TOP + ROW * level as i32 + 22)
        };
        let text = |size| ("sans-serif", size).into_text_style(&(1, 1)).color(&BLACK);
        let middle = Pos::new(HPos::Center, VPos::Center);

        for t in 0..threads as usize {
            let (x, _) = center(0, t);
            area.draw(&Text::new(format!("thread {t}"), (x, 18), text(13).pos(middle)))?;
        }
        for (level, ranges) in self.levels.iter().enumerate() {
            let (_, y) = center(level, 0);
            let left = Pos::new(HPos::Left, VPos::Center);
            area.draw(&Text::new(format!("level {level}"), (8, y), text(13).pos(left)))?;
            for (t, &(from, to)) in ranges.iter().enumerate() {
                let (x, y) = center(level, t);
                let mut color = COLORS[0];
                if level > 0 {
                    let before = self.levels[level - 1][t];
                    // The entry itself came down, and the one that ends just before it joined.
                    draw_line(area, center(level - 1, t), (x, y), COLORS[5])?;
                    if before != (from, to) {
                        draw_line(area, center(level - 1, before.0 - 1), (x, y), COLORS[1])?;
                    }
                }
                if from == 0 {
                    color = COLORS[2];
                }
                let corners = [(x - BOX.0 / 2, y - BOX.1 / 2), (x + BOX.0 / 2, y + BOX.1 / 2)];
                area.draw(&Rectangle::new(corners, WHITE.filled()))?;
                area.draw(&Rectangle::new(corners, color.stroke_width(2)))?;
                let range = if from == to { format!("{from}") } else { format!("{from} to {to}") };
                area.draw(&Text::new(range, (x, y), text(14).pos(middle)))?;
            }
        }
        Ok(())
    }
}

/// A line from below one box to above another.
fn draw_line(area: &Area, from: (i32, i32), to: (i32, i32), color: RGBColor) -> Result {
    let ends = [(from.0, from.1 + BOX.1 / 2), (to.0, to.1 - BOX.1 / 2)];
    area.draw(&PathElement::new(ends, color.stroke_width(2)))?;
    Ok(())
}
