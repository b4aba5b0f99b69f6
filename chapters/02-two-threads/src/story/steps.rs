//! The steps, counted; and the contract.

use linrec::Engine;
use linrec::contract::{self, Domain};
use linrec::lesson::plot::{self, Chart};
use linrec::lesson::{Kind, Lesson, Result, Table};
use ndarray::Array1;

use super::around_one;
use crate::{ManyThreads, Part, Steps, TwoThreads, many_threads};

fn count(len: usize, threads: usize) -> Result<Steps> {
    let (x, c) = around_one(len);
    let mut y = Array1::zeros(len);
    let part = Part::new(x.view(), c.view(), y.view_mut())?;
    Ok(many_threads(part, 0.0, threads)?.1)
}

/// 2 ⌈L/T⌉ + ⌈log2 T⌉, and L for one thread.
fn formula(len: usize, threads: usize) -> usize {
    match threads {
        1 => len,
        _ => 2 * len.div_ceil(threads) + threads.next_power_of_two().ilog2() as usize,
    }
}

/// Counted steps for T = 1, 2, 4, … threads.
pub fn counted(lesson: &mut Lesson) -> Result {
    lesson.step("steps", "The steps, counted")?;
    const LEN: usize = 4096;
    lesson.say(&format!(
        "A sequence of {LEN} elements on T threads. The threads are real, and each counts the \
         elements that it handles."
    ));
    let mut table = Table::new(["T", "loop", "tree", "combine", "one after another", "in total"]);
    let threads: Vec<usize> = (0..9).map(|exponent| 1 << exponent).collect();
    let mut off: usize = 0;
    let mut measured = Vec::new();
    for &t in &threads {
        let steps = count(LEN, t)?;
        let all = [t, steps.scan, steps.tree, steps.combine, steps.sequential(), steps.total];
        table.row(all.map(|number| number.to_string()));
        off += steps.sequential().abs_diff(formula(LEN, t));
        measured.push((t as f64, steps.sequential() as f64));
    }
    lesson.table("steps.csv", Kind::Computed, &table)?;
    lesson.say(
        "The second thread saves nothing: what thread 2 has to combine is as long as what it was \
         spared. From there on, twice as many threads take half of the steps, until the tree shows. \
         The work in total is about twice that of the loop.",
    );
    lesson.check("steps more or fewer than 2L/T + log2 T", off as f64, 0.0);
    let two = count(LEN, 2)?;
    lesson.value("two_sequential", two.sequential(), Kind::Computed);
    let most = count(LEN, 256)?;
    lesson.value("steps_256", most.sequential(), Kind::Computed);
    lesson.value("total_256", most.total, Kind::Computed);

    let mut unequal: usize = 0;
    for (len, t) in [(1000, 3), (1000, 7), (37, 64), (1, 5), (65, 8)] {
        unequal += count(len, t)?.sequential().saturating_sub(formula(len, t));
    }
    lesson.check("steps more than ⌈.⌉ of these, where T does not divide L", unequal as f64, 0.0);

    let expected = |len: usize| {
        let threads = (0..=12).map(|exponent| 1_usize << exponent);
        threads.map(move |t| (t as f64, formula(len, t) as f64)).collect::<Vec<_>>()
    };
    let chart = Chart::new("Steps one after another, L = 4096")
        .axes("threads T", "steps")
        .log_x(2.0)
        .log_y(10.0)
        .dashed("2L/T + log2 T", expected(LEN))
        .dots("counted", measured);
    lesson.figure("steps.svg", "counted steps", Kind::Computed, &plot::svg(&[&chart])?)
}

/// Some of the cases that every engine must pass.
pub fn contract(lesson: &mut Lesson) -> Result {
    lesson.step("contract", "The same test as for the loop")?;
    lesson.say(
        "Combining in a tree rounds in other places than the loop, but hardly more often: an input \
         meets one more addition per level on its way. The bound of chapter 1 has a place for that, \
         D, and both engines are held to it. Here with single sequences of up to 1000 elements in f32:",
    );
    let mut table = Table::new(["engine", "D", "cases", "largest error / bound"]);
    let two = Domain { levels: |_| 1, ..Domain::default() };
    let many = Domain { levels: |_| 3 + 1, ..Domain::default() };
    let engines: [(&dyn Engine<f32>, &Domain); 3] =
        [(&TwoThreads, &two), (&ManyThreads::new(5), &many), (&ManyThreads::new(8), &many)];
    for (engine, domain) in engines {
        let cases = contract::cases(domain.tile);
        let few = cases.iter().filter(|case| case.num_seqs == 1 && case.seq_len <= 1000);
        let errors = few.map(|case| contract::check(engine, domain, case));
        let errors = errors.collect::<std::result::Result<Vec<_>, _>>()?;
        let worst = errors.iter().copied().fold(0.0, f64::max);
        let levels = (domain.levels)(1000);
        let cells = [levels.to_string(), errors.len().to_string(), format!("{worst:.2}")];
        table.row([&[engine.name().to_owned()][..], &cells].concat());
        lesson.check(&format!("largest error / bound, {}", engine.name()), worst, 1.0);
    }
    lesson.table("contract.csv", Kind::Computed, &table)
}
