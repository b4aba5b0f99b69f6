//! The recurrence along one contiguous piece of a row, a vector at a time.
//!
//! A vector of `W` consecutive steps is scanned in `log2 W` rounds on pairs (output, product of
//! coefficients). In round `k` every lane takes in the lane `2^k` before it (Hillis and Steele,
//! 1986); lanes without one take in the neutral pair (0, 1). The carry from the steps before the
//! vector enters last, in one multiply-add per vector: that is the only chain from vector to
//! vector, and the rounds of the following vectors overlap with it.
//!
//! `REVERSE` is the direction of the walk: down the array, from its last element to its first.

use std::array::from_fn;
use std::{mem, slice};

use super::lanes::{Lanes, Pair};
use crate::Element;

/// The position of the coefficients among the inputs of either pass.
pub const COEFFS: usize = 1;

/// The arrays of a piece of a row, as elements (`A` = `T`) or as whole vectors (`[T; W]`).
pub struct Piece<'a, T, A, const I: usize, const O: usize> {
    pub inputs: [&'a [A]; I],
    /// For the backward pass: the state before the piece, in the direction of the recurrence.
    pub state: T,
    pub results: [&'a mut [A]; O],
    /// True if the gradient is wanted with respect to the logarithms of the coefficients.
    pub log_coeffs: bool,
}

/// Empty slices, to be replaced.
#[inline(always)]
pub fn empty<'a, A, const N: usize>() -> [&'a mut [A]; N] {
    from_fn(|_| Default::default())
}

/// The computation of a pass that reads `I` arrays and writes `O`.
pub trait Formula<const I: usize, const O: usize>: Send {
    /// True for the gradient. It walks against the recurrence, and its last input are the outputs,
    /// which it needs one step later than everything else.
    const IS_GRADIENT: bool;

    /// Computes the vector number `at` of a piece from the carry before it; returns the carry after
    /// it. `state` is the state before the vector.
    fn vector<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        lanes: L,
        vectors: &mut Piece<T, [T; W], I, O>,
        at: usize,
        state: T,
        carry: L::Vector,
    ) -> L::Vector;
}

/// Computes a piece of a row from the carry before it; returns the carry after it.
#[inline(always)]
pub fn scan<T, F, const W: usize, L, const REVERSE: bool, const I: usize, const O: usize>(
    lanes: L,
    piece: Piece<T, T, I, O>,
    carry: T,
) -> T
where
    T: Element,
    F: Formula<I, O>,
    L: Lanes<T, W>,
{
    let Piece { inputs, state, mut results, log_coeffs } = piece;
    let mut vectors = Piece { inputs: [&[][..]; I], state, results: empty(), log_coeffs };
    let mut tail = Piece { inputs: [&[][..]; I], state, results: empty(), log_coeffs };
    let mut full = usize::MAX;
    for (i, array) in inputs.iter().enumerate() {
        (vectors.inputs[i], tail.inputs[i]) = array.as_chunks::<W>();
        full = full.min(vectors.inputs[i].len());
    }
    for (i, array) in results.iter_mut().enumerate() {
        (vectors.results[i], tail.results[i]) = mem::take(array).as_chunks_mut::<W>();
        full = full.min(vectors.results[i].len());
    }
    let outputs = vectors.inputs[I - 1];
    // The state before the last vector of a walk up.
    let end = tail.inputs[I - 1].first().copied().unwrap_or(state);

    let mut carry = lanes.splat(carry);
    if REVERSE {
        if F::IS_GRADIENT && full > 0 {
            tail.state = outputs[full - 1][W - 1];
        }
        carry = scan_tail::<T, F, W, L, REVERSE, I, O>(lanes, &mut tail, carry);
    }
    let mut places = 0..full;
    while let Some(at) = if REVERSE { places.next_back() } else { places.next() } {
        let state = match REVERSE {
            _ if !F::IS_GRADIENT => state,
            true if at > 0 => outputs[at - 1][W - 1],
            true => state,
            false if at + 1 < full => outputs[at + 1][0],
            false => end,
        };
        carry = F::vector::<T, W, L, REVERSE>(lanes, &mut vectors, at, state, carry);
    }
    if !REVERSE {
        carry = scan_tail::<T, F, W, L, REVERSE, I, O>(lanes, &mut tail, carry);
    }
    lane(lanes, carry)
}

