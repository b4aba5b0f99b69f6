//! The precision atlas.

use linrec::lesson::{Kind, Lesson, Result, progress};

use crate::atlas::{Grid, Legend, Map, Method, draw, map, sixteen_bits};
use crate::{LogSpace, Order};

/// Draws both pages of the atlas.
pub fn atlas(lesson: &mut Lesson) -> Result {
    lesson.step("atlas", "The precision atlas")?;
    let grid = Grid::new(lesson.size(1 << 16, 1 << 20), lesson.size(2, 4));
    let bar = progress(8, "computing maps");
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
    let double = map::<f64>(&grid, &whole, "log space, f64")?;
    let [bf16, f16] = sixteen_bits(&grid)?;
    bar.finish_and_clear();

    let legend = Legend { powers: (-8, 0), contours: [-6, -4, -2] };
    let svg = draw(&grid, &maps.each_ref(), legend)?;
    lesson.figure("methods.svg", "errors in f32", Kind::Computed, &svg)?;
    let single = Map { title: "log space, f32".to_owned(), ..maps[4].clone() };
    let legend = Legend { powers: (-16, 0), contours: [-12, -4, -1] };
    let svg = draw(&grid, &[&double, &single, &bf16, &f16], legend)?;
    lesson.figure("types.svg", "errors of log space", Kind::Computed, &svg)?;

    for map in maps.iter().chain([&double, &bf16, &f16]) {
        lesson.check(&format!("{}: largest error / bound", map.title), map.largest_share(), 1.0);
    }
    Ok(())
}
