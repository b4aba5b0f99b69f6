//! The story of chapter 7: passes the state from tile to tile, first from outside, then inside one
//! launch.
//!
//! The story compares both ways bit by bit, draws the actions of a block's warps over its tiles,
//! and lets the emulator find what happens without double buffering. It computes the last row of an
//! array larger than this machine's memory, counts the cost of steps per thread, and runs the test
//! contract. The module `measured` shows records of an H200. `cargo xtask record --check` compares
//! the checks and values of a run with the committed record.

mod measured;

use bench::draw::near_one;
use ch01_sequential_loop::Loop;
use ch05_ref_kernel::exercises::sectors;
use lesson::plot::{self, Area, COLORS, Panel};
use lesson::{Kind, Lesson, Result, Table};
use linrec::contract::{self, Domain, suspect};
use linrec::device::{Device, ForwardOptions, KernelEngine, Recurrence, Storage};
use linrec::kernels::Pass;
use linrec::reference::{self, Rounding};
use linrec::simt::Access;
use linrec::{Direction, Element, Engine, Options};
use ndarray::Array2;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::far::{NUM_SEQS, SEQ_LEN, last_rows};
use crate::life::{self, Act, Stretch};
use crate::{InTiles, PIPE, TILE, TILE_LEN};

pub(crate) fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("pipe:8x64:0@{}", device.label()));
    outside(lesson, &device)?;
    inside(lesson, &device)?;
    life(lesson)?;
    turns(lesson)?;
    far(lesson)?;
    measured::speed(lesson)?;
    steps(lesson)?;
    measured::traffic(lesson)?;
    measured::one_kernel(lesson)?;
    measured::peers(lesson)?;
    measured::clock(lesson, &device)?;
    contract(lesson, &device)?;
    others(lesson)
}

/// Computes a sequence of four tiles, and shows the state between them.
fn outside(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("outside", "Tile after tile, from outside")?;
    let most = TILE.max_len(linrec::kernels::ElementType::F32).unwrap_or_default() as usize;
    let seq_len = 3 * most + 928;
    let (inputs, coeffs) = near_one((1, seq_len), 71);
    let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
    let tile = KernelEngine::<f32>::new(device, TILE)?;
    let outputs = InTiles::new(&tile, most).forward(x, c, &options)?.outputs;

    lesson.say(&format!(
        "One sequence of {seq_len} steps through the tile kernel. Each launch begins with the state that the one \
         before it left.",
    ));
    let mut table = Table::new(["launch", "steps", "state before", "state after"]);
    let mut before = 0.0;
    for (launch, first) in (0..seq_len).step_by(most).enumerate() {
        let end = seq_len.min(first + most);
        let after = outputs[[0, end - 1]];
        table.row([
            (launch + 1).to_string(),
            format!("{first} to {}", end - 1),
            format!("{before:.4}"),
            format!("{after:.4}"),
        ]);
        before = after;
    }
    lesson.table("outside.csv", Kind::Computed, &table)?;

    let rounding = Rounding { levels: Domain::tree_levels(seq_len), exp_ulps: 0.0 };
    let exact = reference::forward(x, c, &options)?.outputs;
    let bound = reference::forward_bound(x, c, &options, rounding)?.outputs;
    let errors = outputs.iter().zip(&exact).zip(&bound);
    let worst = errors.map(|((&y, exact), bound)| (f64::from(y) - exact).abs() / bound);
    lesson.check("largest error / bound", worst.fold(0.0, f64::max), 1.0);
    let long = 65_536;
    lesson.value("long", grouped(long), Kind::Computed);
    lesson.value("long_launches", long / most, Kind::Computed);
    Ok(())
}

