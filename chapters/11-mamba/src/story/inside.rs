//! What the trained block does with one sequence.

use linrec::lesson::plot::{self, Area, Chart, HeatMap, Panel};
use linrec::lesson::{self, Kind, Lesson, Table};
use ndarray::{Array2, Axis};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::activation::softplus;
use crate::block::{Block, engine};
use crate::training::{Plan, Trained};

/// Shows the step sizes along a sequence, and what they mean for the states.
pub fn inside(lesson: &mut Lesson, trained: &Trained) -> lesson::Result {
    lesson.step("inside", "Where it lets the states pass, and where it writes")?;
    let task = Plan::of_the_chapter(true).task;
    let batch = task.draw(&mut StdRng::seed_from_u64(31), 1);
    let tokens = batch.tokens.row(0);
    let (delta, kept, written) = steps(&trained.block, &batch.tokens)?;

    // Channels that step far at symbols first.
    let is_symbol = |token: usize| (1..=task.symbols).contains(&token);
    let at_symbols = |row: usize| -> f64 {
        tokens.iter().zip(delta.row(row)).filter(|(t, _)| is_symbol(**t)).map(|(_, d)| d).sum()
    };
    let mut order: Vec<usize> = (0..delta.nrows()).collect();
    order.sort_by(|&a, &b| at_symbols(b).total_cmp(&at_symbols(a)));
    let sorted = delta.select(Axis(0), &order);
    let limit = 2.0;
    let map = HeatMap::new("Step sizes Δ of all channels", sorted, (0.0, limit))
        .axes("position l", "channels");

    let places = |wanted: &dyn Fn(usize) -> bool, height: f64| -> Vec<(f64, f64)> {
        let found = tokens.iter().enumerate().filter(|(_, token)| wanted(**token));
        found.map(|(l, _)| (l as f64, height)).collect()
    };
    let series = |values: &[f64]| -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(l, &value)| (l as f64, value)).collect()
    };
    let top = written.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let shares: Vec<_> = written.iter().map(|w| w / top).collect();
    let chart = Chart::new("Mean over all states of all channels")
        .axes("position l", "share")
        .y_range(0.0, 1.9)
        .line("coefficient c: what passes", series(&kept))
        .line("size of x, largest 1: what is written", series(&shares))
        .dots("a symbol", places(&is_symbol, 1.08))
        .dots("a question", places(&|token| token > task.symbols, 1.08));
    let svg = plot::grid(&[&Strip(map), &Strip(chart)], 1)?;
    lesson.figure("inside.svg", "What the block does with one sequence", Kind::Computed, &svg)?;

    // Over many sequences, by what kind of token it is.
    let many = task.draw(&mut StdRng::seed_from_u64(32), 256);
    let (_, kept, written) = steps(&trained.block, &many.tokens)?;
    let mut table = Table::new(["at", "mean coefficient c", "mean size of x"]);
    let kinds: [(&str, &dyn Fn(usize) -> bool); 3] = [
        ("a blank", &|token| token == 0),
        ("a symbol", &is_symbol),
        ("a question", &|token| token > task.symbols),
    ];
    for (name, wanted) in kinds {
        let mean = |values: &[f64]| -> f64 {
            let found = many.tokens.iter().zip(values).filter(|(token, _)| wanted(**token));
            let (count, sum) = found.fold((0.0, 0.0), |(n, sum), (_, v)| (n + 1.0, sum + v));
            sum / count
        };
        table.row([
            name.to_owned(),
            format!("{:.3}", mean(&kept)),
            format!("{:.3}", mean(&written)),
        ]);
    }
    lesson.say("The mean over all states of all channels, over 256 sequences:");
    lesson.table("inside.csv", Kind::Computed, &table)
}

/// `Δ` `[channels, positions]`, and the means over all states of coefficient and size of input at each position;
/// the positions of the sequences `[batch, len]` one after the other.
type Steps = (Array2<f64>, Vec<f64>, Vec<f64>);

fn steps(block: &Block<f32>, tokens: &Array2<usize>) -> Result<Steps, linrec::Error> {
    let inside = block.forward(&engine(), tokens.view())?;
    let states = block.config.states;
    let len = tokens.ncols();
    let bias = block.weights.delta_bias.column(0);
    let delta = Array2::from_shape_fn(inside.delta.dim(), |(j, l)| {
        softplus(f64::from(inside.delta[[j, l]]) + f64::from(bias[j]))
    });
    let count = (delta.nrows() * states) as f64;
    let over_states = |of: &dyn Fn(usize, usize, usize) -> f64| -> Vec<f64> {
        let at = |l| -> f64 {
            let all = (0..delta.nrows()).flat_map(|j| (0..states).map(move |n| (j, n)));
            all.map(|(j, n)| of(j, n, l)).sum()
        };
        (0..delta.ncols()).map(|l| at(l) / count).collect()
    };
    let kept = over_states(&|j, n, l| (delta[[j, l]] * f64::from(inside.a[[j, n]])).exp());
    let written = over_states(&|j, n, l| {
        let (b, u) = (inside.b[[l / len, 0, n, l % len]], inside.u[[j, l]]);
        (delta[[j, l]] * f64::from(b) * f64::from(u)).abs()
    });
    Ok((delta, kept, written))
}

/// A picture that is wide and low.
struct Strip<P>(P);

impl<P: Panel> Panel for Strip<P> {
    fn draw(&self, area: &Area) -> lesson::Result {
        self.0.draw(area)
    }

    fn height(&self, width: u32) -> u32 {
        width * 2 / 5
    }
}
