//! From the row in memory to the registers of the threads.

use linrec::lesson::Result;
use linrec::lesson::plot::sketch::{GREY, cell, left, middle};
use linrec::lesson::plot::{Area, COLORS, Panel};
use plotters::prelude::*;

use super::{COLUMN, LEFT, line};

/// Which steps each thread of a warp holds.
pub struct Deal {
    /// For every thread, its steps in the order of its registers.
    pub loaded: Vec<Vec<usize>>,
    /// Registers of a thread.
    pub registers: usize,
    /// Steps of the tile.
    pub num_steps: usize,
}

const ROW: i32 = 10;
const THREADS: i32 = 84;
const HEIGHT: i32 = 20;

impl Panel for Deal {
    fn height(&self, _width: u32) -> u32 {
        (THREADS + HEIGHT * self.registers as i32 + 30) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let width = COLUMN * self.loaded.len() as i32;
        let x_of_step = |step: usize| LEFT + width * step as i32 / self.num_steps.max(1) as i32;
        left(area, "row", (8, ROW + HEIGHT / 2), 13)?;
        for i in 0..self.registers {
            left(area, format!("x[{i}], c[{i}]"), (2, THREADS + HEIGHT * i as i32 + 10), 12)?;
        }
        left(area, "thread", (8, THREADS + HEIGHT * self.registers as i32 + 14), 13)?;
        let most = self.loaded.iter().map(Vec::len).max().unwrap_or(0);
        for (thread, steps) in self.loaded.iter().enumerate() {
            let color = self.color(thread, steps.len() < most);
            let x = LEFT + COLUMN * thread as i32;
            if let (Some(&first), Some(&last)) = (steps.first(), steps.last()) {
                let (begin, end) = (x_of_step(first), x_of_step(last + 1));
                for &step in steps {
                    let corners = [(x_of_step(step), ROW), (x_of_step(step + 1), ROW + HEIGHT)];
                    cell(area, corners, color, 0.45)?;
                }
                let ends = [((begin + end) / 2, ROW + HEIGHT), (x + COLUMN / 2, THREADS)];
                line(area, ends, color, 0.9)?;
            }
            for i in 0..self.registers {
                let y = THREADS + HEIGHT * i as i32;
                let corners = [(x, y), (x + COLUMN, y + HEIGHT)];
                let at = (x + COLUMN / 2, y + HEIGHT / 2);
                match steps.get(i) {
                    Some(step) => {
                        cell(area, corners, color, 0.45)?;
                        middle(area, step.to_string(), at, 11)?;
                    }
                    None => {
                        area.draw(&Rectangle::new(corners, GREY.mix(0.4).stroke_width(1)))?;
                        middle(area, "0,1", at, 9)?;
                    }
                }
            }
            let below = THREADS + HEIGHT * self.registers as i32 + 14;
            middle(area, thread.to_string(), (x + COLUMN / 2, below), 11)?;
        }
        Ok(())
    }
}

impl Deal {
    /// Neighbours differ; the tail has colours of its own.
    fn color(&self, thread: usize, tail: bool) -> RGBColor {
        match (tail, thread % 2) {
            (false, 0) => COLORS[0],
            (false, _) => COLORS[5],
            (true, 0) => COLORS[1],
            (true, _) => COLORS[4],
        }
    }
}