/// Compares one launch of the pipe kernel with launches of single tiles.
fn inside(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("inside", "Tile after tile, in one launch")?;
    let shape @ (num_seqs, seq_len) = lesson.size((100, 4093), (13_200, 4096));
    let (inputs, coeffs) = near_one(shape, 72);
    let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
    let pipe = KernelEngine::<f32>::new(device, PIPE)?;
    let tile = KernelEngine::<f32>::new(device, TILE)?;
    let most = TILE.max_len(linrec::kernels::ElementType::F32).unwrap_or_default() as usize;

    let whole = pipe.forward(x, c, &options)?;
    let by_tiles = InTiles::new(&pipe, TILE_LEN).forward(x, c, &options)?;
    let by_larger = InTiles::new(&tile, most).forward(x, c, &options)?.outputs;
    let sequential = Loop.forward(x, c, &options)?.outputs;
    let differ = |outputs: &Array2<f32>| {
        let pairs = whole.outputs.iter().zip(outputs);
        pairs.filter(|(a, b)| a.to_bits() != b.to_bits()).count()
    };

    lesson.say(&format!(
        "{num_seqs} sequences of {seq_len} through the pipe kernel in one launch, and how many of its outputs differ from \
         other ways to the same numbers:",
    ));
    let mut table = Table::new(["the other way", "launches", "outputs that differ"]);
    let launches = [TILE_LEN, most].map(|tile| seq_len.div_ceil(tile).to_string());
    let [small, large] = launches;
    let others = [
        (format!("the pipe kernel, {TILE_LEN} steps a launch"), small, &by_tiles.outputs),
        (format!("the tile kernel, {most} steps a launch"), large, &by_larger),
        (String::from("chapter 1's loop"), String::from("–"), &sequential),
    ];
    for (name, launches, outputs) in others {
        table.row([name, launches, differ(outputs).to_string()]);
    }
    lesson.table("inside.csv", Kind::Computed, &table)?;
    lesson.check("outputs that differ from single tiles", differ(&by_tiles.outputs) as f64, 0.0);
    let states = whole.final_state.iter().zip(&by_tiles.final_state);
    let states = states.filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    lesson.check("final states that differ from single tiles", states as f64, 0.0);
    let last = whole.outputs.columns().into_iter().next_back();
    let last = last.into_iter().flatten().zip(&whole.final_state);
    let otherwise = last.filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    lesson.check("final states that differ from the last outputs", otherwise as f64, 0.0);
    lesson.value("sequences", num_seqs, Kind::Computed);
    lesson.value("words", grouped(whole.outputs.len()), Kind::Computed);
    Ok(())
}

/// The length of the sequence: two full tiles and a part of one.
const LIFE_LEN: usize = 1200;

/// Draws and counts the actions of a block's two warps.
fn life(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("life", "A block's life")?;
    let (inputs, coeffs) = near_one((1, LIFE_LEN), 73);
    let slice = |array: &ndarray::Array2<f32>| array.iter().copied().collect::<Vec<_>>();
    let (_, trace, launched) = life::traced(&slice(&inputs), &slice(&coeffs))?;
    let life = life::of(&trace);
    let svg = plot::grid(&[&Lives(life.clone())], 1)?;
    lesson.figure("life.svg", "A block's life", Kind::Computed, &svg)?;

    lesson.say(&format!(
        "One block with one sequence of {LIFE_LEN} steps, as traced in the emulator. What each of its two warps does \
         in each tile:",
    ));
    let header = ["warp", "tile", "loads", "shuffles", "published", "barriers", "taken", "stores"];
    let mut table = Table::new(header);
    let tiles = life.iter().map(|stretch| stretch.tile).max().unwrap_or(0);
    for tile in 0..=tiles {
        for warp in [0, 1] {
            let count = |is: fn(Act) -> bool| {
                let mine = |stretch: &&Stretch| {
                    (stretch.warp, stretch.tile) == (warp, tile) && is(stretch.act)
                };
                life.iter().filter(mine).map(|stretch| stretch.count).sum::<usize>()
            };
            let counts = [
                count(|act| act == Act::Load),
                count(|act| act == Act::Shuffle),
                count(|act| matches!(act, Act::Publish(_))),
                count(|act| act == Act::Arrive),
                count(|act| matches!(act, Act::Take(_))),
                count(|act| act == Act::Store),
            ];
            let cells = [warp, tile].map(|number| number.to_string());
            table.row(cells.into_iter().chain(counts.map(|count| count.to_string())));
        }
    }
    lesson.table("life.csv", Kind::Computed, &table)?;
    let barriers = launched.counters().map_or(0, |counters| counters.barriers);
    let surplus = barriers as f64 - f64::from(tiles + 1);
    lesson.check("barriers beyond one per tile", surplus, 0.0);
    lesson.value("traced", LIFE_LEN, Kind::Computed);
    lesson.value("last_tile", LIFE_LEN % crate::TILE_LEN, Kind::Computed);
    Ok(())
}

