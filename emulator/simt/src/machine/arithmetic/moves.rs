//! Moves, selections, predicates, and the packing of values into wider ones; and what of integers
//! and floats has one instruction.

use super::integer::{self, mask};
use super::rounding::{ordered, single};
use super::{float, half};
use crate::isa::{
    Binary, Compare, Guard, LOCAL_WINDOW, Logic, PARAMETER_WINDOW, SHARED_WINDOW, Slot, Space,
    TestFloat, Type, Unary,
};
use crate::machine::state::{Registers, put};

#[inline(always)]
pub(crate) fn binary(r: &mut Registers, op: Binary, ty: Type, slots: [Slot; 3], active: u32) {
    if ty.is_float() {
        float::binary(r, op, ty, slots, active);
    } else {
        integer::binary(r, op, ty, slots, active);
    }
}

#[inline(always)]
pub(crate) fn unary(r: &mut Registers, op: Unary, ty: Type, d: Slot, a: Slot, active: u32) {
    if ty.is_float() {
        float::unary(r, op, ty, d, a, active);
    } else {
        integer::unary(r, op, ty, d, a, active);
    }
}

/// `selp`.
pub(crate) fn select(
    r: &mut Registers,
    ty: Type,
    [d, a, b]: [Slot; 3],
    predicate: Slot,
    lanes: u32,
) {
    let predicate = r.predicate(predicate);
    if ty.is_wide() {
        let mut chosen = *r.longs(b);
        put(&mut chosen, predicate, r.longs(a));
        r.set_longs(d, lanes, |i| chosen[i]);
    } else {
        let mut chosen = *r.words(b);
        put(&mut chosen, predicate, r.words(a));
        r.set_words(d, lanes, |i| chosen[i]);
    }
}

/// `setp`.
#[inline(always)]
pub(crate) fn set_predicate(
    r: &mut Registers,
    (compare, or_unordered, ty): (Compare, bool, Type),
    [a, b]: [Slot; 2],
    combine: Option<(Logic, Guard)>,
    (d, complement): (Slot, Option<Slot>),
    active: u32,
) {
    let [holds, opposite] = if ty.is_float() {
        compare_floats(r, compare, or_unordered, ty, a, b)
    } else {
        let holds = integer::compare(r, compare, ty, a, b);
        [holds, !holds]
    };
    let with = |r: &Registers, mask| match combine {
        Some((op, guard)) => integer::logic(op, mask, r.guard(guard)),
        None => mask,
    };
    let (yes, no) = (with(r, holds), with(r, opposite));
    r.set_predicate(d, active, yes);
    if let Some(complement) = complement {
        r.set_predicate(complement, active, no);
    }
}

/// `testp`.
#[inline(always)]
pub(crate) fn test(r: &mut Registers, test: TestFloat, ty: Type, d: Slot, a: Slot, active: u32) {
    r.set_predicate(d, active, is_of_kind(r, test, ty, a));
}

/// An operation on predicates.
#[inline(always)]
pub(crate) fn logic(r: &mut Registers, op: Logic, [d, a, b]: [Slot; 3], active: u32) {
    let mask = integer::logic(op, r.predicate(a), r.predicate(b));
    r.set_predicate(d, active, mask);
}

#[inline(always)]
pub(crate) fn not(r: &mut Registers, d: Slot, a: Slot, active: u32) {
    r.set_predicate(d, active, !r.predicate(a));
}

#[inline(always)]
pub(crate) fn pack16(r: &mut Registers, d: Slot, parts: [Slot; 2], active: u32) {
    let [low, high] = parts.map(|part| *r.words(part));
    r.set_words(d, active, |i| high[i] << 16 | low[i] & 0xffff);
}

#[inline(always)]
pub(crate) fn pack32(r: &mut Registers, d: Slot, parts: [Slot; 2], active: u32) {
    let [low, high] = parts.map(|part| *r.words(part));
    r.set_longs(d, active, |i| u64::from(high[i]) << 32 | u64::from(low[i]));
}

