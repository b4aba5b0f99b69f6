//! Sums, differences and products that read or write the carry flag, in 128 bits.

use super::integer::mask;
use crate::isa::{Carry, Slot, Type};
use crate::machine::state::{Longs, Registers};

pub(crate) fn carry(
    r: &mut Registers,
    op: Carry,
    ty: Type,
    [takes, gives]: [Option<Slot>; 2],
    [d, a, b, c]: [Slot; 4],
    lanes: u32,
) {
    let bits = 8 * ty.bytes();
    let read = |slot| -> Longs { std::array::from_fn(|i| r.lane(slot, ty.is_wide(), i)) };
    let (a, b, c) = (read(a), read(b), read(c));
    // As an H200 has it, a difference leaves the flag where it does not borrow. PTX does not say
    // what `subc` makes of a sum's flag.
    let is_difference = op == Carry::Sub;
    let none = if is_difference { u32::MAX } else { 0 };
    let flag = takes.map_or(none, |flag| r.predicate(flag));
    // What lies above the type's bits is the carry or the borrow.
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

/// All bits of a product, of twice the type's width, and above them the sign.
fn product(ty: Type, a: u64, b: u64) -> u128 {
    let extend = |value: u64| match ty {
        Type::S32 => i128::from(value as i32),
        Type::S64 => i128::from(value as i64),
        _ => i128::from(value),
    };
    (extend(a) as u128).wrapping_mul(extend(b) as u128)
}
