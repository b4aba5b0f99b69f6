//! The three levels of the kernel on the host: the same operations in the same order, which for
//! real numbers give the same bits.

use ch02_two_threads::Transition;
use linrec::Element;

use crate::layout::Share;

/// The number of lanes in a warp.
pub const LANES: usize = 32;

/// Combines one stretch and the next. This is chapter 2's operator, but with one rounding for a
/// product and a sum.
// ANCHOR: compose
pub fn compose<T: Element>(first: Transition<T>, then: Transition<T>) -> Transition<T> {
    Transition {
        coeff: first.coeff * then.coeff,
        state: first.state.mul_add(then.coeff, then.state),
    }
}
// ANCHOR_END: compose

/// Level 1, in a thread: afterwards `states[i]` is the state after the steps up to `i` if they
/// start from zero, and `coeffs[i]` is the factor of any other initial state.
pub fn scan_thread<T: Element>(coeffs: &mut [T], states: &mut [T]) {
    for i in 1..states.len() {
        states[i] = states[i - 1].mul_add(coeffs[i], states[i]);
        coeffs[i] = coeffs[i - 1] * coeffs[i];
    }
}

/// Level 2, across the lanes of a warp: turns the transition of each lane's steps into the
/// transition from the warp's first step to the lane's last. The lanes act at the same time, so all
/// of them read before one writes.
// ANCHOR: scan_warp
pub fn scan_warp<T: Element>(lanes: &mut [Transition<T>]) {
    let mut reach = 1;
    while reach < LANES {
        let before = lanes.to_vec();
        for lane in reach..lanes.len() {
            lanes[lane] = compose(before[lane - reach], before[lane]);
        }
        reach *= 2;
    }
}
// ANCHOR_END: scan_warp

/// Level 3, across the warps of a block: computes the state before each warp from the warps'
/// transitions and the state before the first. The last entry is the state after all of them.
pub fn scan_block<T: Element>(totals: &[Transition<T>], mut carry: T) -> Vec<T> {
    let mut states = vec![carry];
    for total in totals {
        carry = carry.mul_add(total.coeff, total.state);
        states.push(carry);
    }
    states
}

/// Performs all levels: computes the outputs of one tile. Every thread has a part of at most
/// `max_elems` steps, in whole warps. `initial` is the state before the tile.
///
/// # Panics
///
/// Panics if the parts do not follow each other and cover the tile, or if one is larger than
/// `max_elems`.
pub fn scan_tile<T: Element>(
    inputs: &[T],
    coeffs: &[T],
    initial: T,
    shares: &[Share],
    max_elems: usize,
) -> Vec<T> {
    // The registers of every thread. A missing step has coefficient 1 and input 0.
    let registers = |array: &[T], otherwise: T| -> Vec<Vec<T>> {
        let of_thread = |share: &Share| {
            assert!(share.count <= max_elems, "{share:?} does not fit");
            let mut registers = array[share.steps()].to_vec();
            registers.resize(max_elems, otherwise);
            registers
        };
        shares.iter().map(of_thread).collect()
    };
    let (mut c, mut x) = (registers(coeffs, T::one()), registers(inputs, T::zero()));

    let mut threads: Vec<Transition<T>> = Vec::new();
    for (c, x) in c.iter_mut().zip(&mut x) {
        scan_thread(c, x);
        threads.push(Transition { coeff: c[max_elems - 1], state: x[max_elems - 1] });
    }
    threads.chunks_mut(LANES).for_each(scan_warp);
    let totals: Vec<_> = threads.chunks(LANES).map(|warp| warp[warp.len() - 1]).collect();
    let before_warps = scan_block(&totals, initial);

    let mut outputs = Vec::new();
    for (thread, share) in shares.iter().enumerate() {
        let mut state = before_warps[thread / LANES];
        if thread % LANES > 0 {
            let before = threads[thread - 1];
            state = state.mul_add(before.coeff, before.state);
        }
        assert_eq!(share.begin, outputs.len(), "the parts do not follow each other");
        let mine = (0..share.count).map(|i| state.mul_add(c[thread][i], x[thread][i]));
        outputs.extend(mine);
    }
    // The last output must equal the state after the tile in every bit.
    if let (Some(output), Some(&carry)) = (outputs.last_mut(), before_warps.last()) {
        *output = carry;
    }
    outputs
}

#[cfg(test)]
mod tests {
    use super::{LANES, Transition, scan_block, scan_tile, scan_warp};
    use crate::layout::shares;

    #[test]
    fn a_lane_reaches_back_to_the_first() {
        let mut lanes = vec![Transition { coeff: 0.5_f32, state: 1.0 }; LANES];
        scan_warp(&mut lanes);
        for (lane, transition) in lanes.iter().enumerate() {
            assert_eq!(transition.coeff, 0.5_f32.powi(lane as i32 + 1));
        }
    }

    #[test]
    fn without_warps_the_state_is_the_initial_one() {
        assert_eq!(scan_block::<f32>(&[], 7.0), [7.0]);
    }

    #[test]
    fn whole_numbers_give_the_loops_outputs() {
        for tile_len in [0, 1, 2, 31, 32, 33, 77, 128, 129, 250] {
            let inputs: Vec<f64> = (0..tile_len).map(|l| f64::from(l % 7) - 3.0).collect();
            let coeffs: Vec<f64> =
                (0..tile_len).map(|l| [1.0, -1.0, 0.0][l as usize % 3]).collect();
            let mut state = 5.0;
            let step = |(x, c): (&f64, &f64)| {
                state = state * c + x;
                state
            };
            let expected: Vec<f64> = inputs.iter().zip(&coeffs).map(step).collect();
            let shares = shares(inputs.len(), 64);
            assert_eq!(scan_tile(&inputs, &coeffs, 5.0, &shares, 4), expected, "{tile_len}");
        }
    }
}
