//! `f64` rounded toward zero, down or up: by integers, since Rust has no such rounding.
//!
//! Kernels rarely use it, so the code is short rather than fast.

use crate::isa::Round;

/// A number, `size * 2^exponent`, with a size below 2^126.
#[derive(Clone, Copy)]
struct Parts {
    negative: bool,
    size: u128,
    exponent: i32,
}

/// The highest bit of a size after [`Parts::normal`]. A sum of two has one bit more.
const TOP: i32 = 125;
/// The exponent of the smallest number.
const SMALLEST: i32 = -1074;

impl Parts {
    fn of(value: f64) -> Parts {
        let bits = value.to_bits();
        let field = (bits >> 52 & 0x7ff) as i32;
        let fraction = u128::from(bits & ((1 << 52) - 1));
        let size = if field == 0 { fraction } else { fraction | 1 << 52 };
        Parts { negative: bits >> 63 == 1, size, exponent: field.max(1) - 1 + SMALLEST }
    }

    /// Returns the same number with the highest bit of its size at bit [`TOP`].
    fn normal(self) -> Parts {
        let shift = self.size.leading_zeros() as i32 - (127 - TOP);
        Parts { size: self.size << shift, exponent: self.exponent - shift, ..self }
    }

    /// Rounds the number. The last bit of the size may be sticky (1 for any bits that were
    /// dropped), as long as the size has more bits than an `f64`.
    fn round(self, round: Round) -> f64 {
        let Parts { negative, size, exponent } = self;
        let outward = match round {
            Round::Down => negative,
            Round::Up => !negative,
            Round::Zero | Round::Nearest => false,
        };
        let last = (exponent + 128 - size.leading_zeros() as i32 - 53).max(SMALLEST);
        let drop = last - exponent;
        let (kept, exact) = match drop {
            ..=0 => (size << -drop, true),
            1..128 => (size >> drop, size & ((1 << drop) - 1) == 0),
            _ => (0, size == 0),
        };
        let kept = kept as u64 + u64::from(outward && !exact);
        // The highest of the 53 bits adds itself to the field of the exponent.
        let bits = (((last - SMALLEST) as u64) << 52) + kept;
        let infinity = f64::INFINITY.to_bits();
        let bits = if bits < infinity { bits } else { infinity - u64::from(!outward) };
        f64::from_bits(bits | u64::from(negative) << 63)
    }
}

/// Returns `a * b + c`.
pub(crate) fn fma(a: f64, b: f64, c: f64, round: Round) -> f64 {
    if !(a.is_finite() && b.is_finite() && c.is_finite()) {
        return a.mul_add(b, c);
    }
    let (x, y) = (Parts::of(a), Parts::of(b));
    let product = Parts {
        negative: x.negative != y.negative,
        size: x.size * y.size,
        exponent: x.exponent + y.exponent,
    };
    sum(product, Parts::of(c), round)
}

fn sum(a: Parts, b: Parts, round: Round) -> f64 {
    let zero = |negative: bool| if negative { -0.0 } else { 0.0 };
    let opposite = a.negative != b.negative;
    match (a.size, b.size) {
        (0, 0) => return zero(if opposite { round == Round::Down } else { a.negative }),
        (0, _) => return b.round(round),
        (_, 0) => return a.round(round),
        _ => {}
    }
    let (a, b) = (a.normal(), b.normal());
    let (high, low) = if (a.exponent, a.size) >= (b.exponent, b.size) { (a, b) } else { (b, a) };
    let distance = high.exponent - low.exponent;
    // Bits that are shifted out leave a sticky 1. Both sizes end in zeros, so it is far below the
    // bits that are kept.
    let moved = match distance {
        0..128 => {
            let moved = low.size >> distance;
            moved | u128::from(moved << distance != low.size)
        }
        _ => 1,
    };
    let size = if opposite { high.size - moved } else { high.size + moved };
    if size == 0 { zero(round == Round::Down) } else { Parts { size, ..high }.round(round) }
}

pub(crate) fn product(a: f64, b: f64, round: Round) -> f64 {
    // To add a zero with the product's sign changes nothing.
    fma(a, b, 0.0_f64.copysign(a * b), round)
}

pub(crate) fn quotient(a: f64, b: f64, round: Round) -> f64 {
    if !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        return a / b;
    }
    let (x, y) = (Parts::of(a).normal(), Parts::of(b));
    let (quotient, rest) = (x.size / y.size, x.size % y.size);
    let size = quotient << 1 | u128::from(rest != 0);
    let exponent = x.exponent - y.exponent - 1;
    Parts { negative: x.negative != y.negative, size, exponent }.round(round)
}