/// Computes the steps that do not fill a vector: the rest of it is filled with neutral ones.
#[inline(always)]
fn scan_tail<T, F, const W: usize, L, const REVERSE: bool, const I: usize, const O: usize>(
    lanes: L,
    tail: &mut Piece<T, T, I, O>,
    carry: L::Vector,
) -> L::Vector
where
    T: Element,
    F: Formula<I, O>,
    L: Lanes<T, W>,
{
    let Piece { state, log_coeffs, .. } = *tail;
    let len = tail.inputs[0].len();
    if len == 0 {
        return carry;
    }
    // Walking up, the recurrence comes down: the state before the tail is past its end.
    let neutral = [T::zero(), T::one(), state];
    let (mut inputs, mut results) = ([[T::zero(); W]; I], [[T::zero(); W]; O]);
    let mut vector = Piece { inputs: [&[][..]; I], state, results: empty(), log_coeffs };
    for (i, padded) in inputs.iter_mut().enumerate() {
        *padded = pad(tail.inputs[i], neutral[i]);
        vector.inputs[i] = slice::from_ref(padded);
    }
    for (to, from) in vector.results.iter_mut().zip(&mut results) {
        *to = slice::from_mut(from);
    }
    let carry = F::vector::<T, W, L, REVERSE>(lanes, &mut vector, 0, state, carry);
    for (to, from) in tail.results.iter_mut().zip(&results) {
        to.copy_from_slice(&from[..to.len()]);
    }
    // The state after the neutral steps was combined in another order, and must have the bits of
    // the last output. In a walk down the array the neutral steps come first.
    if F::IS_GRADIENT || REVERSE { carry } else { lanes.splat(results[0][len - 1]) }
}

/// The formula of the forward pass.
pub struct Forward;

impl Formula<2, 1> for Forward {
    const IS_GRADIENT: bool = false;

    #[inline(always)]
    fn vector<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        lanes: L,
        vectors: &mut Piece<T, [T; W], 2, 1>,
        at: usize,
        _state: T,
        carry: L::Vector,
    ) -> L::Vector {
        let Piece { inputs: [inputs, coeffs], results: [outputs], .. } = vectors;
        let (inputs, coeffs) = (lanes.load(&inputs[at]), lanes.load(&coeffs[at]));
        let local = local_scan::<T, W, L, REVERSE>(lanes, (inputs, coeffs));
        lanes.store(lanes.mul_add(carry, local.1, local.0), &mut outputs[at]);
        let (output, coeff) = last_step::<T, W, L, REVERSE>(lanes, local);
        lanes.mul_add(carry, coeff, output)
    }
}

/// The formula of the backward pass.
///
/// With `δ_l` the gradient of the state after step `l`, which is also the gradient of the step's
/// input, `g_l = c̄_l δ_l` is the gradient of the state before it: the carry. It obeys a recurrence
/// with the coefficients unshifted, `g_l = c̄_l g_{l+1} + c̄_l d_l`, from which
/// `δ_l = d_l + g_{l+1}`; past the first step it is the gradient of the initial state. `REVERSE` is
/// the direction of this walk, opposite to the direction of the recurrence itself.
pub struct Backward;

impl Formula<3, 2> for Backward {
    const IS_GRADIENT: bool = true;

