//! The recurrence along one contiguous piece of a row, a vector at a time.
//!
//! A vector of `W` consecutive steps is scanned in `log2 W` rounds on pairs (output, product of
//! coefficients): in round `k` every lane takes in the lane `2^k` before it (Hillis and Steele,
//! 1986), and lanes without one take in the neutral pair (0, 1). What comes from the steps before
//! the vector, the carry, enters last, in one multiply-add per vector: that is the only chain from
//! vector to vector, and the rounds of the following vectors overlap with it.
//!
//! `REVERSE` is the direction of the walk: down the array, from its last element to its first.

use super::lanes::{Lanes, Pair};
use crate::Element;

/// What the recurrence reads and writes along a piece of a row (`A` = `[T]`) or in one vector
/// (`[T; W]`).
pub struct Forward<'a, A: ?Sized> {
    pub inputs: &'a A,
    pub coeffs: &'a A,
    pub outputs: &'a mut A,
}

/// Computes the outputs of a piece of a row from the state before it; returns the state after it.
#[inline(always)]
pub fn forward<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
    lanes: L,
    piece: Forward<[T]>,
    carry: T,
) -> T {
    let (inputs, inputs_tail) = piece.inputs.as_chunks::<W>();
    let (coeffs, coeffs_tail) = piece.coeffs.as_chunks::<W>();
    let (outputs, outputs_tail) = piece.outputs.as_chunks_mut::<W>();
    let full = inputs.len().min(coeffs.len()).min(outputs.len());

    let mut carry = lanes.splat(carry);
    let tail = Forward { inputs: inputs_tail, coeffs: coeffs_tail, outputs: outputs_tail };
    if REVERSE {
        carry = forward_tail::<T, W, L, REVERSE>(lanes, tail, carry);
        for i in (0..full).rev() {
            let vector =
                Forward { inputs: &inputs[i], coeffs: &coeffs[i], outputs: &mut outputs[i] };
            carry = forward_vector::<T, W, L, REVERSE>(lanes, vector, carry);
        }
    } else {
        for i in 0..full {
            let vector =
                Forward { inputs: &inputs[i], coeffs: &coeffs[i], outputs: &mut outputs[i] };
            carry = forward_vector::<T, W, L, REVERSE>(lanes, vector, carry);
        }
        carry = forward_tail::<T, W, L, REVERSE>(lanes, tail, carry);
    }
    lane(lanes, carry)
}

#[inline(always)]
fn forward_vector<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
    lanes: L,
    vector: Forward<[T; W]>,
    carry: L::Vector,
) -> L::Vector {
    let (inputs, coeffs) = (lanes.load(vector.inputs), lanes.load(vector.coeffs));
    let local = local_scan::<T, W, L, REVERSE>(lanes, (inputs, coeffs));
    lanes.store(lanes.mul_add(carry, local.1, local.0), vector.outputs);
    let (output, coeff) = last_step::<T, W, L, REVERSE>(lanes, local);
    lanes.mul_add(carry, coeff, output)
}

/// The steps that do not fill a vector: the rest of it is filled with neutral ones.
#[inline(always)]
fn forward_tail<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
    lanes: L,
    tail: Forward<[T]>,
    carry: L::Vector,
) -> L::Vector {
    if tail.inputs.is_empty() {
        return carry;
    }
    let mut outputs = [T::zero(); W];
    let vector = Forward {
        inputs: &pad(tail.inputs, T::zero()),
        coeffs: &pad(tail.coeffs, T::one()),
        outputs: &mut outputs,
    };
    let carry = forward_vector::<T, W, L, REVERSE>(lanes, vector, carry);
    let len = tail.outputs.len();
    tail.outputs.copy_from_slice(&outputs[..len]);
    // The state after the neutral steps was combined in another order. What comes after the last
    // step has that step's bits. In a walk down the array the neutral steps come first.
    if REVERSE { carry } else { lanes.splat(outputs[len - 1]) }
}

/// What the gradient reads and writes along a piece of a row (`A` = `[T]`) or in one vector
/// (`[T; W]`).
pub struct Backward<'a, T, A: ?Sized> {
    pub d_outputs: &'a A,
    pub coeffs: &'a A,
    pub outputs: &'a A,
    /// The state before the piece, in the direction of the recurrence.
    pub state: T,
    pub d_inputs: &'a mut A,
    pub d_coeffs: &'a mut A,
    /// Whether the gradient is asked for with respect to the coefficients' logarithms.
    pub log: bool,
}

