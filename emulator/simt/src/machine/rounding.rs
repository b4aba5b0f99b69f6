//! Rounding once what two operations make: sums in `f64` rounded to odd, and from there to `f32`.

use crate::program::Round;

/// `a + b`, rounded to odd: if the sum is not exact, the neighbour whose last bit is 1.
///
/// Rounding that once more to a shorter format gives what rounding the exact sum would have
/// (Boldo and Melquiond, 2008), since f64 has more than twice the bits of f32 and two. Unlike the
/// library's `f32::mul_add`, which is a call where the processor's own is not compiled in, this
/// is some twelve operations that the compiler can do for several lanes at once.
#[inline(always)]
pub(super) fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // Knuth's two-sum: a + b = sum + error, exactly.
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    to_odd(sum, error)
}

/// `a + b`, rounded to odd, for a sum that is then rounded in the direction `round`: what numbers
/// of different sign leave of each other, if nothing, is -0 when rounded down.
#[inline(always)]
pub(super) fn sum_toward(a: f64, b: f64, round: Round) -> f64 {
    let sum = sum_to_odd(a, b);
    let is_negative_zero =
        round == Round::Down && sum == 0.0 && a.is_sign_negative() != b.is_sign_negative();
    if is_negative_zero { -0.0 } else { sum }
}

/// `value`, moved by one place toward `value + error` if `error` is not 0 and the last bit of
/// `value` is 0.
#[inline(always)]
pub(super) fn to_odd(value: f64, error: f64) -> f64 {
    let bits = value.to_bits();
    let inexact = error != 0.0 && value.is_finite();
    let away = (error > 0.0) == (value > 0.0);
    let moved = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if inexact && bits & 1 == 0 { moved } else { bits })
}

/// An `f64` that stands for an exact value (or is rounded to odd) as an `f32`.
#[inline]
pub(super) fn narrow(wide: f64, round: Round) -> f32 {
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
