//! Tile after tile, launched from the host.

use linrec::contract::Domain;
use linrec::device::{Device, KernelEngine};
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::reference::{self, Rounding};
use linrec::{Engine, Options};

use super::grouped;
use crate::{InTiles, TILE};

/// A sequence of four tiles, and the state between them.
pub fn outside(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("outside", "Tile after tile, from outside")?;
    let most = TILE.max_len(linrec::kernels::ElementType::F32).unwrap_or_default() as usize;
    let seq_len = 3 * most + 928;
    let (inputs, coeffs) = super::data((1, seq_len), 71);
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
