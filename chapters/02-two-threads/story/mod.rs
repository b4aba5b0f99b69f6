//! The story of chapter 2: splits a sequence by hand, then counts and measures.
//!
//! A reader first follows eight elements in two halves, the operator on transitions, and a tree
//! over eight parts. The story then counts the steps of T threads against the formula, runs the
//! test contract, and leaves the measurements to the module `measured`. `cargo xtask record
//! --check` compares the checks and values of a run with the committed record.

mod measured;

use ch01_sequential_loop::linrec;
use lesson::plot::{self, Area, COLORS, Chart, Panel};
use lesson::{Kind, Lesson, Result, Table};
use linrec::Engine;
use linrec::contract::{self, Domain};
use ndarray::{Array1, ArrayView1};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::{
    ManyThreads, Part, Steps, Transition, TwoThreads, many_threads, merge_groups, two_threads,
};

pub(crate) fn run(lesson: &mut Lesson) -> Result {
    lesson.engine("two threads, T threads");
    by_hand(lesson)?;
    operator(lesson)?;
    tree_of_eight(lesson)?;
    counted(lesson)?;
    contract(lesson)?;
    measured::cost_of_a_thread(lesson)?;
    let pieces = measured::cost_of_a_step(lesson)?;
    measured::against_length(lesson, &pieces)?;
    measured::against_threads(lesson)
}

fn by_hand(lesson: &mut Lesson) -> Result {
    lesson.step("split", "Eight elements in two halves")?;
    lesson.say(
        "Thread 1 has the elements 0 to 3, thread 2 has 4 to 7. Thread 2 does not know y_3 yet. It \
         starts from zero, and keeps the products of its coefficients:",
    );
    let x = [8.0, 0.0, 4.0, 2.0, 1.0, 0.0, 3.0, 0.0];
    let c = [0.5, 0.5, 1.0, 0.5, 0.5, 2.0, 0.5, 0.5];
    let whole = linrec(&x, &c, 0.0);
    let (local, products) = (linrec(&x[4..], &c[4..], 0.0), linrec(&[0.0; 4], &c[4..], 1.0));
    let state = whole[3];
    let mut table =
        Table::new(["l", "c_l", "x_l", "thread", "from zero", "product", "combined", "loop"]);
    for l in 0..8 {
        let mut cells = vec![l.to_string(), c[l].to_string(), x[l].to_string()];
        match l.checked_sub(4) {
            None => cells.extend(["1", &whole[l].to_string(), "–", "–"].map(String::from)),
            Some(i) => cells.extend([
                "2".to_owned(),
                local[i].to_string(),
                products[i].to_string(),
                format!(
                    "{state} * {} + {} = {}",
                    products[i],
                    local[i],
                    state * products[i] + local[i]
                ),
            ]),
        }
        cells.push(whole[l].to_string());
        table.row(cells);
    }
    lesson.table("split.csv", Kind::Computed, &table)?;
    lesson.say("The same on two threads of this machine, split at each of the 9 places in turn:");
    let mut wrong = 0;
    for split in 0..=8 {
        let mut y = Array1::from_elem(8, f64::NAN);
        let part = Part::new(ArrayView1::from(&x), ArrayView1::from(&c), y.view_mut())?;
        two_threads(part, 0.0, split)?;
        wrong += y.iter().zip(&whole).filter(|(y, expected)| y != expected).count();
    }
    lesson.check("outputs, of 9 splits, that differ from the loop's", wrong as f64, 0.0);
    Ok(())
}

/// Shows that the operator on transitions is associative but does not commute.
fn operator(lesson: &mut Lesson) -> Result {
    lesson.step("operator", "One operator")?;
    let (a, b) = (Transition { coeff: 2.0, state: 1.0 }, Transition { coeff: 3.0, state: 5.0 });
    let text = |t: Transition<f64>| format!("({}, {})", t.coeff, t.state);
    lesson.show(format!(
        "{} then {} is {}\n{} then {} is {}",
        text(a),
        text(b),
        text(a.then(b)),
        text(b),
        text(a),
        text(b.then(a))
    ));
    lesson.say("So the order matters. The brackets do not:");
    let mut rng = StdRng::seed_from_u64(1);
    let mut digit = || f64::from(rng.random_range(-9..10));
    let mut wrong = 0;
    for _ in 0..1000 {
        let [a, b, c] = std::array::from_fn(|_| Transition { coeff: digit(), state: digit() });
        wrong += usize::from(a.then(b).then(c) != a.then(b.then(c)));
    }
    lesson.check("triples of whole numbers, of 1000, in which brackets matter", wrong as f64, 0.0);
    Ok(())
}

/// Shows which parts each entry covers while eight parts are combined.
fn tree_of_eight(lesson: &mut Lesson) -> Result {
    lesson.step("tree", "Eight parts in three levels")?;
    lesson.say(
        "The function that combines transitions is run on ranges of parts here: two of them make \
         one, and every thread says which parts its own range covers.",
    );
    let mut ranges: Vec<(usize, usize)> = (0..8).map(|thread| (thread, thread)).collect();
    let mut levels = vec![ranges.clone()];
    let mut gaps = 0;
    for size in [1, 2, 4] {
        merge_groups(&mut ranges, size, |left: (usize, usize), right| {
            gaps += usize::from(left.1 + 1 != right.0);
            (left.0, right.1)
        });
        levels.push(ranges.clone());
    }
    let mut table =
        Table::new(["level".to_owned()].into_iter().chain((0..8).map(|t| format!("thread {t}"))));
    for (level, ranges) in levels.iter().enumerate() {
        let cells = ranges.iter().map(|&(from, to)| match from == to {
            true => format!("{from}"),
            false => format!("{from}-{to}"),
        });
        table.row([level.to_string()].into_iter().chain(cells));
    }
    lesson.table("tree.csv", Kind::Computed, &table)?;
    lesson.check("combinations of ranges that do not touch", gaps as f64, 0.0);
    let missing = ranges.iter().enumerate().filter(|&(t, &range)| range != (0, t)).count();
    lesson.check(
        "threads without the combination of all parts up to their own",
        missing as f64,
        0.0,
    );
    let picture = plot::svg(&[&WhoHoldsWhat { levels }])?;
    lesson.figure("tree.svg", "who holds what", Kind::Computed, &picture)
}

