//! Rounds the result of two operations once: sums in `f64` to odd, and from there to `f32`.

use std::ops::{BitAnd, BitOr};

use super::integer::{holds, mask};
use crate::isa::{Binary, Clamp, Compare, Round, Slot, Type};
use crate::machine::state::{Registers, Words};

/// Returns `a + b` rounded to odd: if the sum is not exact, the neighbour whose last bit is 1.
///
/// Rounding that once more to a shorter format gives what rounding the exact sum gives (Boldo and
/// Melquiond, 2008), because f64 has more than twice the bits of f32 plus two. The library's
/// `f32::mul_add` is a function call where the processor's own instruction is not compiled in.
/// These twelve operations or so run for several lanes at once.
#[inline(always)]
pub(crate) fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // Knuth's two-sum: a + b = sum + error, exactly.
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    to_odd(sum, error)
}

/// Returns `a + b` rounded to odd, for a sum that is then rounded in the direction `round`. If
/// numbers of different sign cancel, the sum is -0 when rounded down.
#[inline(always)]
pub(crate) fn sum_toward(a: f64, b: f64, round: Round) -> f64 {
    let sum = sum_to_odd(a, b);
    let is_negative_zero =
        round == Round::Down && sum == 0.0 && a.is_sign_negative() != b.is_sign_negative();
    if is_negative_zero { -0.0 } else { sum }
}

/// Returns `value`, moved by one place toward `value + error` if `error` is not 0 and the last bit
/// of `value` is 0.
#[inline(always)]
pub(crate) fn to_odd(value: f64, error: f64) -> f64 {
    let bits = value.to_bits();
    let inexact = error != 0.0 && value.is_finite();
    let away = (error > 0.0) == (value > 0.0);
    let moved = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if inexact && bits & 1 == 0 { moved } else { bits })
}

/// Rounds an `f64`, which is exact or rounded to odd, to an `f32`.
#[inline]
pub(crate) fn narrow(wide: f64, round: Round) -> f32 {
    let nearest = wide as f32;
    let error = f64::from(nearest) - wide;
    let too_high = error > 0.0;
    let too_low = error < 0.0;
    match round {
        Round::Nearest => nearest,
        Round::Down if too_high => nearest.next_down(),
        Round::Up if too_low => nearest.next_up(),
        Round::Zero if wide > 0.0 && too_high => nearest.next_down(),
        Round::Zero if wide < 0.0 && too_low => nearest.next_up(),
        _ => nearest,
    }
}

/// Returns the bits of an f32, or a zero of its sign if it is subnormal.
#[inline(always)]
pub(crate) fn flush(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 { bits & 1 << 31 } else { bits }
}

/// Returns the bits of an operand of type F32 or F32Ftz.
#[inline(always)]
pub(crate) fn single(r: &Registers, ty: Type, slot: Slot) -> Words {
    let mut bits = *r.words(slot);
    if ty == Type::F32Ftz {
        flush_all(&mut bits);
    }
    bits
}

/// Flushes all lanes. Not inlined, since vectors without branches would flush F32 as well.
#[inline(never)]
fn flush_all(bits: &mut Words) {
    *bits = bits.map(flush);
}

/// Returns the bits of a result, or a zero of its sign if the result is subnormal when rounded to
/// 24 bits with an exponent of any size. PTX leaves this open, and an H200 does it so. `exact` is
/// exact or rounded to odd. A result that this rounds up to the smallest normal number stays. A
/// result that only the coarser steps of subnormal numbers round up becomes a zero.
#[inline(always)]
pub(crate) fn flush_rounded(bits: u32, exact: f64, round: Round) -> u32 {
    const NORMAL: f64 = f32::MIN_POSITIVE as f64;
    const STEP: f64 = NORMAL * f32::EPSILON as f64 / 2.0; // from the number of 24 bits before
    let is_away = match round {
        Round::Up => exact > 0.0,
        Round::Down => exact < 0.0,
        Round::Nearest | Round::Zero => false,
    };
    let is_tiny = match round {
        Round::Nearest => exact.abs() < NORMAL - STEP / 2.0,
        _ if is_away => exact.abs() <= NORMAL - STEP,
        _ => exact.abs() < NORMAL,
    };
    if is_tiny { bits & 1 << 31 } else { flush(bits) }
}

/// Returns the bits of the smaller or the larger of two numbers, each given with its bits. If one
/// of them is NaN, returns the other's bits, unless `op` passes NaN on.
#[inline(always)]
pub(crate) fn extreme<F: PartialOrd, B: BitOr<Output = B> + BitAnd<Output = B>>(
    op: Binary,
    (a, x): (F, B),
    (b, y): (F, B),
    nan: B,
) -> B {
    let min = matches!(op, Binary::Min | Binary::MinNan);
    let passes_on = matches!(op, Binary::MinNan | Binary::MaxNan);
    let is_nan = |number: &F| number.partial_cmp(number).is_none();
    match (is_nan(&a), is_nan(&b)) {
        (true, true) => nan,
        (true, _) | (_, true) if passes_on => nan,
        (true, false) => y,
        (false, true) => x,
        // Equal numbers differ at most in the sign of a zero.
        _ if a == b && min => x | y,
        _ if a == b => x & y,
        _ if (a < b) == min => x,
        _ => y,
    }
}

/// Returns the lanes in which numbers compare, and the lanes in which one of them is NaN.
#[inline(always)]
pub(crate) fn ordered<F: PartialOrd>(
    compare: Compare,
    a: impl Fn(usize) -> F,
    b: impl Fn(usize) -> F,
) -> [u32; 2] {
    let unordered = mask(|i| a(i).partial_cmp(&b(i)).is_none());
    [holds(compare, a, b), unordered]
}

/// Clamps a number. Rounding the result later gives the same as clamping the rounded number.
pub(crate) fn clamped(value: f64, clamp: Clamp) -> f64 {
    match clamp {
        Clamp::Saturate if value > 0.0 => value.min(1.0),
        Clamp::Saturate => 0.0,
        // NaN stays NaN, and -0 becomes +0.
        Clamp::Relu if value <= 0.0 => 0.0,
        Clamp::Relu | Clamp::Not => value,
    }
}