    #[inline(always)]
    fn vector<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        lanes: L,
        vectors: &mut Piece<T, [T; W], 3, 2>,
        at: usize,
        state: T,
        carry: L::Vector,
    ) -> L::Vector {
        let Piece { inputs: [d_outputs, coeffs, outputs], results, log_coeffs, .. } = vectors;
        let [to_d_inputs, to_d_coeffs] = results;
        let (d_outputs, outputs) = (lanes.load(&d_outputs[at]), lanes.load(&outputs[at]));
        let coeffs = lanes.conj(lanes.load(&coeffs[at]));
        let local = local_scan::<T, W, L, REVERSE>(lanes, (lanes.mul(coeffs, d_outputs), coeffs));
        let flows = lanes.mul_add(carry, local.1, local.0);
        let (outputs, state) = (lanes.conj(outputs), lanes.conj(lanes.splat(state)));
        // The outputs come from the other side: the recurrence is walked against.
        let before =
            if REVERSE { lanes.up::<1>(outputs, state) } else { lanes.down::<1>(outputs, state) };
        let d_inputs = lanes.add(d_outputs, previous::<T, W, L, REVERSE>(lanes, flows, carry));
        let d_coeffs = lanes.mul(d_inputs, before);
        lanes.store(d_inputs, &mut to_d_inputs[at]);
        let d_coeffs = if *log_coeffs { lanes.mul(d_coeffs, coeffs) } else { d_coeffs };
        lanes.store(d_coeffs, &mut to_d_coeffs[at]);
        let (output, coeff) = last_step::<T, W, L, REVERSE>(lanes, local);
        lanes.mul_add(carry, coeff, output)
    }
}

/// Scans the steps of one vector, from a state of zero.
#[inline(always)]
fn local_scan<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
    lanes: L,
    mut pair: Pair<T, W, L>,
) -> Pair<T, W, L> {
    pair = round::<T, W, L, REVERSE, 1>(lanes, pair);
    if W > 2 {
        pair = round::<T, W, L, REVERSE, 2>(lanes, pair);
    }
    if W > 4 {
        pair = round::<T, W, L, REVERSE, 4>(lanes, pair);
    }
    if W > 8 {
        pair = round::<T, W, L, REVERSE, 8>(lanes, pair);
    }
    pair
}

/// One round: every lane takes in the lane that is `BY` before it in the walk.
#[inline(always)]
fn round<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool, const BY: usize>(
    lanes: L,
    (output, coeff): Pair<T, W, L>,
) -> Pair<T, W, L> {
    let (no_output, no_coeff) = (lanes.splat(T::zero()), lanes.splat(T::one()));
    let before = if REVERSE {
        (lanes.down::<BY>(output, no_output), lanes.down::<BY>(coeff, no_coeff))
    } else {
        (lanes.up::<BY>(output, no_output), lanes.up::<BY>(coeff, no_coeff))
    };
    (lanes.mul_add(before.0, coeff, output), lanes.mul(before.1, coeff))
}

/// Moves every lane to the lane after it in the walk; the first lane gets the carry.
#[inline(always)]
fn previous<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
    lanes: L,
    vector: L::Vector,
    carry: L::Vector,
) -> L::Vector {
    if REVERSE { lanes.down::<1>(vector, carry) } else { lanes.up::<1>(vector, carry) }
}

/// The pair of the walk's last lane, in every lane.
#[inline(always)]
fn last_step<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
    lanes: L,
    (output, coeff): Pair<T, W, L>,
) -> Pair<T, W, L> {
    if REVERSE {
        (lanes.first(output), lanes.first(coeff))
    } else {
        (lanes.last(output), lanes.last(coeff))
    }
}

/// The number that all lanes hold.
#[inline(always)]
fn lane<T: Element, const W: usize, L: Lanes<T, W>>(lanes: L, vector: L::Vector) -> T {
    let mut all = [T::zero(); W];
    lanes.store(vector, &mut all);
    all[0]
}

/// The elements of a slice shorter than `W`, followed by `fill`.
#[inline(always)]
fn pad<T: Element, const W: usize>(slice: &[T], fill: T) -> [T; W] {
    let mut all = [fill; W];
    all[..slice.len()].copy_from_slice(slice);
    all
}
