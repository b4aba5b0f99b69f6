//! The chapter's pictures, drawn from the emulator's records.

use std::ops::Range;

use lesson::Result;
use lesson::plot::sketch::{GREY, cell, left, middle};
use lesson::plot::{Area, COLORS, Panel};
use plotters::prelude::{RGBColor, *};

/// The opacity of a cell's background.
const TINT: f64 = 0.45;

/// Neighbouring threads have different colours, and so have neighbouring tiles.
fn color(tile: u32, thread: u32) -> RGBColor {
    match (tile % 2, thread % 2) {
        (0, 0) => COLORS[0],
        (0, _) => COLORS[5],
        (_, 0) => COLORS[1],
        (_, _) => COLORS[4],
    }
}

/// The thread of every element, for several directions.
pub(super) struct Rows {
    /// The label of each row, and the threads of its elements.
    pub rows: Vec<(&'static str, Vec<u32>)>,
}

const ROWS_LEFT: i32 = 72;
const ROWS_RIGHT: i32 = 12;
const ROWS_PITCH: i32 = 66;
const ROWS_HEIGHT: i32 = 26;

impl Panel for Rows {
    fn height(&self, _width: u32) -> u32 {
        (ROWS_PITCH * self.rows.len() as i32 + 14) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let width = area.dim_in_pixel().0 as i32 - ROWS_LEFT - ROWS_RIGHT;
        for (number, (name, threads)) in self.rows.iter().enumerate() {
            let top = ROWS_PITCH * number as i32 + 10;
            let x = |at: usize| ROWS_LEFT + width * at as i32 / threads.len().max(1) as i32;
            left(area, *name, (6, top + ROWS_HEIGHT / 2), 15)?;
            for (at, &thread) in threads.iter().enumerate() {
                cell(area, [(x(at), top), (x(at + 1), top + ROWS_HEIGHT)], color(0, thread), TINT)?;
            }
            left(area, "thread", (6, top + ROWS_HEIGHT + 12), 13)?;
            for thread in [0, 6, 12, 18, 24, 31] {
                let mine = |at: &usize| threads[*at] == thread;
                let first = (0..threads.len()).find(mine).unwrap_or(0);
                let last = (0..threads.len()).rfind(mine).unwrap_or(0);
                let at = ((x(first) + x(last + 1)) / 2, top + ROWS_HEIGHT + 12);
                middle(area, thread.to_string(), at, 14)?;
            }
        }
        Ok(())
    }
}

/// The tile and the thread that load an element.
pub(super) type Owner = Option<(u32, u32)>;

/// Parts of several arrays at the same positions, and the threads that load the elements.
pub(super) struct Windows {
    /// An array's name, and the owners of its elements for each window.
    pub arrays: Vec<(&'static str, Vec<Vec<Owner>>)>,
    pub windows: Vec<Range<usize>>,
}

const WINDOWS_LEFT: i32 = 78;
const WINDOWS_CELL: i32 = 30;
const WINDOWS_GAP: i32 = 18;
const WINDOWS_TOP: i32 = 30;
const WINDOWS_PITCH: i32 = 46;
const WINDOWS_HEIGHT: i32 = 30;

impl Panel for Windows {
    fn height(&self, _width: u32) -> u32 {
        (WINDOWS_TOP + WINDOWS_PITCH * self.arrays.len() as i32 + 12) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        left(area, "position", (6, 14), 13)?;
        let mut begin = WINDOWS_LEFT;
        for (number, window) in self.windows.iter().enumerate() {
            for (place, at) in window.clone().enumerate() {
                let x = begin + WINDOWS_CELL * place as i32;
                middle(area, at.to_string(), (x + WINDOWS_CELL / 2, 14), 13)?;
                for (row, (_, windows)) in self.arrays.iter().enumerate() {
                    let top = WINDOWS_TOP + WINDOWS_PITCH * row as i32;
                    let corners = [(x, top), (x + WINDOWS_CELL, top + WINDOWS_HEIGHT)];
                    let centre = (x + WINDOWS_CELL / 2, top + WINDOWS_HEIGHT / 2);
                    match windows[number].get(place).copied().flatten() {
                        Some((tile, thread)) => {
                            cell(area, corners, color(tile, thread), TINT)?;
                            middle(area, thread.to_string(), centre, 15)?;
                        }
                        None => {
                            area.draw(&Rectangle::new(corners, GREY.mix(0.6).stroke_width(1)))?;
                            middle(area, "–", centre, 15)?;
                        }
                    }
                }
            }
            begin += WINDOWS_CELL * window.len() as i32 + WINDOWS_GAP;
        }
        for (row, (name, _)) in self.arrays.iter().enumerate() {
            left(
                area,
                *name,
                (6, WINDOWS_TOP + WINDOWS_PITCH * row as i32 + WINDOWS_HEIGHT / 2),
                14,
            )?;
        }
        Ok(())
    }
}
