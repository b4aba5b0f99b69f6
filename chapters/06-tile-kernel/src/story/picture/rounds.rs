//! How far back each lane reaches, round after round.

use linrec::lesson::Result;
use linrec::lesson::plot::sketch::{cell, left, middle};
use linrec::lesson::plot::{Area, COLORS, Panel};

use super::{COLUMN, LEFT, line};

/// The steps that each lane's transition spans, before the first round and after each.
pub struct Rounds {
    /// For every round, of every lane.
    pub spans: Vec<Vec<usize>>,
    /// The steps up to and with the lane's own: what it spans in the end.
    pub ends: Vec<usize>,
}

const TOP: i32 = 30;
const ROW: i32 = 52;
const HEIGHT: i32 = 22;

impl Panel for Rounds {
    fn height(&self, _width: u32) -> u32 {
        (TOP + ROW * self.spans.len() as i32 - ROW + HEIGHT + 12) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        left(area, "lane", (8, 14), 13)?;
        for lane in 0..self.ends.len() {
            middle(area, lane.to_string(), (center(lane), 14), 11)?;
        }
        for (round, spans) in self.spans.iter().enumerate() {
            let y = TOP + ROW * round as i32;
            let name = if round == 0 { "level 1".into() } else { format!("round {round}") };
            left(area, name, (8, y + HEIGHT / 2), 13)?;
            for (lane, &span) in spans.iter().enumerate() {
                let reach = 1 << round.saturating_sub(1);
                if round > 0 && lane >= reach {
                    let ends = [(center(lane - reach), y - ROW + HEIGHT), (center(lane), y)];
                    line(area, ends, COLORS[1], 0.75)?;
                }
                let done = span == self.ends[lane];
                let color = if done { COLORS[2] } else { COLORS[0] };
                let x = LEFT + COLUMN * lane as i32;
                cell(area, [(x, y), (x + COLUMN, y + HEIGHT)], color, 0.3)?;
                middle(area, span.to_string(), (center(lane), y + HEIGHT / 2), 11)?;
            }
        }
        Ok(())
    }
}

fn center(lane: usize) -> i32 {
    LEFT + COLUMN * lane as i32 + COLUMN / 2
}
