//! The recurrence along one contiguous piece of a row, a vector at a time.
//!
//! A vector of `W` consecutive steps is scanned in `log2 W` rounds on pairs (output, product of
//! coefficients). In round `k` every lane takes in the lane `2^k` before it (Hillis and Steele,
//! 1986); lanes without one take in the neutral pair (0, 1). The carry from the steps before the
//! vector enters last, in one multiply-add per vector: that is the only chain from vector to
//! vector, and the rounds of the following vectors overlap with it.
//!
//! The roof of instructions: forward, 16 lanes take 9 moves between lanes, 9 multiplies and
//! multiply-adds, and a mask. Where all of these share two ports (512-bit vectors on Intel), that
//! is at least 9.5 cycles per 16 steps. Rows side by side, one per lane, would need no rounds, but
//! the transpositions are as many moves, and slower where rows begin a multiple of 4 KiB apart.
//! Loading the vectors of the first round from one element earlier, in place of two moves, is
//! slower as well: each of these loads crosses a cache line.
//!
//! With one lane, a vector is one step: the steps are taken in order.
//!
//! `REVERSE` is the direction of the walk: down the array, from its last element to its first.

use super::lanes::{Lanes, Pair};
use crate::Element;

/// The position of the coefficients among the inputs of either pass.
pub const COEFFS: usize = 1;

/// A piece of a row, as elements (`A` = `[T]`) or as one vector (`[T; W]`).
///
/// The arrays are fields and not an array of arrays: loops over arrays are unrolled too late for
/// the compiler to keep them in registers.
pub struct Piece<'a, T, A: ?Sized> {
    /// The inputs, or the gradient with respect to the outputs.
    pub inputs: &'a A,
    pub coeffs: &'a A,
    /// For the backward pass.
    pub outputs: &'a A,
    /// For the backward pass: the state before the piece, in the direction of the recurrence.
    pub state: T,
    /// The outputs, or the gradient with respect to the inputs.
    pub results: &'a mut A,
    /// For the backward pass.
    pub d_coeffs: &'a mut A,
    /// True if the gradient is wanted with respect to the logarithms of the coefficients.
    pub log_coeffs: bool,
}

/// The computation of a pass that reads `I` arrays and writes `O`.
pub trait Formula<const I: usize, const O: usize>: Send {
    /// True for the gradient. It walks against the recurrence, and its last input are the outputs,
    /// which it needs one step later than everything else.
    const IS_GRADIENT: bool;

    /// Computes a vector from the carry before it; returns the carry after it.
    fn vector<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        lanes: L,
        vector: Piece<T, [T; W]>,
        carry: L::Vector,
    ) -> L::Vector;
}