/// Shows a kernel whose totals do not take turns between two arrays.
fn turns(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("turns", "Without turns")?;
    lesson.say(
        "totals_not_in_turns is the same kernel with one array of totals instead of two. The emulator runs it over \
         the contract's cases, the longest first:",
    );
    let found = examine("totals_not_in_turns")?;
    lesson.quote(&found);
    lesson.check("races that went unnoticed", u8::from(!found.contains("no barrier")).into(), 0.0);
    Ok(())
}

/// Returns the finding as a sentence, or an empty string.
fn examine(name: &str) -> lesson::Result<String> {
    let (engine, domain) = suspect::load(&format!("broken/{name}"), PIPE)?;
    let finding = suspect::examine(&engine, &domain);
    Ok(finding.map(|finding| finding.to_string()).unwrap_or_default())
}

/// The memory of an H200 in bytes (NVIDIA, data sheet).
const H200_BYTES: usize = 141_000_000_000;

/// Computes the row, and compares it with the same row alone.
fn far(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("far", "The last of many rows")?;
    let elements = NUM_SEQS * SEQ_LEN;
    let offset = elements - SEQ_LEN;
    lesson.say(&format!(
        "{NUM_SEQS} sequences of {SEQ_LEN} are {elements} elements, {:.1} GB in each of three arrays. The last row \
         begins at element {offset}. In 32 bits with a sign, that would be {}.",
        4.0 * elements as f64 / 1e9,
        offset as u32 as i32,
    ));
    let device = Device::simt();
    let engine = KernelEngine::<f32>::new(&device, PIPE)?;
    let (inputs, coeffs) = near_one((1, SEQ_LEN), 74);
    let alone = engine.forward(inputs.view(), coeffs.view(), &Options::default())?.outputs;
    let kernel = engine.recurrence().function(Pass::Forward, Direction::Forward)?;
    let (x, c) = (inputs.as_slice().unwrap_or(&[]), coeffs.as_slice().unwrap_or(&[]));
    let last = last_rows(kernel, x, c, 1)?;
    let differ = alone.iter().zip(&last).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    lesson.say(
        "The emulator keeps only what is touched, and runs the last block of the launch. Its outputs are \
         compared with the outputs of the same row in an array that holds only this row.",
    );
    lesson.check("outputs that differ", differ as f64, 0.0);

    let most = H200_BYTES / 12;
    lesson.value("far_elements", grouped(elements), Kind::Computed);
    lesson.value("far_gb", format!("{:.1}", 4.0 * elements as f64 / 1e9), Kind::Computed);
    lesson.value("h200_elements", format!("{:.1}", most as f64 / 1e9), Kind::Computed);
    Ok(())
}

/// Counts, on the emulator and from the addresses.
fn steps(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("steps", "Steps per thread")?;
    lesson.say(
        "A warp loads its part of one array, each lane its own consecutive steps, one request for each step. Up to 8 \
         steps counted by the emulator, beyond that from the addresses:",
    );
    let header =
        ["steps per thread", "requests", "sectors per request", "requests for each sector"];
    let mut table = Table::new(header);
    let mut differ = 0;
    for steps in [1, 2, 4, 8, 16, 32] {
        let addresses: Vec<u64> = (0..32).map(|lane| lane * steps * 4).collect();
        let per_request = sectors(&addresses, 4) as u64;
        if steps <= 8 {
            differ += usize::from(counted(steps)? != (steps, per_request));
        }
        table.row([
            // There are as many requests as steps; 8 of the loaded floats lie in a sector.
            steps.to_string(),
            steps.to_string(),
            per_request.to_string(),
            (per_request * steps / (32 * steps / 8)).to_string(),
        ]);
    }
    lesson.table("steps.csv", Kind::Computed, &table)?;
    lesson.check("rows that the emulator counts differently", differ as f64, 0.0);
    Ok(())
}

