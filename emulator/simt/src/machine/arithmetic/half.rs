//! `f16` and `bf16`, alone and in pairs, 32 lanes at a time.
//!
//! All of it is computed in f64, which holds products of halves exactly, and sums of halves rounded
//! to odd. So each result is rounded once; see `rounding::sum_to_odd`.

use super::approximate::approximate;
use super::convert::{float, float_bits};
use super::rounding::{clamped, extreme, ordered, sum_to_odd};
use crate::isa::{Arithmetic, Binary, Clamp, Compare, Round, Slot, Type, Unary};
use crate::machine::state::Registers;

/// The GPU's result for NaN, in both formats.
const NAN: u16 = 0x7fff;
const SIGN: u16 = 0x8000;

/// The format of the halves in a register.
#[derive(Clone, Copy)]
struct Half {
    /// Either F16 or Bf16.
    ty: Type,
    /// True if subnormal numbers are zeros.
    ftz: bool,
    /// True if the register holds two halves.
    pair: bool,
}

impl Half {
    fn of(ty: Type) -> Half {
        let (ty, ftz, pair) = match ty {
            Type::Bf16 => (Type::Bf16, false, false),
            Type::Bf16x2 => (Type::Bf16, false, true),
            Type::F16x2 => (Type::F16, false, true),
            Type::F16x2Ftz => (Type::F16, true, true),
            Type::F16Ftz => (Type::F16, true, false),
            _ => (Type::F16, false, false),
        };
        Half { ty, ftz, pair }
    }

    /// Returns the bits of the lower or the upper half of a register.
    fn part(self, word: u32, upper: bool) -> u16 {
        self.flush(if upper { word >> 16 } else { word } as u16)
    }

    fn flush(self, bits: u16) -> u16 {
        if self.ftz && bits & 0x7c00 == 0 { bits & SIGN } else { bits }
    }

    fn number(self, bits: u16) -> f64 {
        float(self.ty, bits.into())
    }

    /// Rounds a value, which is exact or rounded to odd, to nearest.
    fn round(self, value: f64, clamp: Clamp) -> u16 {
        let value = clamped(value, clamp);
        let bits = float_bits(self.ty, value, Round::Nearest) as u16;
        // As for f32, the result is a zero if it is subnormal when rounded to 11 bits with an
        // exponent of any size.
        const NORMAL: f64 = 1.0 / 16384.0;
        let is_tiny = self.ftz && value.abs() < NORMAL - NORMAL / 4096.0;
        if is_tiny { bits & SIGN } else { bits }
    }

    /// Sets a register, half by half.
    fn set<const N: usize>(
        self,
        r: &mut Registers,
        d: Slot,
        operands: [Slot; N],
        lanes: u32,
        value: impl Fn([u16; N]) -> u16,
    ) {
        let operands = operands.map(|slot| *r.words(slot));
        let part = |i: usize, upper: bool| {
            let value = value(std::array::from_fn(|k| self.part(operands[k][i], upper)));
            u32::from(self.flush(value))
        };
        r.set_words(d, lanes, |i| {
            let upper = if self.pair { part(i, true) } else { 0 };
            upper << 16 | part(i, false)
        });
    }
}

/// Returns the sum of two halves, or of two pairs of halves, each rounded to nearest.
pub(crate) fn sum(ty: Type, a: u32, b: u32) -> u32 {
    let half = Half::of(ty);
    let part = |upper| {
        let [a, b] = [a, b].map(|word| half.number(half.part(word, upper)));
        u32::from(half.round(sum_to_odd(a, b), Clamp::Not))
    };
    part(false) | if half.pair { part(true) << 16 } else { 0 }
}

pub(crate) fn arithmetic(
    r: &mut Registers,
    op: Arithmetic,
    ty: Type,
    clamp: Clamp,
    [d, a, b]: [Slot; 3],
    lanes: u32,
) {
    let half = Half::of(ty);
    half.set(r, d, [a, b], lanes, |operands| {
        let [a, b] = operands.map(|bits| half.number(bits));
        let value = match op {
            Arithmetic::Add => sum_to_odd(a, b),
            Arithmetic::Sub => sum_to_odd(a, -b),
            Arithmetic::Mul => a * b,
            // PTX has no division of halves.
            Arithmetic::Div => a / b,
        };
        half.round(value, clamp)
    });
}

pub(crate) fn fma(r: &mut Registers, ty: Type, clamp: Clamp, [d, a, b, c]: [Slot; 4], lanes: u32) {
    let half = Half::of(ty);
    half.set(r, d, [a, b, c], lanes, |operands| {
        let [a, b, c] = operands.map(|bits| half.number(bits));
        half.round(sum_to_odd(a * b, c), clamp)
    });
}

/// Executes `neg`, `abs`, `ex2` and `tanh`. NaN always has the same bits, as on an H200.
pub(crate) fn unary(r: &mut Registers, op: Unary, ty: Type, d: Slot, a: Slot, lanes: u32) {
    let half = Half::of(ty);
    half.set(r, d, [a], lanes, |[bits]| match op {
        Unary::Negate | Unary::Absolute if half.number(bits).is_nan() => NAN,
        Unary::Negate => bits ^ SIGN,
        Unary::Absolute => bits & !SIGN,
        Unary::Approximate { function, ftz } => {
            // The result of f32, rounded. It has not been compared with a GPU's bits.
            let value = approximate(function, ftz, half.number(bits) as f32);
            half.round(value.into(), Clamp::Not)
        }
        _ => bits,
    });
}

/// Executes `min` and `max`.
pub(crate) fn binary(r: &mut Registers, op: Binary, ty: Type, [d, a, b]: [Slot; 3], lanes: u32) {
    let half = Half::of(ty);
    half.set(r, d, [a, b], lanes, |operands| {
        let [a, b] = operands.map(|bits| (half.number(bits), bits));
        extreme(op, a, b, NAN)
    });
}

/// Returns for lower and upper halves the lanes in which they compare, and the lanes with a NaN.
pub(crate) fn compare(r: &Registers, op: Compare, ty: Type, a: Slot, b: Slot) -> [[u32; 2]; 2] {
    let half = Half::of(ty);
    let (a, b) = (*r.words(a), *r.words(b));
    [false, true].map(|upper| {
        let number = |word: u32| half.number(half.part(word, upper));
        ordered(op, |i| number(a[i]), |i| number(b[i]))
    })
}
