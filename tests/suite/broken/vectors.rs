//! Mistakes in the kernels that move 16-byte vectors: those with several rows in a warp, and those
//! with a block for each row.

use linrec::Direction;
use linrec::contract::{Case, CoeffKind, InputKind};
use linrec::kernels::{Finder, KernelChoice, RowsConfig, WideConfig};

use super::{judge, per_sequence};

const TILE: usize = 256;

fn wide(ahead: u32, whole: bool) -> KernelChoice {
    KernelChoice::Wide(WideConfig { vectors: 1, threads: 64, ahead, whole })
}

/// Rows of up to 32 floats, four in a warp.
fn rows(whole: bool) -> KernelChoice {
    KernelChoice::Rows(RowsConfig { lanes: 8, vectors: 1, threads: 32, whole })
}

/// Asserts that, of the cases with these coefficients, exactly those for which `shows` is true
/// fail, with all of these words, and that some cases fail and some pass. Returns what finds it.
fn assert_shown(
    name: &str,
    choice: KernelChoice,
    coeffs: CoeffKind,
    shows: impl Fn(&Case) -> bool,
    words: &[&str],
) -> Finder {
    let (engine, domain) = per_sequence(name, choice);
    let (mut seen, mut hidden) = (0, 0);
    // All outputs of short sequences of sparse inputs may be zero.
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
    // The contract reports a wrong number together with the right one.
    if words.contains(&"instead of") { Finder::Contract } else { Finder::Emulator }
}

pub fn copies_not_awaited(name: &str) -> Finder {
    // The copy and the read are both in wide.cuh.
    let words = ["reads", "shared memory", "the cp.async that lane", "has not been waited for"];
    let some = |case: &Case| case.seq_len > 0;
    assert_shown(name, wide(1, true), CoeffKind::NearOne, some, &words)
}

pub fn slot_taken_too_early(name: &str) -> Finder {
    // With two tiles in flight, the third tile is the first to reuse a slot.
    let words = ["copies", "shared memory", "the cp.async that lane", "has not been waited for"];
    let third = |case: &Case| case.seq_len > 2 * TILE;
    assert_shown(name, wide(2, true), CoeffKind::NearOne, third, &words)
}

pub fn one_place_for_totals(name: &str) -> Finder {
    let words = ["writes", "shared memory", "reads", "no barrier lies between"];
    let second = |case: &Case| case.seq_len > TILE;
    assert_shown(name, wide(0, true), CoeffKind::NearOne, second, &words)
}

/// Returns true if some row has a vector that is not aligned to 16 bytes, with rows split into
/// vectors from their first step on, or in reverse from their last.
fn has_odd_vector(case: &Case) -> bool {
    let later_rows = case.num_seqs > 1 || case.direction == Direction::Reverse;
    case.seq_len >= 4 && !case.seq_len.is_multiple_of(4) && later_rows
}

pub fn head_forgotten(name: &str) -> Finder {
    let words = ["16 bytes", "which is no multiple of 16"];
    assert_shown(name, wide(0, false), CoeffKind::NearOne, has_odd_vector, &words)
}

pub fn vector_not_aligned(name: &str) -> Finder {
    let words = ["reads 16 bytes", "which is no multiple of 16", &format!("kernels/broken/{name}")];
    assert_shown(name, rows(false), CoeffKind::NearOne, has_odd_vector, &words)
}

pub fn last_coefficient_twice(name: &str) -> Finder {
    let ends_within = |case: &Case| !case.seq_len.is_multiple_of(TILE);
    let words = ["d_initial", "instead of"];
    let finder = assert_shown(name, wide(0, true), CoeffKind::NearOne, ends_within, &words);
    // If all coefficients are one, repeating the last changes nothing.
    let (engine, domain) = per_sequence(name, wide(0, true));
    for (case, outcome) in judge(&engine, &domain, CoeffKind::One) {
        assert!(outcome.is_ok(), "{case}: {outcome:?}");
    }
    finder
}

pub fn lanes_of_other_rows(name: &str) -> Finder {
    // The emulator has nothing to report: every lane takes part, and may read from any other. A row
    // with a warp to itself has no neighbour.
    let neighbours = |case: &Case| case.num_seqs > 1 && case.seq_len > 0;
    let words = ["outputs(1, ", "instead of"];
    assert_shown(name, rows(true), CoeffKind::NearOne, neighbours, &words)
}
