//! Integer instructions with three operands, or with the carry flag.

use super::integer::{binary, mask};
use super::simd::{simd_word, video_word};
use crate::isa::{Binary, Carry, Factors, Permute, Slot, Ternary, Type};
use crate::machine::state::Registers;

pub(crate) fn ternary(r: &mut Registers, op: Ternary, ty: Type, slots: [Slot; 4], lanes: u32) {
    let signed = ty.is_signed();
    match op {
        Ternary::MadLow => multiply_add(r, Binary::MulLow, ty, slots, lanes),
        Ternary::MadHigh => multiply_add(r, Binary::MulHigh, ty, slots, lanes),
        Ternary::AbsoluteDifference => {
            // The larger operand minus the smaller, plus the summand. All are read first, since the
            // destination may be one of them.
            let [d, operands @ ..] = slots;
            let [x, y, c] = operands.map(|slot| r.lanes(slot, ty.is_wide()));
            let bits = 8 * ty.bytes();
            let value = |v: u64| {
                let low = v << (64 - bits);
                match signed {
                    true => i128::from(low as i64 >> (64 - bits)),
                    false => (low >> (64 - bits)).into(),
                }
            };
            let sum = |i: usize| c[i].wrapping_add(value(x[i]).abs_diff(value(y[i])) as u64);
            match ty.bytes() {
                8 => r.set_longs(d, lanes, sum),
                4 => r.set_words(d, lanes, |i| sum(i) as u32),
                _ => r.set_words(d, lanes, |i| sum(i) as u32 & 0xffff),
            }
        }
        Ternary::FunnelLeft { wrap } => words(r, slots, lanes, |low, high, shift| {
            let shift = if wrap { shift & 31 } else { shift.min(32) };
            ((pair(low, high) << shift) >> 32) as u32
        }),
        Ternary::FunnelRight { wrap } => words(r, slots, lanes, |low, high, shift| {
            let shift = if wrap { shift & 31 } else { shift.min(32) };
            (pair(low, high) >> shift) as u32
        }),
        Ternary::Permute(mode) => words(r, slots, lanes, |low, high, pick| {
            (0..4).fold(0, |all, i| all | byte(mode, pair(low, high), pick, i) << (8 * i))
        }),
        Ternary::Mad24 { high, sat } => words(r, slots, lanes, |a, b, c| {
            let low = |v: u32| {
                if signed { i64::from((v << 8) as i32 >> 8) } else { (v & 0xff_ffff).into() }
            };
            let shift = if high { 16 } else { 0 };
            let half = ((low(a) * low(b)) >> shift) as u32;
            if sat { (half as i32).saturating_add(c as i32) as u32 } else { half.wrapping_add(c) }
        }),
        Ternary::DotProduct { with, a_signed, b_signed } => {
            words(r, slots, lanes, |a, b, c| dot(with, [a_signed, b_signed], a, b, c));
        }
        Ternary::Extend { wrap } => words(r, slots, lanes, |a, b, _| {
            let bits = if wrap { b & 31 } else { b.min(32) };
            match 32 - bits {
                32 => 0,
                above if signed => ((a << above) as i32 >> above) as u32,
                above => a << above >> above,
            }
        }),
        Ternary::Mask { wrap } => words(r, slots, lanes, |a, b, _| {
            let [position, count] = [a, b].map(|v| if wrap { v & 31 } else { v.min(32) });
            let below = |bits: u32| (1_u64 << bits.min(32)) - 1;
            (below(position + count) & !below(position)) as u32
        }),
        Ternary::Simd(simd) => words(r, slots, lanes, |a, b, c| simd_word(simd, a, b, c)),
        Ternary::Video(video) => {
            words(r, slots, lanes, |a, b, c| video_word(video, a, b, c));
        }
        Ternary::FindNth => words(r, slots, lanes, |a, b, c| nth(a, b, c as i32)),
    }
}

/// Computes half of a product, and adds the summand.
fn multiply_add(r: &mut Registers, half: Binary, ty: Type, [d, a, b, c]: [Slot; 4], lanes: u32) {
    // The summand is read first, since the destination may be the same register.
    if ty.is_wide() {
        let c = *r.longs(c);
        binary(r, half, ty, [d, a, b], lanes);
        let product = *r.longs(d);
        r.set_longs(d, lanes, |i| product[i].wrapping_add(c[i]));
    } else {
        let c = *r.words(c);
        binary(r, half, ty, [d, a, b], lanes);
        let product = *r.words(d);
        let mask = if ty.bytes() == 2 { 0xffff } else { u32::MAX };
        r.set_words(d, lanes, |i| product[i].wrapping_add(c[i]) & mask);
    }
}

