//! The part of the table that is run.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Case, CoeffKind, InputKind, Layout, cases};
use crate::Direction;

/// The cases that are run: the whole table, a part that takes seconds, or random cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// All of [`cases`].
    Full,
    /// A part that takes a thirtieth of the time and finds every planted mistake of this project.
    ///
    /// Up to 100 elements it leaves out every second combination of direction and initial state,
    /// except for plain cases of up to three sequences; batches of seventeen have plain
    /// coefficients that are near one, signed, zero in places, or growing. Longer sequences have
    /// only two of these combinations. Up to 2100 elements it leaves out single sequences with
    /// plain coefficients, batches of three with a layout, logarithms or sparse inputs, and batches
    /// of seventeen with coefficients that are not near one. Beyond that, sequences are single,
    /// with plain coefficients that are near one, signed, zero in places, or growing; beyond 10,000
    /// only near one.
    Quick,
    /// This number of random cases, with shapes that the table does not have; the same ones every
    /// time.
    Drawn(usize),
}

impl Table {
    /// The environment variable that [`Table::asked`] reads.
    pub const VARIABLE: &str = "LINREC_CONTRACT";

    /// Returns the table that the environment selects: [`Table::Quick`] if `LINREC_CONTRACT` is
    /// unset, empty or `quick`, else [`Table::Full`].
    pub fn asked() -> Table {
        match std::env::var_os(Table::VARIABLE) {
            Some(value) if !value.is_empty() && value != "quick" => Table::Full,
            _ => Table::Quick,
        }
    }

    /// Returns the cases. `tile` is a length at which the engine changes its method.
    pub fn cases(self, tile: usize) -> Vec<Case> {
        match self {
            Table::Full => cases(tile),
            Table::Quick => cases(tile).into_iter().filter(is_quick).collect(),
            Table::Drawn(count) => drawn(count),
        }
    }
}

fn is_quick(case: &Case) -> bool {
    use CoeffKind::{Growing, NearOne, Signed, Zeros};
    let plain =
        case.layout == Layout::Standard && case.inputs == InputKind::Dense && !case.log_coeffs;
    // Forward from zero and in reverse from an initial state, or the other two.
    let crossed = (case.direction == Direction::Reverse) != case.initial;
    let odd = case.coeffs as usize + case.layout as usize + usize::from(case.log_coeffs);
    let paired = crossed == (odd % 2 == 1);
    let kinds = [NearOne, Signed, Zeros, Growing];
    match case.seq_len {
        0..=100 if case.num_seqs <= 3 => paired || plain,
        // Most of the time of a kernel with a block for each sequence, whatever the length.
        0..=100 => paired && plain && kinds.contains(&case.coeffs),
        101..=2100 => {
            paired
                && match case.num_seqs {
                    0 | 1 => !plain,
                    3 => plain,
                    _ => plain && case.coeffs == NearOne,
                }
        }
        2101..=10_000 => paired && plain && case.num_seqs == 1 && kinds.contains(&case.coeffs),
        _ => paired && plain && case.num_seqs == 1 && case.coeffs == NearOne,
    }
}

fn drawn(count: usize) -> Vec<Case> {
    let mut random = StdRng::seed_from_u64(2026);
    let mut case = || {
        let coeffs = CoeffKind::ALL[random.random_range(0..CoeffKind::ALL.len())];
        let seq_len = random.random_range(1..700);
        Case {
            num_seqs: random.random_range(1..12),
            seq_len,
            direction: [Direction::Forward, Direction::Reverse][random.random_range(0..2)],
            initial: random.random(),
            coeffs,
            log_coeffs: coeffs.has_log() && random.random(),
            inputs: [InputKind::Dense, InputKind::Sparse][random.random_range(0..2)],
            layout: Layout::ALL[random.random_range(0..Layout::ALL.len())],
        }
    };
    (0..count).map(|_| case()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_quick_table_has_every_length_and_kind_of_case() {
        let (full, quick) = (Table::Full.cases(512), Table::Quick.cases(512));
        let known: HashSet<_> = full.iter().collect();
        assert!(quick.iter().all(|case| known.contains(case)));
        let lengths =
            |cases: &[Case]| cases.iter().map(|case| case.seq_len).collect::<HashSet<_>>();
        assert_eq!(lengths(&quick), lengths(&full));
        for seq_len in [511, 512, 513, 1000] {
            let of_length = || quick.iter().filter(|case| case.seq_len == seq_len);
            let both = |case: &&Case| (case.direction, case.initial);
            for kind in CoeffKind::ALL {
                let pairs: HashSet<_> = of_length()
                    .filter(|case| case.coeffs == kind)
                    .map(|case| both(&case))
                    .collect();
                assert!(pairs.len() >= 2, "{kind:?} at {seq_len}: {pairs:?}");
            }
            for layout in Layout::ALL {
                assert!(of_length().any(|case| case.layout == layout), "{layout:?} at {seq_len}");
            }
            assert_eq!(of_length().map(|case| both(&case)).collect::<HashSet<_>>().len(), 4);
        }
        let elements =
            |cases: &[Case]| cases.iter().map(|case| case.num_seqs * case.seq_len).sum::<usize>();
        assert!(30 * elements(&quick) < elements(&full));
    }

    #[test]
    fn random_cases_are_the_same_every_time() {
        let drawn = Table::Drawn(200).cases(64);
        assert_eq!(drawn, Table::Drawn(200).cases(1000));
        assert_eq!(drawn.len(), 200);
        assert!(drawn.iter().all(|case| case.coeffs.has_log() || !case.log_coeffs));
    }
}
