//! Which counter predicts which time.

use linrec::kernels::{ElementType, KernelChoice, Pass};
use linrec::lesson::{self, Kind, Lesson, Table};

use super::{NOTHING, cell};
use crate::counted::{self, PerElement};
use crate::log::Line;
use crate::record;

/// Lengths at which counters and times are compared.
const LENGTHS: [usize; 3] = [16, 256, 4096];

/// The counters of the shipped kernels beside their times on the H200.
pub fn counters(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("counters", "Counters beside times")?;
    let lines = record::tuning()?;
    lesson.say(&format!(
        "What the emulator counts for each element, forward, in the shipped configurations, and the time that each \
         took on the H200, as a multiple of the roof's. {}",
        if lines.is_empty() { NOTHING } else { "" }
    ));
    let header = ["length", "kernel"].into_iter().chain(PerElement::HEADER).chain(["time / roof"]);
    let mut table = Table::new(header);
    let header = ["length", "kernels"].into_iter().chain(PerElement::HEADER);
    let mut ranks = Table::new(header);
    for seq_len in LENGTHS {
        let mut all: Vec<(PerElement, Option<f64>)> = Vec::new();
        for choice in KernelChoice::shipped(ElementType::F32) {
            if choice.max_len(ElementType::F32).is_some_and(|most| seq_len as u64 > most) {
                continue;
            }
            let counted = counted::count::<f32>(choice, Pass::Forward, (32, seq_len))?;
            let time = time(&lines, choice, seq_len);
            let names = [seq_len.to_string(), choice.spec()];
            table.row(names.into_iter().chain(counted.cells()).chain([cell(time, 2)]));
            all.push((counted, time));
        }
        let timed: Vec<(PerElement, f64)> =
            all.into_iter().filter_map(|(counted, time)| Some((counted, time?))).collect();
        let names = [seq_len.to_string(), timed.len().to_string()];
        let correlations = COLUMNS.map(|column| {
            let pairs: Vec<(f64, f64)> =
                timed.iter().map(|(counted, time)| (column(counted), *time)).collect();
            cell(rank_correlation(&pairs), 2)
        });
        ranks.row(names.into_iter().chain(correlations));
    }
    lesson.table("counters.csv", Kind::Computed, &table)?;
    lesson.step("ranks", "Which counter predicts the time")?;
    lesson.say(
        "The same as one number for each counter: how well the order of the kernels by the counter agrees with their \
         order by time. 1 is the same order, -1 the reverse, 0 none (Spearman's rank correlation).",
    );
    lesson.table("ranks.csv", Kind::Computed, &ranks)
}

const COLUMNS: [fn(&PerElement) -> f64; 7] = [
    |counted| counted.instructions,
    |counted| counted.loaded,
    |counted| counted.stored,
    |counted| counted.requests,
    |counted| counted.shuffles,
    |counted| counted.shared,
    |counted| counted.barriers,
];

/// The time of a configuration as a multiple of the roof's; of the smallest block that is the same launch.
fn time(lines: &[Line], choice: KernelChoice, seq_len: usize) -> Option<f64> {
    let element = ElementType::F32;
    let geometry =
        |choice: KernelChoice| choice.geometry(element, Pass::Forward, 1, seq_len as u64);
    let same = |line: &&Line| -> bool {
        let other: Result<KernelChoice, _> = line.engine.parse();
        other.is_ok_and(|other| match (other, choice) {
            (KernelChoice::Pipe(a), KernelChoice::Pipe(b))
            | (KernelChoice::Tile(a), KernelChoice::Tile(b)) => {
                let launch = geometry(other) == geometry(choice);
                let steps = a.max_elems_per_thread == b.max_elems_per_thread;
                launch && steps && a.memcode == b.memcode
            }
            _ => other == choice,
        })
    };
    let here = lines.iter().filter(|line| line.pass == Pass::Forward && line.seq_len == seq_len);
    here.filter(|line| line.num_seqs == 13_200).find(same).map(|line| 1.0 / line.ratio)
}

/// Spearman's rank correlation of pairs; `None` of fewer than three, or if one side is all the same.
// ANCHOR: ranks
pub fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (a, b) = (ranks(&a), ranks(&b));
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let sum = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let spread = (sum(&a, &a) * sum(&b, &b)).sqrt();
    (spread > 0.0).then(|| sum(&a, &b) / spread)
}

/// The place of each value in the order of all, from 0; equal ones share the mean of their places.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let same = values.iter().filter(|other| *other == value).count() as f64;
        below + (same - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}
// ANCHOR_END: ranks

#[cfg(test)]
mod tests {
    use super::rank_correlation;

    #[test]
    fn orders_agree_or_do_not() {
        let of = |pairs: &[(f64, f64)]| rank_correlation(pairs);
        assert_eq!(of(&[(1.0, 10.0), (2.0, 11.0), (9.0, 500.0)]), Some(1.0));
        assert_eq!(of(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), Some(-1.0));
        assert_eq!(of(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(of(&[(1.0, 1.0), (2.0, 2.0)]), None);
        // Two that share a place: ranks 0.5, 0.5, 2 against 0, 1, 2.
        let shared = of(&[(1.0, 1.0), (1.0, 2.0), (3.0, 3.0)]).unwrap();
        assert!((shared - 0.75_f64.sqrt()).abs() < 1e-12, "{shared}");
    }
}