#[inline(always)]
fn words(r: &mut Registers, [d, x @ ..]: [Slot; 4], lanes: u32, of: impl Fn(u32, u32, u32) -> u32) {
    let [a, b, c] = x.map(|slot| *r.words(slot));
    r.set_words(d, lanes, |i| of(a[i], b[i], c[i]));
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Returns byte number `i` of the result of `prmt`.
fn byte(mode: Permute, both: u64, pick: u32, i: u32) -> u32 {
    let byte = |number: u32| (both >> (8 * (number & 7))) as u8;
    let first = pick & 3;
    u32::from(match mode {
        Permute::Selectors => {
            let selector = pick >> (4 * i) & 0xf;
            let value = byte(selector);
            // With the selector's high bit, the byte's sign fills the byte.
            if selector & 8 != 0 { (value as i8 >> 7) as u8 } else { value }
        }
        Permute::Forward => byte(first + i),
        Permute::Backward => byte(first.wrapping_sub(i)),
        Permute::Byte => byte(first),
        Permute::Half => byte(2 * (first & 1) + (i & 1)),
        Permute::ClampLeft => byte(first.max(i)),
        Permute::ClampRight => byte(first.min(i)),
    })
}

/// Returns `c` plus the products of bytes of `b`, each with a byte or a half of `a`.
fn dot(with: Factors, [a_signed, b_signed]: [bool; 2], a: u32, b: u32, c: u32) -> u32 {
    let field = |word: u32, i: u32, bits: u32, signed: bool| {
        let high = word << (32 - bits - bits * i);
        if signed { (high as i32 >> (32 - bits)) as u32 } else { high >> (32 - bits) }
    };
    let (count, bits, first) = match with {
        Factors::Bytes => (4, 8, 0),
        Factors::LowHalves => (2, 16, 0),
        Factors::HighHalves => (2, 16, 2),
    };
    (0..count).fold(c, |sum, i| {
        let product = field(a, i, bits, a_signed).wrapping_mul(field(b, first + i, 8, b_signed));
        sum.wrapping_add(product)
    })
}

/// Returns the position of the set bit of `mask` that is number `offset` from `base`: `base` itself
/// for 0, the first at or above it for 1, the first at or below it for -1. Returns all ones if
/// there is none.
fn nth(mask: u32, base: u32, offset: i32) -> u32 {
    let is_set = |position: &u32| mask.checked_shr(*position).unwrap_or(0) & 1 == 1;
    let before = offset.unsigned_abs().saturating_sub(1) as usize;
    let found = match offset {
        0 => Some(base).filter(is_set),
        1.. => (base..32).filter(is_set).nth(before),
        // PTX leaves open what a base of 32 or more means; here there is no such bit.
        _ if base >= 32 => None,
        _ => (0..=base).rev().filter(is_set).nth(before),
    };
    found.unwrap_or(u32::MAX)
}

pub(crate) fn carry(
    r: &mut Registers,
    op: Carry,
    ty: Type,
    [takes, gives]: [Option<Slot>; 2],
    [d, a, b, c]: [Slot; 4],
    lanes: u32,
) {
    let bits = 8 * ty.bytes();
    let [a, b, c] = [a, b, c].map(|slot| r.lanes(slot, ty.is_wide()));
    // On an H200, a difference sets the flag where it does not borrow. PTX leaves open what `subc`
    // makes of a sum's flag.
    let is_difference = op == Carry::Sub;
    let none = if is_difference { u32::MAX } else { 0 };
    let flag = takes.map_or(none, |flag| r.predicate(flag));
    // The bits above the type's width are the carry or the borrow.
    let total: [u128; 32] = std::array::from_fn(|i| {
        let flag = u128::from(flag >> i & 1);
        match op {
            Carry::Add => u128::from(a[i]) + u128::from(b[i]) + flag,
            Carry::Sub => u128::from(a[i]).wrapping_sub(u128::from(b[i]) + 1 - flag),
            Carry::MadLow | Carry::MadHigh => {
                let shift = if op == Carry::MadHigh { bits } else { 0 };
                let half = product(ty, a[i], b[i]) >> shift;
                (half & ((1 << bits) - 1)) + u128::from(c[i]) + flag
            }
        }
    });
    if ty.is_wide() {
        r.set_longs(d, lanes, |i| total[i] as u64);
    } else {
        r.set_words(d, lanes, |i| total[i] as u32);
    }
    if let Some(gives) = gives {
        r.set_predicate(gives, lanes, mask(|i| (total[i] >> bits & 1 == 1) != is_difference));
    }
}

/// Returns all bits of a product, twice as wide as the type, and above them the sign.
fn product(ty: Type, a: u64, b: u64) -> u128 {
    let extend = |value: u64| match ty {
        Type::S32 => i128::from(value as i32),
        Type::S64 => i128::from(value as i64),
        _ => i128::from(value),
    };
    (extend(a) as u128).wrapping_mul(extend(b) as u128)
}