#[inline(always)]
pub(crate) fn pack16x4(r: &mut Registers, d: Slot, parts: [Slot; 4], active: u32) {
    let parts = parts.map(|part| *r.words(part));
    r.set_longs(d, active, |i| {
        (0..4).fold(0, |all, k| all | u64::from(parts[k][i] & 0xffff) << (16 * k))
    });
}

#[inline(always)]
pub(crate) fn unpack16(r: &mut Registers, d: [Option<Slot>; 2], a: Slot, active: u32) {
    let a = *r.words(a);
    for (k, d) in d.into_iter().enumerate() {
        if let Some(d) = d {
            r.set_words(d, active, |i| a[i] >> (16 * k) & 0xffff);
        }
    }
}

/// The parts of 64 bits, each of `bits` bits, the lowest first.
#[inline(always)]
pub(crate) fn unpack_long(r: &mut Registers, d: &[Option<Slot>], a: Slot, bits: u32, active: u32) {
    let a = *r.longs(a);
    for (k, d) in (0..).zip(d) {
        if let Some(d) = d {
            r.set_words(*d, active, |i| (a[i] >> (bits * k)) as u32 & u32::MAX >> (32 - bits));
        }
    }
}

/// `cvta`.
#[inline(always)]
pub(crate) fn convert_address(
    r: &mut Registers,
    space: Space,
    to: bool,
    d: Slot,
    a: Slot,
    active: u32,
) {
    let window = match space {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Parameter => PARAMETER_WINDOW,
        Space::Global | Space::Constant | Space::Generic => 0,
    };
    let a = *r.longs(a);
    r.set_longs(
        d,
        active,
        |i| if to { a[i].wrapping_sub(window) } else { a[i].wrapping_add(window) },
    );
}

/// `activemask`.
#[inline(always)]
pub(crate) fn active_mask(r: &mut Registers, d: Slot, active: u32) {
    r.set_words(d, active, |_| active);
}

/// An instruction without effect, or a part of the next one.
#[inline(always)]
pub(crate) fn nothing(_: &mut Registers, _: u32) {}

/// The lanes in which numbers compare, with `or_unordered` also those where one is NaN, and the
/// others; of pairs those of the lower and of the upper halves. (`ne` does not hold for NaN in PTX,
/// unlike in Rust.)
fn compare_floats(
    r: &Registers,
    compare: Compare,
    or_unordered: bool,
    ty: Type,
    a: Slot,
    b: Slot,
) -> [u32; 2] {
    let test = |[holds, unordered]: [u32; 2]| {
        if or_unordered { holds | unordered } else { holds & !unordered }
    };
    if ty.is_pair() {
        return half::compare(r, compare, ty, a, b).map(test);
    }
    let lanes = test(match ty {
        Type::F64 => {
            let (a, b) = (r.longs(a), r.longs(b));
            ordered(compare, |i| f64::from_bits(a[i]), |i| f64::from_bits(b[i]))
        }
        Type::F32 | Type::F32Ftz => {
            let (a, b) = (single(r, ty, a), single(r, ty, b));
            ordered(compare, |i| f32::from_bits(a[i]), |i| f32::from_bits(b[i]))
        }
        _ => half::compare(r, compare, ty, a, b)[0],
    });
    [lanes, !lanes]
}

/// The lanes of which the numbers are what is asked.
fn is_of_kind(r: &Registers, test: TestFloat, ty: Type, a: Slot) -> u32 {
    use std::num::FpCategory::{Infinite, Nan, Normal, Subnormal, Zero};
    mask(|i| {
        let category = match ty {
            Type::F64 => f64::from_bits(r.longs(a)[i]).classify(),
            _ => f32::from_bits(r.words(a)[i]).classify(),
        };
        match test {
            TestFloat::Finite => !matches!(category, Infinite | Nan),
            TestFloat::Infinite => category == Infinite,
            TestFloat::Number => category != Nan,
            TestFloat::NotANumber => category == Nan,
            TestFloat::Normal => matches!(category, Normal | Zero),
            TestFloat::Subnormal => category == Subnormal,
        }
    })
}
