//! Moves, selections, predicates, the packing of values into wider ones, and instructions that
//! integers and floats share.

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

/// Executes `selp`.
pub(crate) fn select(r: &mut Registers, ty: Type, [d, a, b]: [Slot; 3], by: Slot, lanes: u32) {
    let predicate = r.predicate(by);
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

/// Executes `setp`.
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

/// Executes `testp`.
#[inline(always)]
pub(crate) fn test(r: &mut Registers, test: TestFloat, ty: Type, d: Slot, a: Slot, active: u32) {
    r.set_predicate(d, active, is_of_kind(r, test, ty, a));
}

/// Executes an operation on predicates.
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

/// Unpacks 64 bits into parts of `bits` bits each, the lowest first.
#[inline(always)]
pub(crate) fn unpack_long(r: &mut Registers, d: &[Option<Slot>], a: Slot, bits: u32, active: u32) {
    let a = *r.longs(a);
    for (k, d) in (0..).zip(d) {
        if let Some(d) = d {
            r.set_words(*d, active, |i| (a[i] >> (bits * k)) as u32 & u32::MAX >> (32 - bits));
        }
    }
}

/// Executes `cvta`.
#[inline(always)]
pub(crate) fn convert_address(
    r: &mut Registers,
    space: Space,
    to: bool,
    [d, a]: [Slot; 2],
    lanes: u32,
) {
    let window = match space {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Parameter => PARAMETER_WINDOW,
        Space::Global | Space::Constant | Space::Generic => 0,
    };
    let a = *r.longs(a);
    let offset = if to { window.wrapping_neg() } else { window };
    r.set_longs(d, lanes, |i| a[i].wrapping_add(offset));
}

/// Executes `activemask`.
#[inline(always)]
pub(crate) fn active_mask(r: &mut Registers, d: Slot, active: u32) {
    r.set_words(d, active, |_| active);
}

/// Executes an instruction without effect, or a part of the next instruction.
#[inline(always)]
pub(crate) fn nothing(_: &mut Registers, _: u32) {}

/// Returns the lanes in which floats compare, and the other lanes; for pairs, the lanes of the
/// lower and of the upper halves. With `or_unordered`, lanes with a NaN compare as well. (`ne` does
/// not hold for NaN in PTX, unlike in Rust.)
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

/// Returns the lanes whose numbers are of the kind that `test` names.
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
