//! The pictures of the chapter.

use lesson::plot::sketch::{GREY, left, middle};
use lesson::plot::{self, Area, COLORS, Panel, kernels};
use plotters::prelude::*;

use super::OfRung;
use super::measured::Marks;
use crate::life::{Act, Action};

const LEFT: i32 = 110;
const RIGHT: i32 = 16;
const TOP: i32 = 34;

/// The acts on tiles, turn by turn.
struct Tiles<'a> {
    actions: &'a [Action],
    tiles: usize,
}

const ROW: i32 = 26;
const CELL: i32 = 20;

/// Draws one row for each tile and one column for each turn.
pub(super) fn tiles(actions: &[Action], tiles: usize) -> lesson::Result<String> {
    plot::grid(&[&Tiles { actions, tiles }], 1)
}

/// Returns the colour, strength and name of an act; the act of a computing warp is filled.
fn look(act: Act) -> (RGBColor, f64, &'static str) {
    match act {
        Act::Send => (COLORS[0], 0.35, "sent"),
        Act::Prepare => (COLORS[2], 0.35, "made ready"),
        Act::Walk => (COLORS[1], 1.0, "walked"),
        Act::Store => (COLORS[3], 0.35, "stored"),
    }
}

impl Panel for Tiles<'_> {
    fn height(&self, _width: u32) -> u32 {
        (TOP + ROW * self.tiles as i32 + 62) as u32
    }

    fn draw(&self, area: &Area) -> lesson::Result {
        let width = area.dim_in_pixel().0 as i32 - LEFT - RIGHT;
        let turns = self.tiles as i32 + 3;
        let x = |turn: i64| LEFT + width * (turn as i32 + 2) / turns;
        let y = |tile: usize| TOP + ROW * tile as i32;
        left(area, "A block: what is done with each tile in each turn", (12, 14), 15)?;
        for tile in 0..self.tiles {
            middle(area, format!("tile {tile}"), (LEFT / 2, y(tile) + CELL / 2), 13)?;
        }
        for turn in 0..=i64::from(turns) {
            let ends = [(x(turn - 2), TOP - 6), (x(turn - 2), y(self.tiles))];
            area.draw(&PathElement::new(ends, GREY.mix(0.5).stroke_width(1)))?;
        }
        for action in self.actions {
            let (color, strength, _) = look(action.act);
            let corners = [
                (x(action.turn) + 3, y(action.tile)),
                (x(action.turn + 1) - 3, y(action.tile) + CELL),
            ];
            area.draw(&Rectangle::new(corners, color.mix(strength).filled()))?;
        }
        let below = y(self.tiles) + 10;
        for turn in -2..i64::from(turns) - 2 {
            middle(area, turn.to_string(), ((x(turn) + x(turn + 1)) / 2, below), 12)?;
        }
        middle(area, "turn", (LEFT / 2, below), 12)?;
        let mut at = LEFT;
        for act in Act::ALL {
            let (color, strength, name) = look(act);
            let corners = [(at, below + 22), (at + 12, below + 34)];
            area.draw(&Rectangle::new(corners, color.mix(strength).filled()))?;
            left(area, name, (at + 18, below + 28), 13)?;
            at += 95;
        }
        left(area, "filled: by a warp that computes", (at, below + 28), 13)
    }
}

/// The least times and the measured time of each rung.
struct Times<'a> {
    rungs: &'a [OfRung],
    marks: &'a Marks,
}

const LINE: i32 = 30;
/// The range of the axis, in ms.
const LEAST: f64 = 0.5;
const MOST: f64 = 60.0;

/// Draws one line for each rung on an axis of times.
pub(super) fn least_times(rungs: &[OfRung], marks: &Marks) -> lesson::Result<String> {
    plot::grid(&[&Times { rungs, marks }], 1)
}

impl Panel for Times<'_> {
    fn height(&self, _width: u32) -> u32 {
        (TOP + LINE * self.rungs.len() as i32 + 70) as u32
    }

    fn draw(&self, area: &Area) -> lesson::Result {
        let width = f64::from(area.dim_in_pixel().0 as i32 - LEFT - RIGHT);
        let x = |ms: f64| LEFT + (width * (ms / LEAST).ln() / (MOST / LEAST).ln()).round() as i32;
        let y = |rung: usize| TOP + LINE * rung as i32 + LINE / 2;
        let bottom = TOP + LINE * self.rungs.len() as i32;
        left(
            area,
            "Least times by three roofs, ms: 8 x 2048 channels of 16384 steps",
            (12, 14),
            15,
        )?;
        for ms in [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0] {
            let ends = [(x(ms), TOP), (x(ms), bottom)];
            area.draw(&PathElement::new(ends, GREY.mix(0.4).stroke_width(1)))?;
            middle(area, format!("{ms}"), (x(ms), bottom + 10), 12)?;
        }
        let colors = [COLORS[0], COLORS[2], COLORS[1]];
        for (number, (name, roofs)) in self.rungs.iter().enumerate() {
            middle(area, *name, (LEFT / 2, y(number)), 13)?;
            let times = [roofs.memory, roofs.special, roofs.issue];
            let most = times.into_iter().fold(0.0, f64::max);
            let ends = [(LEFT, y(number)), (x(most), y(number))];
            area.draw(&PathElement::new(ends, GREY.stroke_width(1)))?;
            for (ms, color) in times.into_iter().zip(colors).filter(|(ms, _)| *ms > 0.0) {
                area.draw(&Circle::new((x(ms), y(number)), 6, color.filled()))?;
            }
            let ours = self.marks.rungs.iter().find(|(rung, _)| rung == name).map(|(_, ms)| *ms);
            let ours = ours.or((*name == "unfused").then_some(self.marks.unfused));
            let theirs = (*name == "block_scan").then_some(self.marks.mamba);
            for (ms, color) in [(ours, BLACK), (theirs, kernels::color("mamba"))] {
                let Some(ms) = ms else { continue };
                let ends = [(x(ms), y(number) - 10), (x(ms), y(number) + 10)];
                area.draw(&PathElement::new(ends, color.stroke_width(3)))?;
            }
        }
        let mut at = LEFT;
        for (name, color) in ["memory", "special functions", "issue"].into_iter().zip(colors) {
            area.draw(&Circle::new((at + 6, bottom + 32), 6, color.filled()))?;
            left(area, name, (at + 18, bottom + 32), 13)?;
            at += if name == "special functions" { 150 } else { 95 };
        }
        for (name, color) in [("measured", BLACK), ("Mamba's, quoted", kernels::color("mamba"))] {
            let ends = [(at + 6, bottom + 24), (at + 6, bottom + 40)];
            area.draw(&PathElement::new(ends, color.stroke_width(3)))?;
            left(area, name, (at + 18, bottom + 32), 13)?;
            at += 100;
        }
        Ok(())
    }
}
