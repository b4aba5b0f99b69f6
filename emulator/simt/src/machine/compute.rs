//! The instructions that read and write registers and do nothing else.

use super::state::{Registers, put};
use crate::isa::{LOCAL_WINDOW, Op, PARAMETER_WINDOW, SHARED_WINDOW, Slot, Space, Type};
use crate::machine::arithmetic::convert::{self, Conversion};
use crate::machine::arithmetic::{carry, float, float_order, integer, ternary};

/// Executes `op` in the lanes `active`, if it is one of them. Whether it is.
pub(crate) fn compute(r: &mut Registers, op: &Op, active: u32) -> bool {
    match *op {
        Op::Fma { ty, round, clamp, d, a, b, c } => {
            float::fma(r, ty, round, clamp, [d, a, b, c], active);
        }
        Op::Arithmetic { op, ty, round, clamp, d, a, b } => {
            float::arithmetic(r, op, ty, round, clamp, [d, a, b], active);
        }
        Op::Binary { op, ty, d, a, b } if ty.is_float() => {
            float::binary(r, op, ty, [d, a, b], active);
        }
        Op::Binary { op, ty, d, a, b } => integer::binary(r, op, ty, [d, a, b], active),
        Op::Unary { op, ty, d, a } if ty.is_float() => float::unary(r, op, ty, d, a, active),
        Op::Unary { op, ty, d, a } => integer::unary(r, op, ty, d, a, active),
        Op::Ternary { op, ty, d, a, b, c } => {
            ternary::ternary(r, op, ty, [d, a, b, c], active);
        }
        Op::Carry { op, ty, takes, gives, d, a, b, c } => {
            carry::carry(r, op, ty, [takes, gives], [d, a, b, c], active);
        }
        Op::MulWide { ty, d, a, b } => integer::wide(r, ty, [d, a, b], None, active),
        Op::MadWide { ty, d, a, b, c } => integer::wide(r, ty, [d, a, b], Some(c), active),
        Op::BitExtract { ty, d, a, b, c } => integer::extract(r, ty, [d, a, b, c], active),
        Op::BitInsert { ty, d, a, b, pos, len } => {
            integer::insert(r, ty, [d, a, b], [pos, len], active);
        }
        Op::Lop3 { table, d, a, b, c } => integer::lop3(r, table, [d, a, b, c], active),
        Op::Select { ty, d, a, b, predicate } => {
            select(r, ty, [d, a, b], predicate, active);
        }
        Op::SetPredicate { compare, or_unordered, ty, d, complement, combine, a, b } => {
            let [holds, opposite] = if ty.is_float() {
                float_order::compare(r, compare, or_unordered, ty, a, b)
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
        Op::Test { test, ty, d, a } => {
            r.set_predicate(d, active, float_order::test(r, test, ty, a));
        }
        Op::Predicate { op, d, a, b } => {
            let mask = integer::logic(op, r.predicate(a), r.predicate(b));
            r.set_predicate(d, active, mask);
        }
        Op::NotPredicate { d, a } => r.set_predicate(d, active, !r.predicate(a)),
        Op::Convert { to, from, round, integral, clamp, d, a } => {
            let conversion = Conversion { to, from, round, integral, clamp };
            convert::convert(r, conversion, d, a, active);
        }
        Op::ConvertPair { to, round, clamp, d, a, b } => {
            let (high, low) = (*r.words(a), *r.words(b));
            let half = |bits: u32| {
                let value =
                    super::arithmetic::rounding::clamped(f32::from_bits(bits).into(), clamp);
                convert::float_bits(to, value, round) as u32
            };
            r.set_words(d, active, |i| half(high[i]) << 16 | half(low[i]));
        }
        Op::Pack16 { d, parts: [a, b] } => {
            let (low, high) = (*r.words(a), *r.words(b));
            r.set_words(d, active, |i| high[i] << 16 | low[i] & 0xffff);
        }
        Op::Pack32 { d, parts: [a, b] } => {
            let (low, high) = (*r.words(a), *r.words(b));
            r.set_longs(d, active, |i| u64::from(high[i]) << 32 | u64::from(low[i]));
        }
        Op::Pack16x4 { d, parts } => {
            let parts = parts.map(|slot| *r.words(slot));
            r.set_longs(d, active, |i| {
                (0..4).fold(0, |all, k| all | u64::from(parts[k][i] & 0xffff) << (16 * k))
            });
        }
        Op::Unpack16 { d, a } => {
            let a = *r.words(a);
            for (k, d) in d.into_iter().enumerate() {
                if let Some(d) = d {
                    r.set_words(d, active, |i| a[i] >> (16 * k) & 0xffff);
                }
            }
        }
        Op::Unpack32 { d, a } => {
            let a = *r.longs(a);
            for (k, d) in d.into_iter().enumerate() {
                if let Some(d) = d {
                    r.set_words(d, active, |i| (a[i] >> (32 * k)) as u32);
                }
            }
        }
        Op::Unpack16x4 { d, a } => {
            let a = *r.longs(a);
            for (k, d) in d.into_iter().enumerate() {
                if let Some(d) = d {
                    r.set_words(d, active, |i| (a[i] >> (16 * k)) as u32 & 0xffff);
                }
            }
        }
        Op::ConvertAddress { space, to, d, a } => {
            let window = match space {
                Space::Shared => SHARED_WINDOW,
                Space::Local => LOCAL_WINDOW,
                Space::Parameter => PARAMETER_WINDOW,
                Space::Global | Space::Constant | Space::Generic => 0,
            };
            let a = *r.longs(a);
            r.set_longs(d, active, |i| {
                if to { a[i].wrapping_sub(window) } else { a[i].wrapping_add(window) }
            });
        }
        Op::ActiveMask { d } => r.set_words(d, active, |_| active),
        Op::Factors { .. } | Op::BulkTarget { .. } | Op::Nothing => {}
        _ => return false,
    }
    true
}

fn select(r: &mut Registers, ty: Type, [d, a, b]: [Slot; 3], predicate: Slot, lanes: u32) {
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
