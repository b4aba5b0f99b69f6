//! Instructions on integers: arithmetic, logic, shifts, comparisons, extraction and insertion of
//! bits.
//!
//! Each function matches the operation and the type once, and then loops over the 32 lanes with a
//! closure of a few operations, so that the compiler can use vector instructions of the processor.
//! Integers of 16 bits are computed in 32 bits, and then cut. The upper half of a slot has no
//! meaning while the slot holds a narrower type. Tested by `integer.rs`, `bits.rs` and `compare.rs`
//! in `tests/suite`, against plain Rust.

use crate::isa::{Binary, Compare, Logic, Slot, Type, Unary};
use crate::machine::state::{ALL, Registers};

pub(crate) fn unary(r: &mut Registers, op: Unary, ty: Type, d: Slot, a: Slot, lanes: u32) {
    if ty.is_wide() {
        let from = *r.longs(a);
        match op {
            Unary::Negate => r.longs_of(d, lanes, [a], |_, [a]| a.wrapping_neg()),
            Unary::Absolute => r.longs_of(d, lanes, [a], |_, [a]| (a as i64).wrapping_abs() as u64),
            Unary::Not => r.longs_of(d, lanes, [a], |_, [a]| !a),
            Unary::LogicalNot => r.longs_of(d, lanes, [a], |_, [a]| u64::from(a == 0)),
            Unary::PopCount => r.set_words(d, lanes, |i| from[i].count_ones()),
            Unary::LeadingZeros => r.set_words(d, lanes, |i| from[i].leading_zeros()),
            Unary::BitReverse => r.longs_of(d, lanes, [a], |_, [a]| a.reverse_bits()),
            Unary::FindBit { shift } => r.set_words(d, lanes, |i| {
                let negative = ty.is_signed() && from[i] >> 63 == 1;
                find_bit(if negative { !from[i] } else { from[i] }, 63, shift)
            }),
            _ => r.longs_of(d, lanes, [a], |_, [a]| a),
        }
        return;
    }
    let narrow = ty.bytes() == 2;
    let signed = |a: u32| if narrow { a as i16 as i32 } else { a as i32 };
    let cut = |value: u32| if narrow { value & 0xffff } else { value };
    match op {
        Unary::Negate => r.words_of(d, lanes, [a], |_, [a]| cut(a.wrapping_neg())),
        Unary::Absolute => r.words_of(d, lanes, [a], |_, [a]| cut(signed(a).wrapping_abs() as u32)),
        Unary::Not => r.words_of(d, lanes, [a], |_, [a]| cut(!a)),
        Unary::LogicalNot => r.words_of(d, lanes, [a], |_, [a]| u32::from(cut(a) == 0)),
        Unary::PopCount => r.words_of(d, lanes, [a], |_, [a]| a.count_ones()),
        Unary::LeadingZeros => r.words_of(d, lanes, [a], |_, [a]| a.leading_zeros()),
        Unary::BitReverse => r.words_of(d, lanes, [a], |_, [a]| a.reverse_bits()),
        Unary::FindBit { shift } => r.words_of(d, lanes, [a], |_, [a]| {
            let negative = ty.is_signed() && a >> 31 == 1;
            find_bit(u64::from(if negative { !a } else { a }), 31, shift)
        }),
        _ => r.words_of(d, lanes, [a], |_, [a]| a),
    }
}

fn find_bit(value: u64, top: u32, shift: bool) -> u32 {
    match value.checked_ilog2() {
        None => u32::MAX,
        Some(position) if shift => top - position,
        Some(position) => position,
    }
}

pub(crate) fn binary(r: &mut Registers, op: Binary, ty: Type, [d, a, b]: [Slot; 3], lanes: u32) {
    match (ty.bytes(), ty.is_signed()) {
        (8, signed) => binary64(r, op, signed, [d, a, b], lanes),
        (4, signed) => {
            words(r, op, signed, [d, a, b], lanes, |a| a, |b| b);
        }
        (_, signed) => {
            // The shift count of a 16-bit value is a 32-bit register.
            let shift = matches!(op, Binary::Shl | Binary::Shr);
            let extend = |value: u32| if signed { value as i16 as u32 } else { value & 0xffff };
            let right = |b| if shift { b } else { extend(b) };
            words(r, in_32_bits(op), signed, [d, a, b], lanes, extend, right);
            cut(r, op, d, lanes);
        }
    }
}

