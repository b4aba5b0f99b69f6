//! Parts of three arrays, and who loads each element.

use std::ops::Range;

use linrec::lesson::Result;
use linrec::lesson::plot::sketch::{GREY, cell, left, middle};
use linrec::lesson::plot::{Area, Panel};
use plotters::prelude::*;

use super::{TINT, color};

/// Who loads an element: tile and thread.
type Owner = Option<(u32, u32)>;

/// The same windows of each array.
pub struct Windows {
    /// An array's name, and for each window the owners of its elements.
    pub arrays: Vec<(&'static str, Vec<Vec<Owner>>)>,
    /// The positions of each window.
    pub windows: Vec<Range<usize>>,
}

const LEFT: i32 = 78;
const CELL: i32 = 30;
const GAP: i32 = 18;
const TOP: i32 = 30;
const ROW: i32 = 46;
const HEIGHT: i32 = 30;

impl Panel for Windows {
    fn height(&self, _width: u32) -> u32 {
        (TOP + ROW * self.arrays.len() as i32 + 12) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        left(area, "position", (6, 14), 13)?;
        let mut begin = LEFT;
        for (number, window) in self.windows.iter().enumerate() {
            for (place, at) in window.clone().enumerate() {
                let x = begin + CELL * place as i32;
                middle(area, at.to_string(), (x + CELL / 2, 14), 13)?;
                for (row, (_, windows)) in self.arrays.iter().enumerate() {
                    let top = TOP + ROW * row as i32;
                    let corners = [(x, top), (x + CELL, top + HEIGHT)];
                    let centre = (x + CELL / 2, top + HEIGHT / 2);
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
            begin += CELL * window.len() as i32 + GAP;
        }
        for (row, (name, _)) in self.arrays.iter().enumerate() {
            left(area, *name, (6, TOP + ROW * row as i32 + HEIGHT / 2), 14)?;
        }
        Ok(())
    }
}
