//! Three cups: what counts of swaps reveal, and what networks learned.

use std::collections::BTreeMap;

use lesson::plot::{self, Chart};
use lesson::{Kind, Lesson, Table};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::cups::counted::{best, formula};
use crate::cups::exact::{by_matrices, by_one_row, by_two_layers};
use crate::cups::training::CONTESTANTS;
use crate::cups::{Swap, follow};

pub(super) fn counted(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("cups", "Three cups")?;
    lesson.say(
        "A ball lies under the first of three cups, and at each position the left two or the right two change \
         places. Who knows only how often each happened guesses the cup that most such sequences lead to. Over all \
         sequences of a length, that is right as often as the second column says; the others follow the ball \
         through 1000 random sequences.",
    );
    let lengths = [1, 2, 4, 8, 16, 32, 64];
    let header = ["swaps", "counts only", "growing number", "two layers", "matrices"];
    let mut table = Table::new(header);
    let mut rng = StdRng::seed_from_u64(142);
    let mut draw = |len: usize| -> Vec<Swap> {
        (0..len).map(|_| if rng.random_bool(0.5) { Swap::Left } else { Swap::Right }).collect()
    };
    for len in lengths {
        let mut right = [0; 3];
        for _ in 0..1000 {
            let swaps = draw(len);
            let found = [by_one_row(&swaps)?, by_two_layers(&swaps)?, by_matrices(&swaps)];
            let cup = follow(&swaps)[len - 1];
            right
                .iter_mut()
                .zip(found)
                .for_each(|(right, f)| *right += usize::from(f[len - 1] == cup));
        }
        let shares = right.map(|right| format!("{:.3}", right as f64 / 1000.0));
        let cells = [len.to_string(), format!("{:.3}", best(len).cup)];
        table.row(cells.into_iter().chain(shares));
    }
    lesson.table("cups.csv", Kind::Computed, &table)?;
    let worst = (0..=50).map(|half| (best(2 * half).cup - formula(half as i32)).abs());
    lesson.check("counted and by the formula, up to 100 swaps", worst.fold(0.0, f64::max), 1e-14);
    let (swaps, mut wrong) = (draw(10_000), 0);
    let cups = follow(&swaps);
    for found in [by_one_row(&swaps)?, by_two_layers(&swaps)?, by_matrices(&swaps)] {
        wrong += found.iter().zip(&cups).filter(|(found, cup)| found != cup).count();
    }
    lesson.check("wrong cups of these three through 10000 swaps", wrong as f64, 0.0);
    Ok(())
}

/// The results of the networks, which were trained beforehand.
const TRAINED: &str = include_str!("../results/trained/cups.csv");

/// The lengths in the table.
const SHOWN: [usize; 3] = [32, 64, 256];

pub(super) fn trained(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("cups-trained", "What is learned of it")?;
    lesson.say(
        "Small networks were trained on 32 swaps, each with three seeds, and tested with up to 256. That takes \
         minutes, so it was done before (the example state_tracking repeats it). The least and the largest share of \
         right cups among the seeds, for 2000 sequences:",
    );
    // The shares of all seeds, by network and number of swaps.
    let mut shares: BTreeMap<(&str, usize), Vec<f64>> = BTreeMap::new();
    for line in TRAINED.lines().skip(1) {
        // A network's name has no quotation mark but may have commas: the cell is quoted.
        let cells: Vec<&str> = line.rsplitn(4, ',').collect();
        let [right, swaps, _, before] = cells[..] else { continue };
        let network = before.trim_end_matches('"').rsplit('"').next().unwrap_or(before);
        shares.entry((network, swaps.parse()?)).or_default().push(right.parse()?);
    }
    let range = |network: &str, swaps: usize| -> lesson::Result<(f64, f64)> {
        let all =
            shares.get(&(network, swaps)).ok_or("the record of the training is incomplete")?;
        Ok(all.iter().fold((1.0, 0.0), |(a, b): (f64, f64), &s| (a.min(s), b.max(s))))
    };
    let header = SHOWN.map(|swaps| format!("after {swaps} swaps"));
    let mut table = Table::new([String::from("network")].into_iter().chain(header));
    for contestant in CONTESTANTS {
        let mut cells = vec![contestant.name.to_owned()];
        for swaps in SHOWN {
            let (least, most) = range(contestant.name, swaps)?;
            cells.push(format!("{least:.3} to {most:.3}"));
        }
        table.row(cells);
    }
    lesson.table("cups-trained.csv", Kind::Computed, &table)?;

    let mut chart = Chart::new("Balls found by networks trained on 32 swaps, mean of three seeds")
        .axes("swaps", "share found")
        .log_x(2.0)
        .y_range(0.0, 1.05);
    for name in DRAWN {
        let of_name = shares.iter().filter(|((network, _), _)| *network == name);
        let points = of_name
            .map(|((_, swaps), all)| (*swaps as f64, all.iter().sum::<f64>() / all.len() as f64));
        chart = chart.line(name, points.collect::<Vec<_>>());
    }
    chart = chart
        .dashed("counts only, no inputs", (0..=8).map(|d| (f64::from(1 << d), best(1 << d).cup)));
    lesson.figure("cups.svg", "Three cups", Kind::Computed, &plot::svg(&[&chart])?)
}

/// The networks in the figure.
const DRAWN: [&str; 5] = [
    "one layer, c in (0, 1)",
    "one layer, c in (−1, 1)",
    "one layer, complex",
    "two layers, complex",
    "delta rule, β in (0, 2)",
];
