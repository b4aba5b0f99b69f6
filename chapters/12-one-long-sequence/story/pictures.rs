//! The pictures of the chapter, drawn from traces.

use lesson::plot::sketch::{GREY, left, middle};
use lesson::plot::{self, Area, COLORS, Panel};
use plotters::prelude::*;

use crate::messages::{Act, Life};

const LEFT: i32 = 70;
const RIGHT: i32 = 12;
const TOP: i32 = 34;

/// The actions of blocks in each turn: a row for each block, and a line from the turn in which a
/// state was published to the turn in which it was used.
struct Waiting<'a> {
    title: &'static str,
    life: &'a Life,
    blocks: usize,
    legend: bool,
}

const ROW: i32 = 22;
const BAR: i32 = 14;
const LEGEND: i32 = 52;

/// Draws the chained scan above decoupled look-back.
pub(super) fn waiting(lives: &[Life; 2], blocks: usize) -> lesson::Result<String> {
    let [chained, decoupled] = lives;
    let above = Waiting { title: "Chained scan", life: chained, blocks, legend: false };
    let below = Waiting { title: "Decoupled look-back", life: decoupled, blocks, legend: true };
    plot::grid(&[&above, &below], 1)
}

impl Waiting<'_> {
    /// Returns the colour of the most important action in a turn, and whether the block only waits.
    fn color(&self, block: u64, turn: usize) -> Option<(RGBColor, bool)> {
        let did = |act| self.life.turns_of(block, act).any(|other| other == turn);
        let color = [
            (Act::Store, COLORS[2], false),
            (Act::PublishPrefix, COLORS[3], false),
            (Act::PublishAggregate, COLORS[3], false),
            (Act::Poll, COLORS[4], true),
            (Act::Delayed, GREY, false),
            (Act::Load, COLORS[0], false),
            (Act::Combine, COLORS[3], false),
        ];
        let found = color.into_iter().find(|&(act, ..)| did(act));
        found.map(|(_, color, waits)| (color, waits))
    }
}

impl Panel for Waiting<'_> {
    fn height(&self, _width: u32) -> u32 {
        // Both panels of a figure have the same height.
        (TOP + ROW * self.blocks as i32 + LEGEND) as u32
    }

    fn draw(&self, area: &Area) -> lesson::Result {
        let width = area.dim_in_pixel().0 as i32 - LEFT - RIGHT;
        let turns = self.life.turns.max(1) as f64;
        let x = |turn: usize| LEFT + (f64::from(width) * turn as f64 / turns).round() as i32;
        let y = |block: u64| TOP + ROW * block as i32;
        left(area, self.title, (LEFT, 14), 15)?;
        for block in 0..self.blocks as u64 {
            middle(area, format!("block {block}"), (LEFT / 2, y(block) + BAR / 2), 12)?;
            for turn in 0..self.life.turns {
                let Some((color, waits)) = self.color(block, turn) else { continue };
                let corners = [(x(turn), y(block)), (x(turn + 1) - 1, y(block) + BAR)];
                if waits {
                    area.draw(&Rectangle::new(corners, color.mix(0.35).filled()))?;
                } else {
                    area.draw(&Rectangle::new(corners, color.filled()))?;
                }
            }
        }
        // A line leads from a published state to the state that was made of it.
        let prefix = |tile: usize| {
            self.life.messages.iter().find(|message| message.prefix && message.tile == tile)
        };
        for message in self.life.messages.iter().filter(|message| message.prefix) {
            let back = self.life.distances.get(&message.block).copied().unwrap_or(1);
            let from = message.tile.checked_sub(back).and_then(prefix);
            let to = (x(message.turn) + 3, y(message.block) + BAR / 2);
            if let Some(from) = from {
                let from = (x(from.turn) + 3, y(from.block) + BAR / 2);
                area.draw(&PathElement::new([from, to], BLACK.stroke_width(1)))?;
            }
            area.draw(&Circle::new(to, 3, BLACK.filled()))?;
        }
        if self.legend { legend(area, y(self.blocks as u64) + 10) } else { Ok(()) }
    }
}