/// Returns the 32-bit operation whose result holds the 16-bit one: the high half of a 16-bit
/// product is the upper half of the whole product.
fn in_32_bits(op: Binary) -> Binary {
    if op == Binary::MulHigh { Binary::MulLow } else { op }
}

/// Cuts a 16-bit result out of a 32-bit one.
fn cut(r: &mut Registers, op: Binary, d: Slot, lanes: u32) {
    let wide = *r.words(d);
    let shift = if op == Binary::MulHigh { 16 } else { 0 };
    r.set_words(d, lanes, |i| wide[i] >> shift & 0xffff);
}

/// Executes an operation by `$of`, for both widths of registers. The types are the unsigned and the
/// signed integers of the width, and of twice the width. Shifts follow the list.
macro_rules! operations {
    ($r:ident.$of:ident($op:ident, $signed:ident, [$d:ident, $a:ident, $b:ident], $lanes:ident),
        [$u:ident $s:ident $double:ident $double_signed:ident],
        $left:ident $right:ident, { $($shift:pat $(if $guard:expr)? => $shifted:expr),* }) => {
        match $op {
            Binary::Add => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| $left(a).wrapping_add($right(b))),
            Binary::Sub => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| $left(a).wrapping_sub($right(b))),
            Binary::MulLow => {
                $r.$of($d, $lanes, [$a, $b], |_, [a, b]| $left(a).wrapping_mul($right(b)));
            }
            Binary::MulHigh if $signed => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| {
                let (a, b) = ($left(a) as $s as $double_signed, $right(b) as $s as $double_signed);
                ((a * b) >> $u::BITS) as $u
            }),
            Binary::MulHigh => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| {
                (($double::from($left(a)) * $double::from($right(b))) >> $u::BITS) as $u
            }),
            Binary::Div if $signed => {
                $r.$of($d, $lanes, [$a, $b], |_, [a, b]| match $right(b) as $s {
                    0 => $u::MAX,
                    b => ($left(a) as $s).wrapping_div(b) as $u,
                });
            }
            Binary::Div => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| {
                $left(a).checked_div($right(b)).unwrap_or($u::MAX)
            }),
            Binary::Rem if $signed => {
                $r.$of($d, $lanes, [$a, $b], |_, [a, b]| match $right(b) as $s {
                    0 => $u::MAX,
                    b => ($left(a) as $s).wrapping_rem(b) as $u,
                });
            }
            Binary::Rem => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| {
                $left(a).checked_rem($right(b)).unwrap_or($u::MAX)
            }),
            Binary::Min if $signed => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| {
                ($left(a) as $s).min($right(b) as $s) as $u
            }),
            Binary::Min => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| $left(a).min($right(b))),
            Binary::Max if $signed => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| {
                ($left(a) as $s).max($right(b) as $s) as $u
            }),
            Binary::Max => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| $left(a).max($right(b))),
            Binary::And => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| $left(a) & $right(b)),
            Binary::Or => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| $left(a) | $right(b)),
            Binary::Xor => $r.$of($d, $lanes, [$a, $b], |_, [a, b]| $left(a) ^ $right(b)),
            $($shift $(if $guard)? => $shifted,)*
            // These are operations on floats.
            Binary::MinNan | Binary::MaxNan | Binary::Quotient | Binary::QuotientFull => {}
        }
    };
}

#[inline(always)]
fn words(
    r: &mut Registers,
    op: Binary,
    signed: bool,
    [d, a, b]: [Slot; 3],
    lanes: u32,
    left: impl Fn(u32) -> u32,
    right: impl Fn(u32) -> u32,
) {
    operations!(r.words_of(op, signed, [d, a, b], lanes), [u32 i32 u64 i64], left right, {
        Binary::Shl => {
            r.words_of(d, lanes, [a, b], |_, [a, b]| left(a).checked_shl(right(b)).unwrap_or(0));
        },
        Binary::Shr if signed => {
            r.words_of(d, lanes, [a, b], |_, [a, b]| (left(a) as i32 >> right(b).min(31)) as u32);
        },
        Binary::Shr => {
            r.words_of(d, lanes, [a, b], |_, [a, b]| left(a).checked_shr(right(b)).unwrap_or(0));
        }
    });
}