/// Returns the load requests of one array and the sectors in each, for a warp whose lanes have
/// `steps` steps.
fn counted(steps: u64) -> lesson::Result<(u64, u64)> {
    let device = Device::simt();
    let ones = device.upload(&vec![1.0_f32; 32 * steps as usize])?;
    let mut outputs = device.allocate(ones.len())?;
    let recurrence = Recurrence::<f32>::new(&device, PIPE)?;
    let (shape, options) = ((1, ones.len()), ForwardOptions::default());
    let launched = recurrence.forward_into(&ones, &ones, &mut outputs, shape, options)?;
    let Some(counters) = launched.counters() else { return Ok((0, 0)) };
    let requests = counters.requests(Access::GlobalLoad);
    // Two arrays are loaded.
    Ok((requests / 2, counters.sectors(Access::GlobalLoad) / requests.max(1)))
}

/// The longest sequence of the test contract that runs here, just beyond a tile; the tests run all
/// of them.
const MAX_LEN: usize = 513;

fn contract(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("contract", "The contract")?;
    lesson.say(&format!(
        "Both passes, both directions, all kinds of coefficients, sequences up to {MAX_LEN}:",
    ));
    let reports = [judge::<f32>(device)?, judge::<f64>(device)?];
    let mut table = Table::new(["element", "cases", "failed", "largest error / bound"]);
    for report in &reports {
        table.row([
            report.element.to_owned(),
            report.cases.to_string(),
            report.failures.len().to_string(),
            format!("{:.2}", report.worst),
        ]);
    }
    lesson.table("contract.csv", Kind::Computed, &table)?;
    let worst = reports.iter().map(|report| report.worst).fold(0.0, f64::max);
    let failed: usize = reports.iter().map(|report| report.failures.len()).sum();
    lesson.check("the contract, largest error / bound", worst, 1.0);
    lesson.check("the contract, cases that failed", failed as f64, 0.0);
    Ok(())
}

fn judge<T: Element + Storage<Accum = T>>(device: &Device) -> lesson::Result<contract::Report> {
    let engine = KernelEngine::<T>::new(device, PIPE)?;
    let domain = Domain { max_len: MAX_LEN, ..engine.domain() };
    Ok(contract::run::<T>(&engine, &domain))
}

/// Shows the other broken kernel, for the exercises.
fn others(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("mistakes", "A mistake to be found")?;
    lesson.say("And forgotten_between_tiles, which breaks no rule of the machine:");
    let found = examine("forgotten_between_tiles")?;
    lesson.quote(&found);
    lesson.value("found_forgotten", &found, Kind::Computed);
    lesson.check("mistakes that went unnoticed", u8::from(found.is_empty()).into(), 0.0);
    Ok(())
}

/// The actions of a block's warps, in a row for each, from left to right in the order of execution.
struct Lives(pub Vec<Stretch>);

const LEFT: i32 = 60;
const RIGHT: i32 = 10;
const TOP: i32 = 30;
/// The height of a warp's row, and the offsets of the marks of shared memory and of the bar.
const ROW: i32 = 84;
const MARKS: i32 = 30;
const BAR: i32 = 40;
const BAR_HEIGHT: i32 = 24;
const LEGEND: i32 = 52;

/// The colours of the two arrays of totals.
const TURNS: [RGBColor; 2] = [COLORS[1], COLORS[4]];

fn style(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(1, 1)).color(&BLACK)
}

impl Lives {
    fn warps(&self) -> i32 {
        self.0.iter().map(|stretch| stretch.warp as i32 + 1).max().unwrap_or(0)
    }

    fn events(&self) -> usize {
        self.0.iter().map(|stretch| stretch.first + stretch.count).max().unwrap_or(1)
    }
}

