//! `cvt`: conversions between any two types, lane by lane except for the most frequent ones.
//!
//! A value passes through a wide type, `i128` for integers and `f64` for floats, which holds every
//! value of the narrower types exactly. It is rounded and clamped once, when it becomes the bits of
//! the destination's type. Conversions between integers of 32 and 64 bits have loops of their own,
//! because kernels compute addresses with them. Tested by `convert.rs` in `tests/suite`, and below.

use super::rounding::{clamped, flush, flush_rounded, narrow, to_odd};
use crate::isa::{Clamp, Round, Slot, Type, half_as_f64, power};
use crate::machine::state::Registers;

/// The types and modifiers of a `cvt` instruction.
#[derive(Clone, Copy)]
pub(crate) struct Conversion {
    pub(crate) to: Type,
    pub(crate) from: Type,
    pub(crate) round: Round,
    pub(crate) integral: bool,
    pub(crate) clamp: Clamp,
}

pub(crate) fn convert(r: &mut Registers, conversion: Conversion, d: Slot, a: Slot, lanes: u32) {
    let Conversion { to, from, clamp, .. } = conversion;
    let sat = clamp == Clamp::Saturate;
    match (to, from) {
        // Without saturation, kernels compute addresses with these conversions.
        (Type::U64 | Type::S64, Type::U32) if !sat => {
            let a = *r.words(a);
            r.set_longs(d, lanes, |i| a[i].into());
        }
        (Type::U64 | Type::S64, Type::S32) if !sat => {
            let a = *r.words(a);
            r.set_longs(d, lanes, |i| a[i] as i32 as u64);
        }
        (Type::U32 | Type::S32, Type::U64 | Type::S64) if !sat => {
            let a = *r.longs(a);
            r.set_words(d, lanes, |i| a[i] as u32);
        }
        _ => {
            let a = r.lanes(a, from.is_wide());
            match to.is_wide() {
                true => r.set_longs(d, lanes, |i| one(conversion, a[i])),
                false => r.set_words(d, lanes, |i| one(conversion, a[i]) as u32),
            }
        }
    }
}

/// Converts two F32 values to halves, the second value to the lower half.
#[inline(always)]
pub(crate) fn convert_pair(
    r: &mut Registers,
    (to, round, clamp): (Type, Round, Clamp),
    [d, a, b]: [Slot; 3],
    active: u32,
) {
    let (high, low) = (*r.words(a), *r.words(b));
    let half = |bits: u32| {
        let value = clamped(f32::from_bits(bits).into(), clamp);
        float_bits(to, value, round) as u32
    };
    r.set_words(d, active, |i| half(high[i]) << 16 | half(low[i]));
}

/// Converts one value, from bits to bits.
fn one(conversion: Conversion, bits: u64) -> u64 {
    let Conversion { to, from, round, integral, clamp } = conversion;
    if !from.is_float() {
        let value = integer(from, bits);
        return if to.is_float() {
            float_bits(to, clamped(from_integer(to, value, round), clamp), round)
        } else if clamp == Clamp::Saturate {
            let (low, high) = range(to);
            extend(to, value.clamp(low, high) as u64)
        } else {
            extend(to, value as u64)
        };
    }
    let value = float(from, bits);
    if !to.is_float() {
        if value.is_nan() {
            // NaN becomes the highest bit alone if either type has 64 bits, or else zero.
            let is_wide = to.is_wide() || from.is_wide();
            return if is_wide { extend(to, 1 << (8 * to.bytes() - 1)) } else { 0 };
        }
        let (low, high) = range(to);
        return extend(to, (integral_part(value, round) as i128).clamp(low, high) as u64);
    }
    let value = if integral { integral_part(value, round) } else { value };
    float_bits(to, clamped(value, clamp), round)
}

/// Returns the integer that a register holds.
fn integer(ty: Type, bits: u64) -> i128 {
    match ty {
        Type::U8 => (bits as u8).into(),
        Type::S8 => (bits as i8).into(),
        Type::U16 => (bits as u16).into(),
        Type::S16 => (bits as i16).into(),
        Type::U32 => (bits as u32).into(),
        Type::S32 => (bits as i32).into(),
        Type::S64 => (bits as i64).into(),
        _ => bits.into(),
    }
}

