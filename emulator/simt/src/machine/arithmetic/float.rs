//! `f32` and `f64`, 32 lanes at a time, rounded as PTX defines; numbers of 16 bits are in `half`.
//!
//! The NaN of an arithmetic result always has the same bits, as on the GPU and unlike on CPUs, so
//! that every host computes the same bits. `fma` of `f32` is computed in `f64` and rounded to odd
//! (see `rounding`), because the library's is a function call where the processor's own instruction
//! is not compiled in. Results of `.ftz` types are flushed at the end, by the exact result. Tested
//! by `arithmetic.rs` in `tests/suite`, against the integers of `exact.rs`.

use super::approximate::quotient as factors_of_quotient;
use super::rounding::{
    extreme, flush, flush_rounded, narrow, single, sum_to_odd, sum_toward, to_odd,
};
use crate::isa::{Arithmetic, Binary, Clamp, Round, Slot, Tf32Round, Type, Unary};
use crate::machine::arithmetic::{directed, half};
use crate::machine::state::{Registers, Words};

/// The GPU's result for NaN in single-precision arithmetic.
const NAN32: u32 = 0x7fff_ffff;
const NAN64: u64 = 0x7ff8_0000_0000_0000;

#[inline(always)]
pub(crate) fn bits32(value: f32) -> u32 {
    if value.is_nan() { NAN32 } else { value.to_bits() }
}

#[inline(always)]
pub(crate) fn bits64(value: f64) -> u64 {
    if value.is_nan() { NAN64 } else { value.to_bits() }
}

#[inline(always)]
fn saturate(value: f32, sat: bool) -> f32 {
    // -0 and NaN become +0.
    match sat {
        true if value > 0.0 => value.min(1.0),
        true => 0.0,
        false => value,
    }
}

/// Flushes a result of F32 if the type is F32Ftz.
#[inline(always)]
fn flush_result(
    r: &mut Registers,
    ty: Type,
    (d, round): (Slot, Round),
    lanes: u32,
    exact: impl Fn(usize) -> f64,
) {
    if ty == Type::F32Ftz {
        let result = *r.words(d);
        let flushed = |i: usize| match f32::from_bits(result[i]).is_nan() {
            true => result[i],
            false => flush_rounded(result[i], exact(i), round),
        };
        r.set_words(d, lanes, flushed);
    }
}

pub(crate) fn arithmetic(
    r: &mut Registers,
    op: Arithmetic,
    ty: Type,
    round: Round,
    clamp: Clamp,
    [d, a, b]: [Slot; 3],
    lanes: u32,
) {
    match ty {
        Type::F64 => arithmetic64(r, op, round, [d, a, b], lanes),
        Type::F32 if round == Round::Nearest => {
            let sat = clamp == Clamp::Saturate;
            match op {
                Arithmetic::Add => pairs(r, [d, a, b], lanes, |a, b| saturate(a + b, sat)),
                Arithmetic::Sub => pairs(r, [d, a, b], lanes, |a, b| saturate(a - b, sat)),
                Arithmetic::Mul => pairs(r, [d, a, b], lanes, |a, b| saturate(a * b, sat)),
                Arithmetic::Div => pairs(r, [d, a, b], lanes, |a, b| saturate(a / b, sat)),
            }
        }
        Type::F32 | Type::F32Ftz => {
            let (a, b) = (single(r, ty, a), single(r, ty, b));
            arithmetic32(r, op, round, clamp == Clamp::Saturate, d, (&a, &b), lanes);
            flush_result(r, ty, (d, round), lanes, |i| {
                let [a, b] = [a[i], b[i]].map(|bits| f64::from(f32::from_bits(bits)));
                match op {
                    // For normal operands, a sum that is so small is exact.
                    Arithmetic::Add => a + b,
                    Arithmetic::Sub => a - b,
                    Arithmetic::Mul => a * b,
                    Arithmetic::Div => quotient_to_odd(a, b),
                }
            });
        }
        _ => half::arithmetic(r, op, ty, clamp, [d, a, b], lanes),
    }
}

