//! The split by hand, the operator, and the tree over eight parts.

use ch01_sequential_loop::linrec;
use linrec::lesson::{Kind, Lesson, Result, Table, plot};
use ndarray::{Array1, ArrayView1};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::picture::WhoHoldsWhat;
use crate::{Part, Transition, merge_groups, two_threads};

/// Eight elements in two halves.
pub fn by_hand(lesson: &mut Lesson) -> Result {
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

/// The operator on transitions is associative, and does not commute.
pub fn operator(lesson: &mut Lesson) -> Result {
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
    lesson.check("triples of whole numbers, of 1000, where they do", wrong as f64, 0.0);
    Ok(())
}

/// Who holds what while eight parts are put together.
pub fn tree_of_eight(lesson: &mut Lesson) -> Result {
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
    lesson.check("threads that do not hold all parts up to theirs", missing as f64, 0.0);
    let picture = plot::svg(&[&WhoHoldsWhat { levels }])?;
    lesson.figure("tree.svg", "who holds what", Kind::Computed, &picture)
}
