//! The same in one launch, compared bit by bit.

use ch01_sequential_loop::Loop;
use linrec::device::{Device, KernelEngine};
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::{Engine, Options};
use ndarray::Array2;

use super::grouped;
use crate::{InTiles, PIPE, TILE, TILE_LEN};

/// One launch of the pipe kernel beside launches of single tiles.
pub fn inside(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("inside", "Tile after tile, in one launch")?;
    let shape @ (num_seqs, seq_len) = lesson.size((100, 4093), (13_200, 4096));
    let (inputs, coeffs) = super::data(shape, 72);
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
        "{num_seqs} sequences of {seq_len} through the pipe kernel in one launch, and the words of its outputs that \
         differ from other ways to the same numbers:",
    ));
    let mut table = Table::new(["the other way", "launches", "words that differ"]);
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
    lesson.check("words that differ from single tiles", differ(&by_tiles.outputs) as f64, 0.0);
    let states = whole.final_state.iter().zip(&by_tiles.final_state);
    let states = states.filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    lesson.check("final states that differ from single tiles", states as f64, 0.0);
    let last = whole.outputs.columns().into_iter().next_back();
    let last = last.into_iter().flatten().zip(&whole.final_state);
    let otherwise = last.filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    lesson.say(&format!(
        "A final state is the last output, but not in the same bits: in {otherwise} of {num_seqs} sequences the two \
         differ.",
    ));
    lesson.value("otherwise", otherwise, Kind::Computed);
    lesson.value("sequences", num_seqs, Kind::Computed);
    lesson.value("words", grouped(whole.outputs.len()), Kind::Computed);
    Ok(())
}