fn arithmetic64(r: &mut Registers, op: Arithmetic, round: Round, [d, a, b]: [Slot; 3], lanes: u32) {
    let (a, b) = (*r.longs(a), *r.longs(b));
    let (a, b) = (|i: usize| f64::from_bits(a[i]), |i: usize| f64::from_bits(b[i]));
    if round != Round::Nearest {
        return r.set_longs(d, lanes, |i| {
            bits64(match op {
                Arithmetic::Add => directed::fma(a(i), 1.0, b(i), round),
                Arithmetic::Sub => directed::fma(a(i), 1.0, -b(i), round),
                Arithmetic::Mul => directed::product(a(i), b(i), round),
                Arithmetic::Div => directed::quotient(a(i), b(i), round),
            })
        });
    }
    match op {
        Arithmetic::Add => r.set_longs(d, lanes, |i| bits64(a(i) + b(i))),
        Arithmetic::Sub => r.set_longs(d, lanes, |i| bits64(a(i) - b(i))),
        Arithmetic::Mul => r.set_longs(d, lanes, |i| bits64(a(i) * b(i))),
        Arithmetic::Div => r.set_longs(d, lanes, |i| bits64(a(i) / b(i))),
    }
}

/// Computes F32 without `.ftz`, rounded to nearest, as most kernels do.
#[inline(always)]
fn pairs(r: &mut Registers, [d, a, b]: [Slot; 3], lanes: u32, value: impl Fn(f32, f32) -> f32) {
    r.words_of(d, lanes, [a, b], |_, operands| {
        let [a, b] = operands.map(f32::from_bits);
        bits32(value(a, b))
    });
}

fn arithmetic32(
    r: &mut Registers,
    op: Arithmetic,
    round: Round,
    sat: bool,
    d: Slot,
    (a, b): (&Words, &Words),
    lanes: u32,
) {
    let (a, b) = (|i: usize| f32::from_bits(a[i]), |i: usize| f32::from_bits(b[i]));
    if round == Round::Nearest {
        return match op {
            Arithmetic::Add => r.set_words(d, lanes, |i| bits32(saturate(a(i) + b(i), sat))),
            Arithmetic::Sub => r.set_words(d, lanes, |i| bits32(saturate(a(i) - b(i), sat))),
            Arithmetic::Mul => r.set_words(d, lanes, |i| bits32(saturate(a(i) * b(i), sat))),
            Arithmetic::Div => r.set_words(d, lanes, |i| bits32(saturate(a(i) / b(i), sat))),
        };
    }
    let (a, b) = (|i| f64::from(a(i)), |i| f64::from(b(i)));
    let result = |wide: f64| bits32(saturate(narrow(wide, round), sat));
    match op {
        Arithmetic::Add => r.set_words(d, lanes, |i| result(sum_toward(a(i), b(i), round))),
        Arithmetic::Sub => r.set_words(d, lanes, |i| result(sum_toward(a(i), -b(i), round))),
        Arithmetic::Mul => r.set_words(d, lanes, |i| result(a(i) * b(i))),
        Arithmetic::Div => r.set_words(d, lanes, |i| result(quotient_to_odd(a(i), b(i)))),
    }
}

/// Returns `a / b` of two f32, rounded to odd.
fn quotient_to_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    let rest = (-quotient).mul_add(b, a);
    // A quotient by infinity is 0, exactly.
    let rest = if b.is_infinite() { 0.0 } else { rest };
    to_odd(quotient, rest * b.signum())
}