/// Returns the smallest and the largest integer of a type.
fn range(ty: Type) -> (i128, i128) {
    let bits = 8 * ty.bytes();
    if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Returns the low bits that the type has. The sign of an 8-bit type fills the register above it.
fn extend(ty: Type, value: u64) -> u64 {
    match ty {
        Type::U8 => value & 0xff,
        Type::S8 => (value as i8 as u16).into(),
        _ if ty.bytes() == 2 => value & 0xffff,
        _ if ty.bytes() == 4 => value & 0xffff_ffff,
        _ => value,
    }
}

/// Returns the exact number that a register holds.
pub(crate) fn float(ty: Type, bits: u64) -> f64 {
    match ty {
        Type::F16 => half_as_f64(bits as u16),
        Type::Bf16 => f32::from_bits((bits as u32) << 16).into(),
        Type::F32 => f32::from_bits(bits as u32).into(),
        Type::F32Ftz => f32::from_bits(flush(bits as u32)).into(),
        _ => f64::from_bits(bits),
    }
}

/// Returns an integer as the `f64` that a conversion to `to` rounds. For F64 and F32 it is already
/// rounded as `round` demands, for Bf16 to odd; for F16 it is exact up to the largest half.
fn from_integer(to: Type, value: i128, round: Round) -> f64 {
    if to == Type::Bf16 {
        let nearest = value as f64;
        return to_odd(nearest, (value - nearest as i128) as f64);
    }
    let nearest = match to {
        Type::F64 => value as f64,
        _ => f64::from(value as f32),
    };
    // An f64 beyond the integers' range (2^64) is exact and compares as it is.
    let above = nearest as i128 > value;
    let below = (nearest as i128) < value;
    let neighbour = |up: bool| match to {
        Type::F64 if up => nearest.next_up(),
        Type::F64 => nearest.next_down(),
        _ if up => (nearest as f32).next_up().into(),
        _ => (nearest as f32).next_down().into(),
    };
    match round {
        Round::Down if above => neighbour(false),
        Round::Up if below => neighbour(true),
        Round::Zero if value > 0 && above => neighbour(false),
        Round::Zero if value < 0 && below => neighbour(true),
        _ => nearest,
    }
}

fn integral_part(value: f64, round: Round) -> f64 {
    match round {
        Round::Nearest => value.round_ties_even(),
        Round::Zero => value.trunc(),
        Round::Down => value.floor(),
        Round::Up => value.ceil(),
    }
}

/// Rounds a number to a type, and returns the bits of its register.
pub(crate) fn float_bits(to: Type, value: f64, round: Round) -> u64 {
    match to {
        Type::F64 if value.is_nan() => 0x7ff8_0000_0000_0000,
        Type::F64 => value.to_bits(),
        Type::F32 | Type::F32Ftz if value.is_nan() => 0x7fff_ffff,
        Type::F32 => narrow(value, round).to_bits().into(),
        Type::F32Ftz => flush_rounded(narrow(value, round).to_bits(), value, round).into(),
        Type::F16 => narrow_bits(value, round, 10, 5).into(),
        _ => narrow_bits(value, round, 7, 8).into(),
    }
}

/// Returns a number as 16 bits: a sign, `exponent_bits` of exponent, `fraction_bits` of fraction.
fn narrow_bits(value: f64, round: Round, fraction_bits: i32, exponent_bits: u32) -> u16 {
    let infinity = ((1 << exponent_bits) - 1) << fraction_bits;
    if value.is_nan() {
        return 0x7fff;
    }
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    if size.is_infinite() {
        return sign | infinity;
    }
    let bias = (1 << (exponent_bits - 1)) - 1;
    let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    // The value in units of the last place; it is exact, since the factor is a power of two.
    let units = size * power(fraction_bits - exponent);
    let towards_larger = match round {
        Round::Nearest => units.round_ties_even(),
        Round::Zero => units.trunc(),
        Round::Down if sign == 0 => units.trunc(),
        Round::Up if sign != 0 => units.trunc(),
        _ => units.ceil(),
    };
    // A subnormal number has field 0. A carry out of the fraction moves on to the next exponent by
    // itself.
    let field = (exponent + bias - 1) as u32;
    let bits = (field << fraction_bits) + towards_larger as u32;
    if bits < u32::from(infinity) {
        return sign | bits as u16;
    }
    let truncates = match round {
        Round::Nearest => false,
        Round::Zero => true,
        Round::Down => sign == 0,
        Round::Up => sign != 0,
    };
    sign | if truncates { infinity - 1 } else { infinity }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_and_bfloat_comes_back() {
        for bits in 0..=u16::MAX {
            for ty in [Type::F16, Type::Bf16] {
                let value = float(ty, bits.into());
                let back = float_bits(ty, value, Round::Nearest) as u16;
                if value.is_nan() {
                    assert_eq!(back, 0x7fff);
                } else {
                    assert_eq!(back, bits, "{ty:?} {bits:#x}");
                }
            }
        }
    }

    #[test]
    fn between_neighbours_every_mode_picks_its_own() {
        // 1 + 2^-9 is the first quarter between 1 and the next bf16, 1 + 2^-7.
        for (round, expected) in [
            (Round::Nearest, 0x3f80),
            (Round::Zero, 0x3f80),
            (Round::Down, 0x3f80),
            (Round::Up, 0x3f81),
        ] {
            assert_eq!(float_bits(Type::Bf16, 1.0 + 1.0 / 512.0, round), expected);
        }
        assert_eq!(float_bits(Type::F16, 65520.0, Round::Nearest), 0x7c00);
        assert_eq!(float_bits(Type::F16, 65519.0, Round::Nearest), 0x7bff);
        assert_eq!(float_bits(Type::F16, -1e9, Round::Zero), 0xfbff);
    }
}
