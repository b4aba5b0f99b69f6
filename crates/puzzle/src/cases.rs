//! The cases of the contract on which a puzzle's kernel runs.

use linrec::Direction;
use linrec::contract::{Case, CoeffKind, Domain, InputKind, Layout};

use crate::problem::{Computes, Problem};

impl Problem {
    /// Returns the cases that the kernel accepts, the smallest first: cases of the table, and the
    /// puzzle's own sizes. Only some of the long cases are included, in which mistakes show.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let domain = Domain {
            max_len: self.max_len,
            multiple_of: self.multiple_of,
            tile: self.tile,
            reverse: false,
            log_coeffs: false,
            ..Domain::default()
        };
        let mut cases = domain.cases();
        cases.retain(|case| self.takes(case));
        cases.extend(self.sizes.iter().map(|&size| case(size)));
        cases.sort_by_key(|case| (case.seq_len * case.num_seqs, case.seq_len));
        cases
    }

    /// Describes a case: `3 sequences of 33 steps, coefficients near one`, or `99 elements`.
    pub(crate) fn words(&self, case: &Case) -> String {
        if self.computes == Computes::Sum {
            size([case.num_seqs, case.seq_len], true)
        } else {
            words(case)
        }
    }

    fn takes(&self, case: &Case) -> bool {
        use CoeffKind::{Gate, Growing, MinusOne, NearOne, One, Signed, Underflow, Zeros};
        let long = case.seq_len > 100;
        let kinds: &[CoeffKind] = match self.computes {
            Computes::Sum => &[Gate, Signed],
            // The coefficients are constant over a sequence.
            Computes::States => &[Gate, NearOne, One, MinusOne, Underflow],
            _ if long => &[NearOne, Signed, Zeros, Growing],
            _ => &CoeffKind::ALL,
        };
        let most = if long { 3 } else { usize::MAX }.min(self.max_seqs);
        let dense = case.inputs == InputKind::Dense;
        let few =
            if case.seq_len > 2000 { case.coeffs == NearOne && case.num_seqs == 1 } else { true };
        !case.initial
            && case.layout == Layout::Standard
            && case.seq_len > 0
            && (1..=most).contains(&case.num_seqs)
            && kinds.contains(&case.coeffs)
            && (dense || !long)
            && (few || self.computes == Computes::Sum)
    }
}

/// Returns the case with this number and length of sequences, coefficients near one, dense inputs
/// and no initial state.
pub(crate) fn case([num_seqs, seq_len]: [usize; 2]) -> Case {
    Case {
        num_seqs,
        seq_len,
        direction: Direction::Forward,
        initial: false,
        coeffs: CoeffKind::NearOne,
        log_coeffs: false,
        inputs: InputKind::Dense,
        layout: Layout::Standard,
    }
}

fn words(case: &Case) -> String {
    let coeffs = match case.coeffs {
        CoeffKind::Gate => "between 0 and 1",
        CoeffKind::NearOne => "near one",
        CoeffKind::Signed => "of both signs",
        CoeffKind::Zeros => "near one, some of them 0",
        CoeffKind::One => "1",
        CoeffKind::MinusOne => "-1",
        CoeffKind::Growing => "above one",
        CoeffKind::Underflow => "near 0",
    };
    let sparse = if case.inputs == InputKind::Sparse { ", sparse inputs" } else { "" };
    format!("{}, coefficients {coeffs}{sparse}", size([case.num_seqs, case.seq_len], false))
}

/// Describes a number of sequences and their length, `3 sequences of 33 steps`, or for plain arrays
/// `99 elements`.
pub(crate) fn size([num_seqs, seq_len]: [usize; 2], of_arrays: bool) -> String {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    if of_arrays {
        let elements = num_seqs * seq_len;
        return format!("{elements} element{}", plural(elements));
    }
    format!("{num_seqs} sequence{} of {seq_len} step{}", plural(num_seqs), plural(seq_len))
}