pub(crate) fn fma(
    r: &mut Registers,
    ty: Type,
    round: Round,
    clamp: Clamp,
    [d, a, b, c]: [Slot; 4],
    lanes: u32,
) {
    if ty == Type::F64 {
        let (a, b, c) = (*r.longs(a), *r.longs(b), *r.longs(c));
        let operands = |i: usize| [a[i], b[i], c[i]].map(f64::from_bits);
        if round != Round::Nearest {
            return r.set_longs(d, lanes, |i| {
                let [a, b, c] = operands(i);
                bits64(directed::fma(a, b, c, round))
            });
        }
        return r.set_longs(d, lanes, |i| {
            let [a, b, c] = operands(i);
            bits64(a.mul_add(b, c))
        });
    }
    if !matches!(ty, Type::F32 | Type::F32Ftz) {
        return half::fma(r, ty, clamp, [d, a, b, c], lanes);
    }
    let sat = clamp == Clamp::Saturate;
    // Where rounding twice gives the same as rounding once, this is all.
    if (ty, round) == (Type::F32, Round::Nearest) && fma_rounded_twice(r, sat, [d, a, b, c], lanes)
    {
        return;
    }
    let (a, b, c) = (single(r, ty, a), single(r, ty, b), single(r, ty, c));
    // The product of two f32 fits into an f64.
    let product = |i: usize| f64::from(f32::from_bits(a[i])) * f64::from(f32::from_bits(b[i]));
    let summand = |i: usize| f64::from(f32::from_bits(c[i]));
    match round {
        Round::Nearest => r.set_words(d, lanes, |i| {
            bits32(saturate(sum_to_odd(product(i), summand(i)) as f32, sat))
        }),
        _ => r.set_words(d, lanes, |i| {
            let exact = sum_toward(product(i), summand(i), round);
            bits32(saturate(narrow(exact, round), sat))
        }),
    }
    flush_result(r, ty, (d, round), lanes, |i| sum_to_odd(product(i), summand(i)));
}

/// Computes `a * b + c` of f32 by a sum in f64, if its rounding is harmless in every lane. It may
/// do harm if the sum is then in the middle between two f32, or below the smallest normal f32.
/// Hardly any sum is, so one test for all lanes saves [`sum_to_odd`] in each. Returns false,
/// without effect, if the test fails.
fn fma_rounded_twice(r: &mut Registers, sat: bool, [d, a, b, c]: [Slot; 4], lanes: u32) -> bool {
    const NORMAL: i32 = ((f32::MIN_POSITIVE as f64).to_bits() >> 32) as i32;
    let (a, b, c) = (r.words(a), r.words(b), r.words(c));
    let number = |bits: u32| f64::from(f32::from_bits(bits));
    let (mut result, mut doubt) = ([0; 32], 0);
    for i in 0..32 {
        let sum = number(a[i]) * number(b[i]) + number(c[i]);
        // In halves, because the vectors of many processors compare integers of at most 32 bits.
        let (low, high) = (sum.to_bits() as u32, (sum.to_bits() >> 32) as i32 & i32::MAX);
        // A sum of 0 is exact, and any other sum has a bit in its upper half.
        let is_subnormal = (high > 0) & (high < NORMAL);
        doubt |= u32::from((low << 3 == 1 << 31) | is_subnormal);
        result[i] = bits32(saturate(sum as f32, sat));
    }
    if doubt != 0 {
        return false;
    }
    r.set_words(d, lanes, |i| result[i]);
    true
}

