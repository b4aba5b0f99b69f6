//! The precision atlas.

use linrec::lesson::{Kind, Lesson, Result, Table, progress};
use ndarray::Array2;

use super::number;
use crate::atlas::{Grid, Legend, Map, Method, draw, map, sixteen_bits};
use crate::exercises::longest_way;
use crate::stored::{BF16, F16};
use crate::{LogSpace, Order};

/// Draws both pages of the atlas.
pub fn atlas(lesson: &mut Lesson) -> Result {
    lesson.step("atlas", "The precision atlas")?;
    let grid = Grid::new(lesson.size(1 << 16, 1 << 18), 2);
    let bar = progress(18, "computing maps");
    let f32_map = |method: &Method, title: &str| {
        bar.inc(1);
        map::<f32>(&grid, method, title)
    };
    let whole = Method::LogSpace(LogSpace::whole());
    let in_order = Method::LogSpace(LogSpace::whole().with_order(Order::InOrder));
    let restarting = Method::LogSpace(LogSpace::restarting(8.0));
    let maps = [
        f32_map(&Method::Loop, "loop")?,
        f32_map(&Method::TwoThreads, "two threads")?,
        f32_map(&Method::Tree, "tree")?,
        f32_map(&in_order, "log space, in order")?,
        f32_map(&whole, "log space, tree")?,
        f32_map(&restarting, "log space, reach 8")?,
    ];
    let methods = [
        ("loop", Method::Loop),
        ("two threads", Method::TwoThreads),
        ("tree", Method::Tree),
        ("log space", whole),
    ];
    let mut in_types = Vec::new();
    for (name, method) in &methods {
        let double = map::<f64>(&grid, method, &format!("{name}, f64"))?;
        bar.inc(1);
        let [bf16, f16] = sixteen_bits(&grid, method, name)?;
        bar.inc(2);
        in_types.push([double, bf16, f16]);
    }
    bar.finish_and_clear();
    let [double, bf16, f16] = &in_types[3];

    let legend = Legend { powers: (-8, 0), contours: [-6, -4, -2] };
    let svg = draw(&grid, &maps.each_ref(), legend)?;
    lesson.figure("methods.svg", "errors in f32", Kind::Computed, &svg)?;
    let single = Map { title: "log space, f32".to_owned(), ..maps[4].clone() };
    let legend = Legend { powers: (-12, 0), contours: [-12, -4, -1] };
    let svg = draw(&grid, &[double, &single, bf16, f16], legend)?;
    lesson.figure("types.svg", "errors of log space", Kind::Computed, &svg)?;

    lesson.say(
        "The largest error in all of a map, wherever the outputs are in range, for each method and element type. In \
         16 bits the coefficients are positive and given as logarithms.",
    );
    let mut table = Table::new(["method", "f64", "f32", "bfloat16", "float16"]);
    let mut worst = 0.0_f64;
    // Of the six maps in f32, those of the four methods.
    for (((name, _), [double, bf16, f16]), single) in
        methods.iter().zip(&in_types).zip([0, 1, 2, 4])
    {
        let row = [double, &maps[single], bf16, f16];
        worst = row.iter().fold(worst, |m, map| m.max(map.largest_share()));
        let cells = row.map(|map| match map.largest_error() {
            error if error.is_infinite() => "fails".to_owned(),
            error => number(error),
        });
        table.row([(*name).to_owned()].into_iter().chain(cells));
    }
    lesson.table("everywhere.csv", Kind::Computed, &table)?;
    lesson.check("all methods and types, largest error / bound", worst, 1.0);

    let all = || maps.iter().chain([double, bf16, f16]);
    lesson.step("how-far", "How long may a sequence be?")?;
    lesson.say(
        "Two lines of the maps as numbers: the longest sequence in which every output has an error below 1 %, as \
         measured and as promised by the bound. The coefficients are about 0.9 (mean of ln c: -0.1), and about 0.4 \
         (mean -1, as for gates in [0, 1)).",
    );
    let header = ["map", "0.9: measured", "promised", "0.4: measured", "promised"];
    let mut table = Table::new(header);
    for map in all() {
        let cells = [-0.1, -1.0]
            .into_iter()
            .flat_map(|rate| [&map.errors, &map.bounds].map(|values| longest(&grid, values, rate)));
        let named = ["f64", "float16"].iter().any(|element| map.title.ends_with(element));
        let title = format!("{}{}", map.title, if named { "" } else { ", f32" });
        table.row([title].into_iter().chain(cells));
    }
    lesson.table("longest.csv", Kind::Computed, &table)?;
    for map in all() {
        lesson.check(&format!("{}: largest error / bound", map.title), map.largest_share(), 1.0);
    }
    for (key, storage) in [("f16", F16), ("bf16", BF16)] {
        for seq_len in [16, 4096] {
            let way = longest_way(storage, seq_len, 0.05);
            let way = way.map_or("none".to_owned(), |way| format!("{way:.1}"));
            lesson.value(&format!("{key}_way_{seq_len}"), way, Kind::Computed);
        }
    }
    // Half of the distance between 30 and the next bfloat16.
    let thirty = half::bf16::from_f32(30.0);
    let next = half::bf16::from_bits(thirty.to_bits() + 1);
    lesson.value("bf16_at_30", (next.to_f32() - thirty.to_f32()) / 2.0, Kind::Computed);
    lesson.value("atlas_cells", grid.rates.len() * grid.lengths.len(), Kind::Computed);
    lesson.value("atlas_longest", grid.lengths.last().copied().unwrap_or(0), Kind::Computed);
    Ok(())
}

/// The longest length up to which a row of a map stays below 1 %, in words.
fn longest(grid: &Grid, values: &Array2<f64>, rate: f64) -> String {
    let near = |r: &f64| (r / rate - 1.0).abs() < 1e-6;
    let Some(row) = grid.rates.iter().position(near) else { return "–".to_owned() };
    let within = values.row(row).iter().take_while(|&&value| value <= 0.01).count();
    match within {
        0 => format!("< {}", grid.lengths[0]),
        n if n == grid.lengths.len() => format!("≥ {}", grid.lengths[n - 1]),
        n => grid.lengths[n - 1].to_string(),
    }
}