fn binary64(r: &mut Registers, op: Binary, signed: bool, [d, a, b]: [Slot; 3], lanes: u32) {
    // The number of bits of a shift is in a 32-bit register.
    if let Binary::Shl | Binary::Shr = op {
        let by = *r.words(b);
        return match op {
            Binary::Shl => r.longs_of(d, lanes, [a], |i, [a]| a.checked_shl(by[i]).unwrap_or(0)),
            _ if signed => r.longs_of(d, lanes, [a], |i, [a]| (a as i64 >> by[i].min(63)) as u64),
            _ => r.longs_of(d, lanes, [a], |i, [a]| a.checked_shr(by[i]).unwrap_or(0)),
        };
    }
    let (left, right) = (|a: u64| a, |b: u64| b);
    operations!(r.longs_of(op, signed, [d, a, b], lanes), [u64 i64 u128 i128], left right, {
        Binary::Shl | Binary::Shr => {}
    });
}

/// Executes `mul.wide` and, with a summand, `mad.wide`.
pub(crate) fn wide(r: &mut Registers, ty: Type, [d, a, b]: [Slot; 3], c: Option<Slot>, lanes: u32) {
    let (a, b) = (*r.words(a), *r.words(b));
    if ty.bytes() == 2 {
        let c = c.map_or([0; 32], |c| *r.words(c));
        if ty == Type::S16 {
            r.set_words(d, lanes, |i| {
                (i32::from(a[i] as i16) * i32::from(b[i] as i16)).wrapping_add(c[i] as i32) as u32
            });
        } else {
            r.set_words(d, lanes, |i| ((a[i] & 0xffff) * (b[i] & 0xffff)).wrapping_add(c[i]));
        }
        return;
    }
    let c = c.map_or([0; 32], |c| *r.longs(c));
    if ty == Type::S32 {
        r.set_longs(d, lanes, |i| {
            (i64::from(a[i] as i32) * i64::from(b[i] as i32)).wrapping_add(c[i] as i64) as u64
        });
    } else {
        r.set_longs(d, lanes, |i| u64::from(a[i]).wrapping_mul(u64::from(b[i])).wrapping_add(c[i]));
    }
}

/// Returns the bits that `bfe` and `bfi` take from the registers of the position and the length.
/// PTX names the low 8 bits; a GPU takes all 32 for fields of 64 bits.
fn field_bits(ty: Type) -> u32 {
    if ty.is_wide() { u32::MAX } else { 0xff }
}

/// Executes `bfe`: takes `length` bits of `a` from `position`. Past the top, unsigned types have
/// zeros and signed types the sign.
pub(crate) fn extract(r: &mut Registers, ty: Type, [d, a, b, c]: [Slot; 4], lanes: u32) {
    let (position, length, bits) = (*r.words(b), *r.words(c), field_bits(ty));
    let width = 8 * ty.bytes();
    let field = |value: u64, i: usize| -> u64 {
        let (position, length) = (position[i] & bits, length[i] & bits);
        if length == 0 {
            return 0;
        }
        let low = value.checked_shr(position).filter(|_| position < width).unwrap_or(0);
        let kept = if length < 64 { low & ((1 << length) - 1) } else { low };
        if !ty.is_signed() {
            return kept;
        }
        // The sign is the field's highest bit, or the value's where the field reaches past it.
        let top = position.saturating_add(length - 1).min(width - 1);
        let bits = (top + 1).saturating_sub(position).min(length);
        if value >> top & 1 == 1 { kept | u64::MAX.checked_shl(bits).unwrap_or(0) } else { kept }
    };
    if ty.is_wide() {
        let a = *r.longs(a);
        r.set_longs(d, lanes, |i| field(a[i], i));
    } else {
        let a = *r.words(a);
        r.set_words(d, lanes, |i| field(a[i].into(), i) as u32);
    }
}

