//! A row in memory, and who holds it.

use linrec::lesson::Result;
use linrec::lesson::plot::sketch::{cell, left, middle};
use linrec::lesson::plot::{Area, Panel};

use super::{TINT, color};

/// The thread of every element, once for each of some ways to walk.
pub struct Rows {
    /// What stands before the row, and the threads of its elements.
    pub rows: Vec<(&'static str, Vec<u32>)>,
}

const LEFT: i32 = 72;
const RIGHT: i32 = 12;
const ROW: i32 = 66;
const HEIGHT: i32 = 26;

impl Panel for Rows {
    fn height(&self, _width: u32) -> u32 {
        (ROW * self.rows.len() as i32 + 14) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let width = area.dim_in_pixel().0 as i32 - LEFT - RIGHT;
        for (number, (name, threads)) in self.rows.iter().enumerate() {
            let top = ROW * number as i32 + 10;
            let x = |at: usize| LEFT + width * at as i32 / threads.len().max(1) as i32;
            left(area, *name, (6, top + HEIGHT / 2), 15)?;
            for (at, &thread) in threads.iter().enumerate() {
                cell(area, [(x(at), top), (x(at + 1), top + HEIGHT)], color(0, thread), TINT)?;
            }
            left(area, "thread", (6, top + HEIGHT + 12), 13)?;
            for thread in [0, 6, 12, 18, 24, 31] {
                let mine = |at: &usize| threads[*at] == thread;
                let first = (0..threads.len()).find(mine).unwrap_or(0);
                let last = (0..threads.len()).rfind(mine).unwrap_or(0);
                let at = ((x(first) + x(last + 1)) / 2, top + HEIGHT + 12);
                middle(area, thread.to_string(), at, 14)?;
            }
        }
        Ok(())
    }
}
