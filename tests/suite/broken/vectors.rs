//! Mistakes in the kernels that move 16-byte vectors: several rows in a warp, and a block for each
//! row.

use linrec::Direction;
use linrec::contract::{Case, CoeffKind, InputKind};
use linrec::kernels::{Finder, KernelChoice, RowsConfig, WideConfig};

use super::{assert_finder, judge, per_sequence};

/// A tile of 256 floats.
const TILE: usize = 256;

fn wide(ahead: u32, whole: bool) -> KernelChoice {
    KernelChoice::Wide(WideConfig { vectors: 1, threads: 64, ahead, whole })
}

/// Rows of up to 32 floats, four in a warp.
fn rows(whole: bool) -> KernelChoice {
    KernelChoice::Rows(RowsConfig { lanes: 8, vectors: 1, threads: 32, whole })
}

/// Asserts that of the cases with such coefficients those that `shows` names fail, with all of
/// these words, and the others pass. There are some of both.
fn assert_shown(
    name: &str,
    choice: KernelChoice,
    coeffs: CoeffKind,
    shows: impl Fn(&Case) -> bool,
    words: &[&str],
) {
    // A number that is wrong is said with the one that is right.
    let numbers = words.contains(&"instead of");
    assert_finder(name, if numbers { Finder::Contract } else { Finder::Emulator });
    let (engine, domain) = per_sequence(name, choice);
    let (mut seen, mut hidden) = (0, 0);
    // Of short sequences of sparse inputs all may be zero.
    let dense = |(case, _): &(Case, _)| case.inputs == InputKind::Dense;
    for (case, outcome) in judge(&engine, &domain, coeffs).into_iter().filter(dense) {
        match outcome {
            Ok(_) => {
                assert!(!shows(&case), "{name} passes {case}");
                hidden += 1;
            }
            Err(what) => {
                assert!(shows(&case), "{name} fails {case}: {what}");
                assert!(words.iter().all(|words| what.contains(words)), "{name}, {case}: {what}");
                seen += 1;
            }
        }
    }
    println!("{name}: {seen} cases show it and {hidden} hide it");
    assert!(seen > 0 && hidden > 0, "{name}: {seen} cases show it and {hidden} hide it");
}

#[test]
fn copies_not_awaited() {
    // What is read was asked for in wide.cuh, and is read there.
    let words = ["reads", "shared memory", "the cp.async that lane", "has not been waited for"];
    let some = |case: &Case| case.seq_len > 0;
    assert_shown("copies_not_awaited", wide(1, true), CoeffKind::NearOne, some, &words);
}

#[test]
fn slot_taken_too_early() {
    // With two tiles ahead, the third is the first that takes another's place.
    let words = ["copies", "shared memory", "the cp.async that lane", "has not been waited for"];
    let third = |case: &Case| case.seq_len > 2 * TILE;
    assert_shown("slot_taken_too_early", wide(2, true), CoeffKind::NearOne, third, &words);
}

#[test]
fn one_place_for_totals() {
    let words = ["writes", "shared memory", "reads", "no barrier lies between"];
    let second = |case: &Case| case.seq_len > TILE;
    assert_shown("one_place_for_totals", wide(0, true), CoeffKind::NearOne, second, &words);
}

/// Whether some row has a vector that does not begin at a multiple of 16 bytes, if rows are taken
/// to be vectors from their first step on, or in reverse from their last.
fn has_odd_vector(case: &Case) -> bool {
    let later_rows = case.num_seqs > 1 || case.direction == Direction::Reverse;
    case.seq_len >= 4 && !case.seq_len.is_multiple_of(4) && later_rows
}

#[test]
fn head_forgotten() {
    let words = ["16 bytes", "which is no multiple of 16"];
    assert_shown("head_forgotten", wide(0, false), CoeffKind::NearOne, has_odd_vector, &words);
}

#[test]
fn vector_not_aligned() {
    let name = "vector_not_aligned";
    let words =
        ["reads 16 bytes", "which is no multiple of 16", "kernels/broken/vector_not_aligned"];
    assert_shown(name, rows(false), CoeffKind::NearOne, has_odd_vector, &words);
}

#[test]
fn last_coefficient_twice() {
    let name = "last_coefficient_twice";
    let ends_within = |case: &Case| !case.seq_len.is_multiple_of(TILE);
    let words = ["d_initial", "instead of"];
    assert_shown(name, wide(0, true), CoeffKind::NearOne, ends_within, &words);
    // A coefficient of one may stand there as often as it will.
    let (engine, domain) = per_sequence(name, wide(0, true));
    for (case, outcome) in judge(&engine, &domain, CoeffKind::One) {
        assert!(outcome.is_ok(), "{case}: {outcome:?}");
    }
}

#[test]
fn lanes_of_other_rows() {
    // The emulator has nothing to say: every lane takes part, and may ask any other. A row that has
    // the warp to itself has no neighbour.
    let neighbours = |case: &Case| case.num_seqs > 1 && case.seq_len > 0;
    let words = ["outputs(1, ", "instead of"];
    assert_shown("lanes_of_other_rows", rows(true), CoeffKind::NearOne, neighbours, &words);
}