fn count(len: usize, threads: usize) -> Result<Steps> {
    let (x, c) = around_one(len);
    let mut y = Array1::zeros(len);
    let part = Part::new(x.view(), c.view(), y.view_mut())?;
    Ok(many_threads(part, 0.0, threads)?.1)
}

/// Returns the expected steps: 2 ⌈L/T⌉ + ⌈log2 T⌉, and L for one thread.
fn formula(len: usize, threads: usize) -> usize {
    match threads {
        1 => len,
        _ => 2 * len.div_ceil(threads) + threads.next_power_of_two().ilog2() as usize,
    }
}

fn counted(lesson: &mut Lesson) -> Result {
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
    lesson.check("steps more or fewer than 2L/T + log2 T, from two threads on", off as f64, 0.0);
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
        .dashed("2L/T + log2 T, and L for T = 1", expected(LEN))
        .dots("counted", measured);
    lesson.figure("steps.svg", "counted steps", Kind::Computed, &plot::svg(&[&chart])?)
}

fn contract(lesson: &mut Lesson) -> Result {
    lesson.step("contract", "The same test as for the loop")?;
    lesson.say(
        "Combining in a tree rounds in other places than the loop, but hardly more often: an input \
         meets one more addition per level on its way. The bound of chapter 1 has a place for that, \
         d, and both engines are held to it. Here with single sequences of up to 1000 elements in f32:",
    );
    let mut table = Table::new(["engine", "d", "cases", "largest error / bound"]);
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

/// The parts that every thread's transition covers, level by level. Lines connect an entry with the
/// entries that were combined into it.
struct WhoHoldsWhat {
    /// The first and the last part, for every level and every thread.
    pub levels: Vec<Vec<(usize, usize)>>,
}

const LEFT: i32 = 74;
const TOP: i32 = 34;
const ROW: i32 = 78;
const BOX: (i32, i32) = (60, 28);

impl Panel for WhoHoldsWhat {
    fn height(&self, _width: u32) -> u32 {
        (TOP + ROW * self.levels.len() as i32 - 20) as u32
    }

    fn draw(&self, area: &Area) -> Result {
        let threads = self.levels.first().map_or(1, Vec::len).max(1) as i32;
        let column = (area.dim_in_pixel().0 as i32 - LEFT) / threads;
        let center = |level: usize, t: usize| {
            (LEFT + column * t as i32 + column / 2, TOP + ROW * level as i32 + 22)
        };
        let text = |size| ("sans-serif", size).into_text_style(&(1, 1)).color(&BLACK);
        let middle = Pos::new(HPos::Center, VPos::Center);

        for t in 0..threads as usize {
            let (x, _) = center(0, t);
            area.draw(&Text::new(format!("thread {t}"), (x, 18), text(13).pos(middle)))?;
        }
        for (level, ranges) in self.levels.iter().enumerate() {
            let (_, y) = center(level, 0);
            let left = Pos::new(HPos::Left, VPos::Center);
            area.draw(&Text::new(format!("level {level}"), (8, y), text(13).pos(left)))?;
            for (t, &(from, to)) in ranges.iter().enumerate() {
                let (x, y) = center(level, t);
                let mut color = COLORS[0];
                if level > 0 {
                    let before = self.levels[level - 1][t];
                    // The entry itself was carried down, and the entry that ends just before it was
                    // combined with it.
                    draw_line(area, center(level - 1, t), (x, y), COLORS[5])?;
                    if before != (from, to) {
                        draw_line(area, center(level - 1, before.0 - 1), (x, y), COLORS[1])?;
                    }
                }
                if from == 0 {
                    color = COLORS[2];
                }
                let corners = [(x - BOX.0 / 2, y - BOX.1 / 2), (x + BOX.0 / 2, y + BOX.1 / 2)];
                area.draw(&Rectangle::new(corners, WHITE.filled()))?;
                area.draw(&Rectangle::new(corners, color.stroke_width(2)))?;
                let range = if from == to { format!("{from}") } else { format!("{from} to {to}") };
                area.draw(&Text::new(range, (x, y), text(14).pos(middle)))?;
            }
        }
        Ok(())
    }
}

/// Draws a line from the bottom of one box to the top of another.
fn draw_line(area: &Area, from: (i32, i32), to: (i32, i32), color: RGBColor) -> Result {
    let ends = [(from.0, from.1 + BOX.1 / 2), (to.0, to.1 - BOX.1 / 2)];
    area.draw(&PathElement::new(ends, color.stroke_width(2)))?;
    Ok(())
}

/// Draws inputs and coefficients of a long sequence. The coefficients lie on both sides of 1, so
/// that their products neither vanish nor overflow.
fn around_one(len: usize) -> (Array1<f32>, Array1<f32>) {
    random(len, 0.99..1.01)
}

fn random(len: usize, coeffs: std::ops::Range<f32>) -> (Array1<f32>, Array1<f32>) {
    let mut rng = StdRng::seed_from_u64(len as u64);
    let mut draw = |range: std::ops::Range<f32>| {
        Array1::from_shape_simple_fn(len, || rng.random_range(range.clone()))
    };
    (draw(-1.0..1.0), draw(coeffs))
}
