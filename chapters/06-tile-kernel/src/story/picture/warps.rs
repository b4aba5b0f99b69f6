//! The warps of a block meet in shared memory.

use ch02_two_threads::Transition;
use linrec::lesson::Result;
use linrec::lesson::plot::sketch::{GREY, cell, left, middle};
use linrec::lesson::plot::{Area, COLORS, Panel};

use super::line;

/// The transitions of the warps, and the state before each and after the last.
pub struct Warps {
    /// What each warp wrote.
    pub totals: Vec<Transition<f32>>,
    /// One more than there are warps.
    pub states: Vec<f32>,
}

const BEGIN: i32 = 88;
const TOTAL: i32 = 30;
const BARRIER: i32 = 94;
const STATE: i32 = 124;
const WARP: i32 = 178;
const HEIGHT: i32 = 26;

impl Panel for Warps {
    fn height(&self, _width: u32) -> u32 {
        (WARP + HEIGHT + 12) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let width = area.dim_in_pixel().0 as i32;
        let column = (width - BEGIN - 6) / self.states.len().max(1) as i32;
        let x = |index: usize| BEGIN + column * index as i32;
        let center = |index: usize| x(index) + column / 2 - 4;
        let corners =
            |index: usize, y: i32, high: i32| [(x(index), y), (x(index) + column - 8, y + high)];

        left(area, "totals[]", (4, TOTAL + 20), 12)?;
        left(area, "barrier", (4, BARRIER), 12)?;
        left(area, "carry", (4, STATE + 13), 12)?;
        left(area, "state before", (4, WARP + 13), 12)?;
        for part in (BEGIN..width - 10).step_by(12) {
            line(area, [(part, BARRIER), (part + 7, BARRIER)], GREY, 1.0)?;
        }
        for (warp, total) in self.totals.iter().enumerate() {
            middle(area, format!("warp {warp}"), (center(warp), 14), 12)?;
            cell(area, corners(warp, TOTAL, 42), COLORS[0], 0.3)?;
            middle(area, format!("× {:.3}", total.coeff), (center(warp), TOTAL + 13), 12)?;
            middle(area, format!("+ {:.2}", total.state), (center(warp), TOTAL + 30), 12)?;
            // The state before, through the warp's transition, is the state after.
            let after = (center(warp + 1), STATE);
            line(area, [(center(warp), TOTAL + 42), after], COLORS[0], 0.9)?;
            let along = [(x(warp) + column - 8, STATE + 13), (x(warp + 1), STATE + 13)];
            line(area, along, COLORS[1], 1.0)?;
            line(area, [(center(warp), STATE + HEIGHT), (center(warp), WARP)], COLORS[1], 0.9)?;
            cell(area, corners(warp, WARP, HEIGHT), COLORS[2], 0.3)?;
            middle(area, format!("warp {warp}"), (center(warp), WARP + 13), 12)?;
        }
        for (index, state) in self.states.iter().enumerate() {
            cell(area, corners(index, STATE, HEIGHT), COLORS[1], 0.3)?;
            middle(area, format!("{state:.2}"), (center(index), STATE + 13), 12)?;
        }
        let last = self.states.len().saturating_sub(1);
        middle(area, "final state", (center(last), WARP + 13), 12)
    }
}