impl Panel for Lives {
    fn height(&self, _width: u32) -> u32 {
        (TOP + ROW * self.warps() + LEGEND) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let width = area.dim_in_pixel().0 as i32 - LEFT - RIGHT;
        let events = self.events() as f64;
        let x = |event: usize| LEFT + (f64::from(width) * event as f64 / events).round() as i32;
        let grey = RGBColor(128, 128, 128);
        let title = "One block, two warps: what they do, in the order of execution";
        area.draw(&Text::new(title, (LEFT, 8), style(15)))?;

        for warp in 0..self.warps() {
            let top = TOP + ROW * warp;
            let (bar, middle) = (top + BAR, top + BAR + BAR_HEIGHT / 2);
            let left = Pos::new(HPos::Left, VPos::Center);
            area.draw(&Text::new(format!("warp {warp}"), (8, middle), style(14).pos(left)))?;
            let mine: Vec<_> = self.0.iter().filter(|one| one.warp as i32 == warp).collect();
            // A thin line from the warp's first action to its last shows waiting.
            if let (Some(first), Some(last)) = (mine.first(), mine.last()) {
                let line = [(x(first.first), middle), (x(last.first + last.count), middle)];
                area.draw(&PathElement::new(line, grey.stroke_width(1)))?;
            }
            for one in &mine {
                let (from, to) = (x(one.first), x(one.first + one.count));
                let color = match one.act {
                    Act::Load => COLORS[0],
                    Act::Shuffle => COLORS[3],
                    Act::Store => COLORS[2],
                    Act::Publish(turn) | Act::Take(turn) => TURNS[turn as usize % 2],
                    Act::Arrive => grey,
                };
                let corners = [(from, bar), (to, bar + BAR_HEIGHT)];
                area.draw(&Rectangle::new(corners, color.filled()))?;
                let mark = ((from + to) / 2, top + MARKS);
                match one.act {
                    Act::Publish(_) => area.draw(&Circle::new(mark, 5, color.filled()))?,
                    Act::Take(_) => area.draw(&Circle::new(mark, 5, color.stroke_width(2)))?,
                    Act::Arrive => {
                        let line = [(mark.0, bar - 6), (mark.0, bar + BAR_HEIGHT + 6)];
                        area.draw(&PathElement::new(line, BLACK.stroke_width(2)))?;
                    }
                    _ => {}
                }
            }
            self.name_tiles(area, warp as u32, top + 12, &x)?;
        }
        legend(area, TOP + ROW * self.warps() + 12)
    }
}

impl Lives {
    /// Writes the number of each tile above the position where the warp begins it.
    fn name_tiles(&self, area: &Area, warp: u32, y: i32, x: &dyn Fn(usize) -> i32) -> Result {
        let mut seen = None;
        for one in self.0.iter().filter(|one| one.warp == warp) {
            if seen != Some(one.tile) {
                seen = Some(one.tile);
                let text = Text::new(format!("tile {}", one.tile), (x(one.first), y), style(13));
                area.draw(&text)?;
            }
        }
        Ok(())
    }
}

fn legend(area: &Area, top: i32) -> Result {
    let left = Pos::new(HPos::Left, VPos::Center);
    let words = style(13).pos(left);
    let boxes = [("loads", COLORS[0]), ("shuffles", COLORS[3]), ("stores", COLORS[2])];
    let mut x = LEFT;
    for (name, color) in boxes {
        area.draw(&Rectangle::new([(x, top - 6), (x + 12, top + 6)], color.filled()))?;
        area.draw(&Text::new(name, (x + 18, top), words.clone()))?;
        x += 100;
    }
    area.draw(&PathElement::new([(x + 6, top - 9), (x + 6, top + 9)], BLACK.stroke_width(2)))?;
    area.draw(&Text::new("arrives at the barrier", (x + 18, top), words.clone()))?;
    let (mut x, top) = (LEFT, top + 24);
    for (turn, color) in TURNS.into_iter().enumerate() {
        area.draw(&Circle::new((x + 6, top), 5, color.filled()))?;
        area.draw(&Text::new(format!("writes totals[{turn}]"), (x + 18, top), words.clone()))?;
        area.draw(&Circle::new((x + 156, top), 5, color.stroke_width(2)))?;
        area.draw(&Text::new(format!("reads totals[{turn}]"), (x + 168, top), words.clone()))?;
        x += 310;
    }
    Ok(())
}

/// Every run on an H200, forward.
const RECORD: &[u8] = include_bytes!("../results/h200/speed.csv.gz");

/// Formats a number with commas between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}
