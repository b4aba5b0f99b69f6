//! A block's life over its tiles.

use linrec::lesson::{self, Kind, Lesson, Table, plot};

use super::picture::Lives;
use crate::life::{self, Act, Stretch};

/// Steps of the sequence: two full tiles and a part of one.
const SEQ_LEN: usize = 1200;

/// Draws what both warps of a block do, and counts it.
pub fn life(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("life", "A block's life")?;
    let (inputs, coeffs) = super::data((1, SEQ_LEN), 73);
    let slice = |array: &ndarray::Array2<f32>| array.iter().copied().collect::<Vec<_>>();
    let (_, trace, launched) = life::traced(&slice(&inputs), &slice(&coeffs))?;
    let life = life::of(&trace);
    let svg = plot::grid(&[&Lives(life.clone())], 1)?;
    lesson.figure("life.svg", "A block's life", Kind::Computed, &svg)?;

    lesson.say(&format!(
        "One block with one sequence of {SEQ_LEN} steps, as traced in the emulator. What each of its two warps does \
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
    lesson.value("traced", SEQ_LEN, Kind::Computed);
    lesson.value("last_tile", SEQ_LEN % crate::TILE_LEN, Kind::Computed);
    Ok(())
}
