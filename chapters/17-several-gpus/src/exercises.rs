//! Solutions to the exercises that ask for code.

/// The transition of a stretch: it takes the state y to y * coeff + state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition {
    /// The factor of the state.
    pub coeff: f64,
    /// The term that is added.
    pub state: f64,
}

impl Transition {
    /// The identity.
    pub const NOTHING: Transition = Transition { coeff: 1.0, state: 0.0 };

    /// Combines this transition with the next one.
    pub fn then(self, next: Transition) -> Transition {
        Transition {
            coeff: self.coeff * next.coeff,
            state: self.state.mul_add(next.coeff, next.state),
        }
    }
}

/// Returns the number of bytes that each rank receives: if every rank sends two numbers of `bytes`
/// bytes per row to all others, and if each rank sends only states to the next one.
// ANCHOR: bytes
pub fn received(rows: usize, ranks: usize, bytes: usize) -> (usize, usize) {
    (2 * bytes * rows * (ranks - 1), bytes * rows)
}
// ANCHOR_END: bytes

/// Computes the states before each rank in rounds: in round k each rank sends the transition that
/// it knows to the rank 2^k further. Returns them with the number of rounds.
// ANCHOR: rounds
pub fn in_rounds(ranks: &[Transition], initial: f64) -> (Vec<f64>, usize) {
    // For each rank, the transition of as many ranks up to it as it knows of.
    let mut known = ranks.to_vec();
    let (mut reach, mut rounds) = (1, 0);
    while reach < ranks.len() {
        let before = known.clone();
        for rank in reach..ranks.len() {
            known[rank] = before[rank - reach].then(known[rank]);
        }
        reach *= 2;
        rounds += 1;
    }
    let upto = |rank: usize| if rank == 0 { Transition::NOTHING } else { known[rank - 1] };
    let state = |known: Transition| initial.mul_add(known.coeff, known.state);
    ((0..ranks.len()).map(|rank| state(upto(rank))).collect(), rounds)
}
// ANCHOR_END: rounds

/// Returns the number of steps, counted back from the last one, until the product of the
/// coefficients is zero in `f32`; `None` if it never is.
// ANCHOR: tail
pub fn tail(coeffs: &[f32]) -> Option<usize> {
    let mut product = 1.0_f32;
    let place = coeffs.iter().rev().position(|&c| {
        product *= c;
        product == 0.0
    });
    place.map(|place| place + 1)
}
// ANCHOR_END: tail

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_take_fewer_bytes_than_transitions() {
        assert_eq!(received(13_200, 4, 4), (316_800, 52_800));
        assert_eq!(received(1, 1, 4), (0, 4));
    }

    #[test]
    fn rounds_find_the_states_of_a_walk() {
        for count in [1, 2, 3, 4, 7, 8, 9, 100] {
            let ranks: Vec<_> = (0..count)
                .map(|rank| Transition { coeff: 0.5, state: f64::from(rank % 5) })
                .collect();
            let (states, rounds) = in_rounds(&ranks, 3.0);
            let mut state = 3.0;
            for (rank, does) in ranks.iter().enumerate() {
                assert!((states[rank] - state).abs() < 1e-12, "{rank} of {count}");
                state = does.coeff.mul_add(state, does.state);
            }
            assert_eq!(rounds, ranks.len().next_power_of_two().ilog2() as usize);
        }
    }

    #[test]
    fn a_tail_ends_at_a_product_of_zero() {
        assert_eq!(tail(&[1.0; 1000]), None);
        assert_eq!(tail(&[]), None);
        // The smallest number above zero is 2^-149; half of it is a tie, and rounds to zero.
        assert_eq!(tail(&[0.5; 1000]), Some(150));
        assert_eq!(tail(&[0.5, 0.0, 0.5]), Some(2));
        // 50 times the smallest number, times 0.99, rounds back to 50 times the smallest number.
        assert_eq!(tail(&[0.99; 30_000]), None);
    }
}
