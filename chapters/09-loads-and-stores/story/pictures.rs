//! Draws the requests of a block in order.

use ch08_reverse_and_backward::watch::Access;
use lesson::Result;
use lesson::plot::sketch::{GREY, left};
use lesson::plot::{Area, COLORS, Panel};
use plotters::prelude::*;

/// The loads of one array by the warps of a block, in one tile.
pub(super) struct Requests {
    pub title: String,
    /// Every load of an element.
    pub loads: Vec<Access>,
    /// The number of elements of the tile.
    pub len: usize,
}

const REQUESTS_LEFT: i32 = 78;
const REQUESTS_RIGHT: i32 = 14;
const REQUESTS_TOP: i32 = 30;
const REQUESTS_LINE: i32 = 11;

impl Requests {
    /// Returns the number of requests of each warp.
    fn requests(&self) -> i32 {
        self.loads.iter().map(|load| load.request as i32 + 1).max().unwrap_or(0)
    }
}

impl Panel for Requests {
    fn height(&self, _width: u32) -> u32 {
        (REQUESTS_TOP + 8 * REQUESTS_LINE + 22) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        // Each element gets a whole number of pixels, because rounding would create a pattern.
        let width = area.dim_in_pixel().0 as i32 - REQUESTS_LEFT - REQUESTS_RIGHT;
        let pixels = (width / self.len.max(1) as i32).max(1);
        let x = |at: usize| REQUESTS_LEFT + pixels * at as i32;
        left(area, self.title.as_str(), (6, 14), 15)?;
        for (warp, color) in [COLORS[0], COLORS[1]].into_iter().enumerate() {
            for request in 0..self.requests() {
                let top = REQUESTS_TOP + REQUESTS_LINE * request;
                let mine = self.loads.iter().filter(|load| {
                    load.thread as usize / 32 == warp && load.request as i32 == request
                });
                let mut places: Vec<usize> = mine.map(|load| load.position).collect();
                places.sort_unstable();
                for run in places.chunk_by(|a, b| a + 1 == *b) {
                    let corners =
                        [(x(run[0]), top + 1), (x(run[run.len() - 1] + 1), top + REQUESTS_LINE)];
                    area.draw(&Rectangle::new(corners, color.filled()))?;
                }
            }
        }
        let bottom = REQUESTS_TOP + REQUESTS_LINE * self.requests() + 1;
        left(area, "request 1", (6, REQUESTS_TOP + REQUESTS_LINE / 2 + 1), 13)?;
        if self.requests() > 1 {
            let last = REQUESTS_TOP + REQUESTS_LINE * (self.requests() - 1) + REQUESTS_LINE / 2 + 1;
            left(area, format!("… {}", self.requests()), (6, last + 2), 13)?;
        }
        let frame = [(REQUESTS_LEFT - 2, REQUESTS_TOP - 1), (x(self.len) + 2, bottom + 1)];
        area.draw(&Rectangle::new(frame, GREY.mix(0.7).stroke_width(1)))?;
        Ok(())
    }
}