fn legend(area: &Area, top: i32) -> lesson::Result {
    let words = [
        ("loads", COLORS[0], 1.0),
        ("combines", COLORS[3], 1.0),
        ("asks", COLORS[4], 0.35),
        ("is kept back", GREY, 1.0),
        ("stores", COLORS[2], 1.0),
    ];
    let mut x = LEFT;
    for (name, color, strength) in words {
        let corners = [(x, top), (x + 12, top + 12)];
        area.draw(&Rectangle::new(corners, color.mix(strength).filled()))?;
        left(area, name, (x + 18, top + 6), 13)?;
        x += 100;
    }
    area.draw(&Circle::new((LEFT + 6, top + 28), 3, BLACK.filled()))?;
    left(
        area,
        "tells a state; a line leads to it from the one that it took",
        (LEFT + 18, top + 28),
        13,
    )
}

/// The turns in which tiles are published and stored: two rows for each block.
struct Waves<'a> {
    life: &'a Life,
    blocks: usize,
}

const BLOCK: i32 = 66;
const STORED: i32 = 34;

/// Draws the messages and stores of blocks over their waves.
pub(super) fn waves(life: &Life, blocks: usize) -> lesson::Result<String> {
    plot::grid(&[&Waves { life, blocks }], 1)
}

impl Panel for Waves<'_> {
    fn height(&self, _width: u32) -> u32 {
        (TOP + BLOCK * self.blocks as i32 + 24) as u32
    }

    fn draw(&self, area: &Area) -> lesson::Result {
        let width = area.dim_in_pixel().0 as i32 - LEFT - RIGHT - 12;
        let turns = self.life.turns.max(1) as f64;
        let x = |turn: usize| LEFT + 12 + (f64::from(width) * turn as f64 / turns).round() as i32;
        left(
            area,
            "Each tile is published; its outputs are stored some waves later",
            (LEFT, 14),
            15,
        )?;
        for block in 0..self.blocks as u64 {
            let (published_at, stored_at) = {
                let top = TOP + BLOCK * block as i32 + 10;
                (top, top + STORED)
            };
            middle(area, format!("block {block}"), (LEFT / 2, (published_at + stored_at) / 2), 13)?;
            for y in [published_at, stored_at] {
                let ends = [(LEFT, y), (LEFT + 12 + width, y)];
                area.draw(&PathElement::new(ends, GREY.stroke_width(1)))?;
            }
            for message in self.life.messages.iter().filter(|message| message.block == block) {
                let wave = message.tile / self.blocks;
                let color = COLORS[wave % COLORS.len()];
                let at = (x(message.turn), published_at);
                let stored = self.life.stored.iter().find(|stored| stored.1 == message.tile);
                if let Some(&(_, _, turn)) = stored {
                    let to = (x(turn), stored_at);
                    area.draw(&PathElement::new([at, to], color.stroke_width(2)))?;
                    let corners = [(to.0 - 5, to.1 - 5), (to.0 + 5, to.1 + 5)];
                    area.draw(&Rectangle::new(corners, color.filled()))?;
                }
                area.draw(&Circle::new(at, 5, color.filled()))?;
                middle(area, wave.to_string(), (at.0, at.1 - 12), 11)?;
            }
        }
        let bottom = TOP + BLOCK * self.blocks as i32 + 10;
        area.draw(&Circle::new((LEFT + 6, bottom), 5, GREY.filled()))?;
        left(area, "published, with the wave's number", (LEFT + 18, bottom), 13)?;
        let corners = [(LEFT + 251, bottom - 5), (LEFT + 261, bottom + 5)];
        area.draw(&Rectangle::new(corners, GREY.filled()))?;
        left(area, "stored; time goes from left to right", (LEFT + 270, bottom), 13)
    }
}