/// Executes `bfi`: puts the low `length` bits of `a` into `b` at `position`.
pub(crate) fn insert(
    r: &mut Registers,
    ty: Type,
    [d, a, b]: [Slot; 3],
    [position, length]: [Slot; 2],
    lanes: u32,
) {
    let (position, length, bits) = (*r.words(position), *r.words(length), field_bits(ty));
    let field = |a: u64, b: u64, i: usize| -> u64 {
        let (position, length) = (position[i] & bits, length[i] & bits);
        let ones = if length < 64 { (1_u64 << length) - 1 } else { u64::MAX };
        let mask = ones.checked_shl(position).unwrap_or(0);
        b & !mask | a.checked_shl(position).unwrap_or(0) & mask
    };
    if ty.is_wide() {
        let (a, b) = (*r.longs(a), *r.longs(b));
        r.set_longs(d, lanes, |i| field(a[i], b[i], i));
    } else {
        let (a, b) = (*r.words(a), *r.words(b));
        r.set_words(d, lanes, |i| field(a[i].into(), b[i].into(), i) as u32);
    }
}

/// Executes `lop3`: each bit of the result is bit number `abc` of the table.
pub(crate) fn lop3(r: &mut Registers, table: u8, [d, a, b, c]: [Slot; 4], lanes: u32) {
    r.words_of(d, lanes, [a, b, c], |_, [a, b, c]| {
        (0..8).filter(|row| table >> row & 1 == 1).fold(0, |result, row| {
            let a = if row & 4 != 0 { a } else { !a };
            let b = if row & 2 != 0 { b } else { !b };
            let c = if row & 1 != 0 { c } else { !c };
            result | a & b & c
        })
    });
}

/// Returns the lanes in which integers compare.
pub(crate) fn compare(r: &Registers, compare: Compare, ty: Type, a: Slot, b: Slot) -> u32 {
    match ty {
        Type::U64 => holds(compare, |i| r.longs(a)[i], |i| r.longs(b)[i]),
        Type::S64 => holds(compare, |i| r.longs(a)[i] as i64, |i| r.longs(b)[i] as i64),
        Type::S32 => holds(compare, |i| r.words(a)[i] as i32, |i| r.words(b)[i] as i32),
        Type::S16 => holds(compare, |i| r.words(a)[i] as i16, |i| r.words(b)[i] as i16),
        Type::U16 => holds(compare, |i| r.words(a)[i] as u16, |i| r.words(b)[i] as u16),
        _ => holds(compare, |i| r.words(a)[i], |i| r.words(b)[i]),
    }
}

/// Returns the lanes in which `a` and `b` compare as `compare` names.
#[inline(always)]
pub(crate) fn holds<T: PartialOrd>(
    compare: Compare,
    a: impl Fn(usize) -> T,
    b: impl Fn(usize) -> T,
) -> u32 {
    match compare {
        Compare::Eq => mask(|i| a(i) == b(i)),
        Compare::Ne => mask(|i| a(i) != b(i)),
        Compare::Lt => mask(|i| a(i) < b(i)),
        Compare::Le => mask(|i| a(i) <= b(i)),
        Compare::Gt => mask(|i| a(i) > b(i)),
        Compare::Ge => mask(|i| a(i) >= b(i)),
        Compare::Always => ALL,
        Compare::Never => 0,
    }
}

/// Returns the lanes in which a condition holds.
#[inline(always)]
pub(crate) fn mask(condition: impl Fn(usize) -> bool) -> u32 {
    (0..32).fold(0, |mask, lane| mask | u32::from(condition(lane)) << lane)
}

pub(crate) fn logic(op: Logic, a: u32, b: u32) -> u32 {
    match op {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}

/// Reduces one value for each lane over the lanes of `members`.
pub(crate) fn reduce(op: Binary, ty: Type, values: &[u32; 32], members: u32) -> u32 {
    let all = (0..32).filter(|lane| members >> lane & 1 == 1).map(|lane| values[lane as usize]);
    let signed = ty.is_signed();
    all.reduce(|a, b| match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Min if signed => (a as i32).min(b as i32) as u32,
        Binary::Min => a.min(b),
        Binary::Max if signed => (a as i32).max(b as i32) as u32,
        Binary::Max => a.max(b),
        Binary::And => a & b,
        Binary::Or => a | b,
        _ => a ^ b,
    })
    .unwrap_or(ALL)
}
