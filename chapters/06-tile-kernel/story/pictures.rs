//! The chapter's pictures, drawn from the emulator's records.

use ch02_two_threads::Transition;
use lesson::Result;
use lesson::plot::sketch::{GREY, cell, left, middle};
use lesson::plot::{Area, COLORS, Panel};
use plotters::prelude::*;

/// The left edge of the first of 32 columns, and the width of each.
const LEFT: i32 = 64;
const COLUMN: i32 = 20;

fn line(area: &Area, ends: [(i32, i32); 2], color: RGBColor, strength: f64) -> lesson::Result {
    area.draw(&PathElement::new(ends, color.mix(strength).stroke_width(1)))?;
    Ok(())
}

/// The steps that each thread of a warp holds.
pub(super) struct Deal {
    /// For every thread, its steps in the order of its registers.
    pub loaded: Vec<Vec<usize>>,
    pub registers: usize,
    pub num_steps: usize,
}

const DEAL_ROW: i32 = 10;
const THREADS: i32 = 84;
const DEAL_HEIGHT: i32 = 20;

impl Panel for Deal {
    fn height(&self, _width: u32) -> u32 {
        (THREADS + DEAL_HEIGHT * self.registers as i32 + 30) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let width = COLUMN * self.loaded.len() as i32;
        let x_of_step = |step: usize| LEFT + width * step as i32 / self.num_steps.max(1) as i32;
        left(area, "row", (8, DEAL_ROW + DEAL_HEIGHT / 2), 13)?;
        for i in 0..self.registers {
            left(area, format!("x[{i}], c[{i}]"), (2, THREADS + DEAL_HEIGHT * i as i32 + 10), 12)?;
        }
        left(area, "thread", (8, THREADS + DEAL_HEIGHT * self.registers as i32 + 14), 13)?;
        let most = self.loaded.iter().map(Vec::len).max().unwrap_or(0);
        for (thread, steps) in self.loaded.iter().enumerate() {
            let color = self.color(thread, steps.len() < most);
            let x = LEFT + COLUMN * thread as i32;
            if let (Some(&first), Some(&last)) = (steps.first(), steps.last()) {
                let (begin, end) = (x_of_step(first), x_of_step(last + 1));
                for &step in steps {
                    let corners = [
                        (x_of_step(step), DEAL_ROW),
                        (x_of_step(step + 1), DEAL_ROW + DEAL_HEIGHT),
                    ];
                    cell(area, corners, color, 0.45)?;
                }
                let ends = [((begin + end) / 2, DEAL_ROW + DEAL_HEIGHT), (x + COLUMN / 2, THREADS)];
                line(area, ends, color, 0.9)?;
            }
            for i in 0..self.registers {
                let y = THREADS + DEAL_HEIGHT * i as i32;
                let corners = [(x, y), (x + COLUMN, y + DEAL_HEIGHT)];
                let at = (x + COLUMN / 2, y + DEAL_HEIGHT / 2);
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
            let below = THREADS + DEAL_HEIGHT * self.registers as i32 + 14;
            middle(area, thread.to_string(), (x + COLUMN / 2, below), 11)?;
        }
        Ok(())
    }
}

impl Deal {
    /// Neighbouring threads have different colours, and the tail has separate ones.
    fn color(&self, thread: usize, tail: bool) -> RGBColor {
        match (tail, thread % 2) {
            (false, 0) => COLORS[0],
            (false, _) => COLORS[5],
            (true, 0) => COLORS[1],
            (true, _) => COLORS[4],
        }
    }
}

/// The number of steps that each lane's transition spans, before the first round and after each.
pub(super) struct Rounds {
    /// The spans of all lanes, for every round.
    pub spans: Vec<Vec<usize>>,
    /// The number of steps up to and including the lane's own: its span in the end.
    pub ends: Vec<usize>,
}

const ROUNDS_TOP: i32 = 30;
const ROUNDS_ROW: i32 = 52;
const ROUNDS_HEIGHT: i32 = 22;

impl Panel for Rounds {
    fn height(&self, _width: u32) -> u32 {
        (ROUNDS_TOP + ROUNDS_ROW * self.spans.len() as i32 - ROUNDS_ROW + ROUNDS_HEIGHT + 12) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        left(area, "lane", (8, 14), 13)?;
        for lane in 0..self.ends.len() {
            middle(area, lane.to_string(), (center(lane), 14), 11)?;
        }
        for (round, spans) in self.spans.iter().enumerate() {
            let y = ROUNDS_TOP + ROUNDS_ROW * round as i32;
            let name = if round == 0 { "level 1".into() } else { format!("round {round}") };
            left(area, name, (8, y + ROUNDS_HEIGHT / 2), 13)?;
            for (lane, &span) in spans.iter().enumerate() {
                let reach = 1 << round.saturating_sub(1);
                if round > 0 && lane >= reach {
                    let ends =
                        [(center(lane - reach), y - ROUNDS_ROW + ROUNDS_HEIGHT), (center(lane), y)];
                    line(area, ends, COLORS[1], 0.75)?;
                }
                let done = span == self.ends[lane];
                let color = if done { COLORS[2] } else { COLORS[0] };
                let x = LEFT + COLUMN * lane as i32;
                cell(area, [(x, y), (x + COLUMN, y + ROUNDS_HEIGHT)], color, 0.3)?;
                middle(area, span.to_string(), (center(lane), y + ROUNDS_HEIGHT / 2), 11)?;
            }
        }
        Ok(())
    }
}

fn center(lane: usize) -> i32 {
    LEFT + COLUMN * lane as i32 + COLUMN / 2
}

/// The transitions of the warps, and the states before each and after the last.
pub(super) struct Warps {
    /// The transition that each warp wrote.
    pub totals: Vec<Transition<f32>>,
    /// The states, one more than there are warps.
    pub states: Vec<f32>,
}

const BEGIN: i32 = 88;
const TOTAL: i32 = 30;
const BARRIER: i32 = 94;
const STATE: i32 = 124;
const WARP: i32 = 178;
const WARPS_HEIGHT: i32 = 26;

impl Panel for Warps {
    fn height(&self, _width: u32) -> u32 {
        (WARP + WARPS_HEIGHT + 12) as u32
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
            // The state before a warp, through the warp's transition, gives the state after it.
            let after = (center(warp + 1), STATE);
            line(area, [(center(warp), TOTAL + 42), after], COLORS[0], 0.9)?;
            let along = [(x(warp) + column - 8, STATE + 13), (x(warp + 1), STATE + 13)];
            line(area, along, COLORS[1], 1.0)?;
            line(
                area,
                [(center(warp), STATE + WARPS_HEIGHT), (center(warp), WARP)],
                COLORS[1],
                0.9,
            )?;
            cell(area, corners(warp, WARP, WARPS_HEIGHT), COLORS[2], 0.3)?;
            middle(area, format!("warp {warp}"), (center(warp), WARP + 13), 12)?;
        }
        for (index, state) in self.states.iter().enumerate() {
            cell(area, corners(index, STATE, WARPS_HEIGHT), COLORS[1], 0.3)?;
            middle(area, format!("{state:.2}"), (center(index), STATE + 13), 12)?;
        }
        let last = self.states.len().saturating_sub(1);
        middle(area, "final state", (center(last), WARP + 13), 12)
    }
}