pub(crate) fn unary(r: &mut Registers, op: Unary, ty: Type, d: Slot, a: Slot, lanes: u32) {
    if ty.is_half() || ty.is_pair() {
        return half::unary(r, op, ty, d, a, lanes);
    }
    if ty == Type::F64 {
        let bits = *r.longs(a);
        let a = |i: usize| f64::from_bits(bits[i]);
        return match op {
            // A NaN only becomes quiet.
            Unary::Negate | Unary::Absolute
                if bits.iter().any(|&bits| f64::from_bits(bits).is_nan()) =>
            {
                let sign = |bits: u64| {
                    if op == Unary::Negate { bits ^ 1 << 63 } else { bits & !(1 << 63) }
                };
                r.set_longs(d, lanes, |i| {
                    if a(i).is_nan() { bits[i] | 1 << 51 } else { sign(bits[i]) }
                });
            }
            Unary::Negate => r.set_longs(d, lanes, |i| bits[i] ^ 1 << 63),
            Unary::Absolute => r.set_longs(d, lanes, |i| bits[i] & !(1 << 63)),
            Unary::Sqrt => r.set_longs(d, lanes, |i| bits64(a(i).sqrt())),
            Unary::Reciprocal => r.set_longs(d, lanes, |i| bits64(a(i).recip())),
            Unary::Approximate { function, .. } => {
                use super::approximate::approximate64;
                r.set_longs(d, lanes, |i| bits64(approximate64(function, a(i))));
            }
            _ => r.set_longs(d, lanes, |i| bits[i]),
        };
    }
    let bits = single(r, ty, a);
    let a = |i: usize| f32::from_bits(bits[i]);
    match op {
        Unary::Negate => r.set_words(d, lanes, |i| bits32(-a(i))),
        Unary::Absolute => r.set_words(d, lanes, |i| bits32(a(i).abs())),
        Unary::Sqrt => r.set_words(d, lanes, |i| bits32(a(i).sqrt())),
        Unary::Reciprocal => r.set_words(d, lanes, |i| bits32(a(i).recip())),
        Unary::Approximate { function, ftz } => {
            use super::approximate::approximate;
            r.set_words(d, lanes, |i| bits32(approximate(function, ftz, a(i))));
        }
        Unary::Tf32 { round, relu } => r.set_words(d, lanes, |i| tf32(bits[i], round, relu)),
        _ => r.set_words(d, lanes, |i| bits[i]),
    }
    // None of these operations rounds a result up to the smallest normal number.
    if ty == Type::F32Ftz {
        let result = *r.words(d);
        r.set_words(d, lanes, |i| flush(result[i]));
    }
}

/// Returns the bits of an `f32`, rounded to the 10 bits of fraction of `tf32`. NaN becomes what an
/// H100 makes of it. For `rna`, which NVIDIA's compiler builds from integer instructions, that is
/// the upper bits of the NaN, which may be the bits of an infinity.
fn tf32(bits: u32, round: Tf32Round, relu: bool) -> u32 {
    if f32::from_bits(bits).is_nan() {
        return !0x1fff & if round == Tf32Round::Away { bits } else { NAN32 };
    }
    let more = match round {
        Tf32Round::Away => 0x1000,
        Tf32Round::Even => 0xfff + (bits >> 13 & 1),
        Tf32Round::Zero => 0,
    };
    // A carry out of the fraction goes to the exponent, up to infinity.
    let rounded = (bits + more) & !0x1fff;
    if relu && rounded >> 31 == 1 { 0 } else { rounded }
}

/// Executes `min` and `max`, and approximate quotients.
pub(crate) fn binary(r: &mut Registers, op: Binary, ty: Type, [d, a, b]: [Slot; 3], lanes: u32) {
    if ty.is_half() || ty.is_pair() {
        return half::binary(r, op, ty, [d, a, b], lanes);
    }
    if ty == Type::F64 {
        let (x, y) = (*r.longs(a), *r.longs(b));
        let number = |bits: u64| (f64::from_bits(bits), bits);
        return r.set_longs(d, lanes, |i| extreme(op, number(x[i]), number(y[i]), NAN64));
    }
    if matches!(op, Binary::Quotient | Binary::QuotientFull) {
        return quotient(r, op, ty, [d, a, b], lanes);
    }
    let (x, y) = (single(r, ty, a), single(r, ty, b));
    let number = |bits: u32| (f32::from_bits(bits), bits);
    r.set_words(d, lanes, |i| extreme(op, number(x[i]), number(y[i]), NAN32));
}

/// Executes `div.approx` and `div.full`.
fn quotient(r: &mut Registers, op: Binary, ty: Type, [d, a, b]: [Slot; 3], lanes: u32) {
    let (a, b) = (single(r, ty, a), single(r, ty, b));
    let factors = |i: usize| {
        let [a, b] = [a[i], b[i]].map(f32::from_bits);
        factors_of_quotient(op == Binary::QuotientFull, ty == Type::F32Ftz, a, b)
    };
    r.set_words(d, lanes, |i| {
        let (a, reciprocal) = factors(i);
        bits32(a * reciprocal)
    });
    flush_result(r, ty, (d, Round::Nearest), lanes, |i| {
        let (a, reciprocal) = factors(i);
        f64::from(a) * f64::from(reciprocal)
    });
}