/// Computes the gradients of a piece of a row in one pass, from the carry `g` of the steps after it
/// (in the direction of the recurrence); returns that of the steps before it.
///
/// With `δ_l` the gradient of the state after step `l`, which is also that of the step's input,
/// `g_l = c̄_l δ_l` is the gradient of the state before it. It obeys a recurrence with the
/// coefficients unshifted, `g_l = c̄_l g_{l+1} + c̄_l d_l`, from which `δ_l = d_l + g_{l+1}`; past
/// the first step it is the gradient of the initial state. `REVERSE` is the direction of this walk,
/// opposite to that of the recurrence itself.
#[inline(always)]
pub fn backward<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
    lanes: L,
    piece: Backward<T, [T]>,
    carry: T,
) -> T {
    let (state, log) = (piece.state, piece.log);
    let (d_outputs, d_outputs_tail) = piece.d_outputs.as_chunks::<W>();
    let (coeffs, coeffs_tail) = piece.coeffs.as_chunks::<W>();
    let (outputs, outputs_tail) = piece.outputs.as_chunks::<W>();
    let (d_inputs, d_inputs_tail) = piece.d_inputs.as_chunks_mut::<W>();
    let (d_coeffs, d_coeffs_tail) = piece.d_coeffs.as_chunks_mut::<W>();
    let full = d_outputs.len().min(coeffs.len()).min(outputs.len());
    let full = full.min(d_inputs.len()).min(d_coeffs.len());

    let mut carry = lanes.splat(carry);
    let tail = Backward {
        d_outputs: d_outputs_tail,
        coeffs: coeffs_tail,
        outputs: outputs_tail,
        state: if REVERSE && full > 0 { outputs[full - 1][W - 1] } else { state },
        d_inputs: d_inputs_tail,
        d_coeffs: d_coeffs_tail,
        log,
    };
    if REVERSE {
        carry = backward_tail::<T, W, L, REVERSE>(lanes, tail, carry);
        for i in (0..full).rev() {
            let vector = Backward {
                d_outputs: &d_outputs[i],
                coeffs: &coeffs[i],
                outputs: &outputs[i],
                state: if i > 0 { outputs[i - 1][W - 1] } else { state },
                d_inputs: &mut d_inputs[i],
                d_coeffs: &mut d_coeffs[i],
                log,
            };
            carry = backward_vector::<T, W, L, REVERSE>(lanes, vector, carry);
        }
    } else {
        let end = outputs_tail.first().copied().unwrap_or(state);
        for i in 0..full {
            let vector = Backward {
                d_outputs: &d_outputs[i],
                coeffs: &coeffs[i],
                outputs: &outputs[i],
                state: if i + 1 < full { outputs[i + 1][0] } else { end },
                d_inputs: &mut d_inputs[i],
                d_coeffs: &mut d_coeffs[i],
                log,
            };
            carry = backward_vector::<T, W, L, REVERSE>(lanes, vector, carry);
        }
        carry = backward_tail::<T, W, L, REVERSE>(lanes, tail, carry);
    }
    lane(lanes, carry)
}

#[inline(always)]
fn backward_vector<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
    lanes: L,
    vector: Backward<T, [T; W]>,
    carry: L::Vector,
) -> L::Vector {
    let d_outputs = lanes.load(vector.d_outputs);
    let coeffs = lanes.conj(lanes.load(vector.coeffs));
    let local = local_scan::<T, W, L, REVERSE>(lanes, (lanes.mul(coeffs, d_outputs), coeffs));
    let flows = lanes.mul_add(carry, local.1, local.0);
    let outputs = lanes.conj(lanes.load(vector.outputs));
    let state = lanes.conj(lanes.splat(vector.state));
    let before =
        if REVERSE { lanes.up::<1>(outputs, state) } else { lanes.down::<1>(outputs, state) };
    let d_inputs = lanes.add(d_outputs, previous::<T, W, L, REVERSE>(lanes, flows, carry));
    let d_coeffs = lanes.mul(d_inputs, before);
    lanes.store(d_inputs, vector.d_inputs);
    lanes.store(if vector.log { lanes.mul(d_coeffs, coeffs) } else { d_coeffs }, vector.d_coeffs);
    let (output, coeff) = last_step::<T, W, L, REVERSE>(lanes, local);
    lanes.mul_add(carry, coeff, output)
}

#[inline(always)]
fn backward_tail<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
    lanes: L,
    tail: Backward<T, [T]>,
    carry: L::Vector,
) -> L::Vector {
    if tail.d_outputs.is_empty() {
        return carry;
    }
    let (mut d_inputs, mut d_coeffs) = ([T::zero(); W], [T::zero(); W]);
    let vector = Backward {
        d_outputs: &pad(tail.d_outputs, T::zero()),
        coeffs: &pad(tail.coeffs, T::one()),
        // Walking up, the recurrence comes down: the state before the tail lies past its end.
        outputs: &pad(tail.outputs, tail.state),
        state: tail.state,
        d_inputs: &mut d_inputs,
        d_coeffs: &mut d_coeffs,
        log: tail.log,
    };
    let carry = backward_vector::<T, W, L, REVERSE>(lanes, vector, carry);
    tail.d_inputs.copy_from_slice(&d_inputs[..tail.d_inputs.len()]);
    tail.d_coeffs.copy_from_slice(&d_coeffs[..tail.d_coeffs.len()]);
    carry
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

/// One round: every lane takes in the lane that lies `BY` before it in the walk.
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

/// In every lane what the lane before it in the walk holds, and in the first one the carry.
#[inline(always)]
fn previous<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
    lanes: L,
    vector: L::Vector,
    carry: L::Vector,
) -> L::Vector {
    if REVERSE { lanes.down::<1>(vector, carry) } else { lanes.up::<1>(vector, carry) }
}

/// What the last lane of the walk holds, in every lane.
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
