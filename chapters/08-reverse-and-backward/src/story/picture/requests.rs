//! Where the requests of a block go, one after the other.

use linrec::lesson::Result;
use linrec::lesson::plot::sketch::{GREY, left};
use linrec::lesson::plot::{Area, COLORS, Panel};
use plotters::prelude::*;

use crate::watch::Access;

/// The loads of one array by the warps of a block, in one tile.
pub struct Requests {
    /// What stands above.
    pub title: String,
    /// Every element that is loaded.
    pub loads: Vec<Access>,
    /// Elements of the tile.
    pub len: usize,
}

const LEFT: i32 = 78;
const RIGHT: i32 = 14;
const TOP: i32 = 30;
const LINE: i32 = 11;

impl Requests {
    /// The requests of each warp.
    fn requests(&self) -> i32 {
        self.loads.iter().map(|load| load.request as i32 + 1).max().unwrap_or(0)
    }
}

impl Panel for Requests {
    fn height(&self, _width: u32) -> u32 {
        (TOP + 8 * LINE + 22) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let width = f64::from(area.dim_in_pixel().0 as i32 - LEFT - RIGHT);
        let x = |at: usize| LEFT + (width * at as f64 / self.len as f64).round() as i32;
        left(area, self.title.as_str(), (6, 14), 15)?;
        for (warp, color) in [COLORS[0], COLORS[1]].into_iter().enumerate() {
            for request in 0..self.requests() {
                let top = TOP + LINE * request;
                let mine = self.loads.iter().filter(|load| {
                    load.thread as usize / 32 == warp && load.request as i32 == request
                });
                let mut places: Vec<usize> = mine.map(|load| load.position).collect();
                places.sort_unstable();
                for run in places.chunk_by(|a, b| a + 1 == *b) {
                    let corners = [(x(run[0]), top + 1), (x(run[run.len() - 1] + 1), top + LINE)];
                    area.draw(&Rectangle::new(corners, color.filled()))?;
                }
            }
        }
        let bottom = TOP + LINE * self.requests() + 1;
        left(area, "request 1", (6, TOP + LINE / 2 + 1), 13)?;
        if self.requests() > 1 {
            let last = TOP + LINE * (self.requests() - 1) + LINE / 2 + 1;
            left(area, format!("… {}", self.requests()), (6, last + 2), 13)?;
        }
        let frame = [(LEFT - 2, TOP - 1), (x(self.len) + 2, bottom + 1)];
        area.draw(&Rectangle::new(frame, GREY.mix(0.7).stroke_width(1)))?;
        Ok(())
    }
}