/// Computes a piece of a row from the carry before it; returns the carry after it.
#[inline(always)]
pub fn scan<T, F, const W: usize, L, const REVERSE: bool, const I: usize, const O: usize>(
    lanes: L,
    piece: Piece<T, [T]>,
    carry: T,
) -> T
where
    T: Element,
    F: Formula<I, O>,
    L: Lanes<T, W>,
{
    let (state, log_coeffs) = (piece.state, piece.log_coeffs);
    let (inputs, inputs_tail) = piece.inputs.as_chunks::<W>();
    let (coeffs, coeffs_tail) = piece.coeffs.as_chunks::<W>();
    let (outputs, outputs_tail) = piece.outputs.as_chunks::<W>();
    let (results, results_tail) = piece.results.as_chunks_mut::<W>();
    let (d_coeffs, d_coeffs_tail) = piece.d_coeffs.as_chunks_mut::<W>();
    let mut full = inputs.len().min(coeffs.len()).min(results.len());
    if F::IS_GRADIENT {
        full = full.min(outputs.len()).min(d_coeffs.len());
    }
    // The state before the last vector of a walk up.
    let end = outputs_tail.first().copied().unwrap_or(state);
    let mut tail = Piece {
        inputs: inputs_tail,
        coeffs: coeffs_tail,
        outputs: outputs_tail,
        state: if F::IS_GRADIENT && REVERSE && full > 0 { outputs[full - 1][W - 1] } else { state },
        results: results_tail,
        d_coeffs: d_coeffs_tail,
        log_coeffs,
    };
    let mut carry = lanes.splat(carry);
    if REVERSE {
        carry = scan_tail::<T, F, W, L, REVERSE, I, O>(lanes, &mut tail, carry);
    }
    // Forward, this is neither read nor written.
    let mut unused = [T::zero(); W];
    // One loop without a closure: a closure that is called twice is not inlined.
    let mut places = 0..full;
    while let Some(i) = if REVERSE { places.next_back() } else { places.next() } {
        let state = match REVERSE {
            _ if !F::IS_GRADIENT => state,
            true if i > 0 => outputs[i - 1][W - 1],
            true => state,
            false if i + 1 < full => outputs[i + 1][0],
            false => end,
        };
        let vector = Piece {
            inputs: &inputs[i],
            coeffs: &coeffs[i],
            outputs: if F::IS_GRADIENT { &outputs[i] } else { &inputs[i] },
            state,
            results: &mut results[i],
            d_coeffs: if F::IS_GRADIENT { &mut d_coeffs[i] } else { &mut unused },
            log_coeffs,
        };
        carry = F::vector::<T, W, L, REVERSE>(lanes, vector, carry);
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
    tail: &mut Piece<T, [T]>,
    carry: L::Vector,
) -> L::Vector
where
    T: Element,
    F: Formula<I, O>,
    L: Lanes<T, W>,
{
    let len = tail.inputs.len();
    if len == 0 {
        return carry;
    }
    let (mut results, mut d_coeffs) = ([T::zero(); W], [T::zero(); W]);
    let vector = Piece {
        inputs: &pad(tail.inputs, T::zero()),
        coeffs: &pad(tail.coeffs, T::one()),
        // Walking up, the recurrence comes down: the state before the tail is past its end.
        outputs: &pad(tail.outputs, tail.state),
        state: tail.state,
        results: &mut results,
        d_coeffs: &mut d_coeffs,
        log_coeffs: tail.log_coeffs,
    };
    let carry = F::vector::<T, W, L, REVERSE>(lanes, vector, carry);
    tail.results.copy_from_slice(&results[..len]);
    if F::IS_GRADIENT {
        tail.d_coeffs.copy_from_slice(&d_coeffs[..len]);
    }
    // The state after the neutral steps was combined in another order, and must have the bits of
    // the last output. In a walk down the array the neutral steps come first.
    if F::IS_GRADIENT || REVERSE { carry } else { lanes.splat(results[len - 1]) }
}

/// The formula of the forward pass.
pub struct Forward;

impl Formula<2, 1> for Forward {
    const IS_GRADIENT: bool = false;

    #[inline(always)]
    fn vector<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
        lanes: L,
        vector: Piece<T, [T; W]>,
        carry: L::Vector,
    ) -> L::Vector {
        let (inputs, coeffs) = (lanes.load(vector.inputs), lanes.load(vector.coeffs));
        let local = local_scan::<T, W, L, REVERSE>(lanes, (inputs, coeffs));
        let outputs = lanes.mul_add(carry, local.1, local.0);
        lanes.store(outputs, vector.results);
        carry_after::<T, W, L, REVERSE>(lanes, carry, local, outputs)
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
        vector: Piece<T, [T; W]>,
        carry: L::Vector,
    ) -> L::Vector {
        let d_outputs = lanes.load(vector.inputs);
        let coeffs = lanes.conj(lanes.load(vector.coeffs));
        let local = local_scan::<T, W, L, REVERSE>(lanes, (lanes.mul(coeffs, d_outputs), coeffs));
        let flows = lanes.mul_add(carry, local.1, local.0);
        let outputs = lanes.conj(lanes.load(vector.outputs));
        let state = lanes.conj(lanes.splat(vector.state));
        // The outputs come from the other side: the recurrence is walked against.
        let before =
            if REVERSE { lanes.up::<1>(outputs, state) } else { lanes.down::<1>(outputs, state) };
        let d_inputs = lanes.add(d_outputs, previous::<T, W, L, REVERSE>(lanes, flows, carry));
        // Step by step, the flow follows from the gradient and not the other way round.
        let flows = if W == 1 { lanes.mul(coeffs, d_inputs) } else { flows };
        let d_coeffs = lanes.mul(d_inputs, before);
        lanes.store(d_inputs, vector.results);
        let d_coeffs = if vector.log_coeffs { lanes.mul(d_coeffs, coeffs) } else { d_coeffs };
        lanes.store(d_coeffs, vector.d_coeffs);
        carry_after::<T, W, L, REVERSE>(lanes, carry, local, flows)
    }
}

/// Scans the steps of one vector, from a state of zero.
#[inline(always)]
fn local_scan<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
    lanes: L,
    mut pair: Pair<T, W, L>,
) -> Pair<T, W, L> {
    if W > 1 {
        pair = round::<T, W, L, REVERSE, 1>(lanes, pair);
    }
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

/// Returns the carry after a vector, from the carry before it, its local scan and its results.
#[inline(always)]
fn carry_after<T: Element, const W: usize, L: Lanes<T, W>, const REVERSE: bool>(
    lanes: L,
    carry: L::Vector,
    (output, coeff): Pair<T, W, L>,
    results: L::Vector,
) -> L::Vector {
    if W == 1 {
        return results;
    }
    let last = |vector| if REVERSE { lanes.first(vector) } else { lanes.last(vector) };
    if W >= 16 {
        // The moves between lanes take longer than the chain of carries, so here is one fewer.
        last(results)
    } else {
        // A shorter chain: one multiply-add per vector.
        lanes.mul_add(carry, last(coeff), last(output))
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
