//! Logic, shifts, counting and moving bits: bit by bit, as the PTX ISA defines them.

use crate::form::Kind::{self, L, P, W};
use crate::form::{Form, check, form, several};
use crate::integer::INTS;
use crate::values::{integers, low, shifts};

fn bit(value: u64, i: u32) -> bool {
    value >> i & 1 == 1
}

/// The number whose bit `i` is `bit(i)`.
fn from_bits(bits: u32, bit: impl Fn(u32) -> bool) -> u64 {
    (0..bits).fold(0, |all, i| all | u64::from(bit(i)) << i)
}

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for bits in [16, 32, 64] {
        logic(&mut all, bits);
        shift(&mut all, bits);
    }
    for bits in [32, 64] {
        counting(&mut all, bits);
        fields(&mut all, bits);
    }
    words(&mut all);
    predicates(&mut all);
    all
}

fn logic(all: &mut Vec<Form>, bits: u32) {
    let kind = Kind::of_bits(bits);
    let name = |op: &str| format!("{op}.b{bits}");
    all.push(form(&name("and"), kind, [kind; 2], |[a, b]| a & b));
    all.push(form(&name("or"), kind, [kind; 2], |[a, b]| a | b));
    all.push(form(&name("xor"), kind, [kind; 2], |[a, b]| a ^ b));
    all.push(form(&name("not"), kind, [kind], |[a]| !a));
    all.push(form(&name("cnot"), kind, [kind], |[a]| u64::from(a == 0)));
}

/// Shifts by the width or more leave nothing, or nothing but the sign.
fn shift(all: &mut Vec<Form>, bits: u32) {
    let kind = Kind::of_bits(bits);
    let (values, shifts) = (integers(bits), shifts());
    let by = move |b: u64| b.min(u64::from(bits)) as u32;
    let left = form(&format!("shl.b{bits}"), kind, [kind, W], move |[a, b]| {
        from_bits(bits, |i| i >= by(b) && bit(a, i - by(b)))
    });
    all.push(left.over(&[&values, &shifts]));
    let mut right = |name: &str, signed: bool| {
        let right = form(&format!("shr.{name}"), kind, [kind, W], move |[a, b]| {
            from_bits(bits, |i| match i + by(b) {
                from if from < bits => bit(a, from),
                _ => signed && bit(a, bits - 1),
            })
        });
        all.push(right.over(&[&values, &shifts]));
    };
    right(&format!("b{bits}"), false);
    for ty in INTS.iter().filter(|ty| ty.bits == bits) {
        right(ty.name, ty.signed);
    }
}

fn counting(all: &mut Vec<Form>, bits: u32) {
    let kind = Kind::of_bits(bits);
    let count = move |a: u64| (0..bits).filter(|&i| bit(a, i)).count() as u64;
    all.push(form(&format!("popc.b{bits}"), W, [kind], move |[a]| count(a)));
    let leading = move |a: u64| (0..bits).rev().take_while(|&i| !bit(a, i)).count() as u64;
    all.push(form(&format!("clz.b{bits}"), W, [kind], move |[a]| leading(a)));
    all.push(form(&format!("brev.b{bits}"), kind, [kind], move |[a]| {
        from_bits(bits, |i| bit(a, bits - 1 - i))
    }));
    for ty in INTS.into_iter().filter(|ty| ty.bits == bits) {
        // The highest bit that differs from the sign.
        let find = move |a: u64| {
            let sign = ty.signed && bit(a, bits - 1);
            (0..bits).rev().find(|&i| bit(a, i) != sign)
        };
        all.push(form(&format!("bfind.{}", ty.name), W, [kind], move |[a]| {
            find(a).map_or(u64::MAX, u64::from)
        }));
        all.push(form(&format!("bfind.shiftamt.{}", ty.name), W, [kind], move |[a]| {
            find(a).map_or(u64::MAX, |i| (bits - 1 - i).into())
        }));
    }
}

fn fields(all: &mut Vec<Form>, bits: u32) {
    let kind = Kind::of_bits(bits);
    // Positions and lengths are 8 bits, as PTX says, and 32 where values have 64: 7680 of 7680
    // cases on an H200.
    let counts = if bits == 64 { 0xffff_ffff } else { 0xff };
    let shifts = shifts();
    let values = integers(bits);
    for ty in INTS.into_iter().filter(|ty| ty.bits == bits) {
        let extract = form(&format!("bfe.{}", ty.name), kind, [kind, W, W], move |[a, b, c]| {
            let (position, length) = (b & counts, c & counts);
            let top = (position + length).saturating_sub(1).min(u64::from(bits) - 1) as u32;
            let sign = ty.signed && length > 0 && bit(a, top);
            from_bits(bits, |i| match position + u64::from(i) {
                from if u64::from(i) < length && from < u64::from(bits) => bit(a, from as u32),
                _ => sign,
            })
        });
        all.push(extract.over(&[&values, &shifts, &shifts]).at_most(20_000));
    }
    let insert = form(&format!("bfi.b{bits}"), kind, [kind, kind, W, W], move |[a, b, c, d]| {
        let (position, length) = (c & counts, d & counts);
        from_bits(bits, |i| match u64::from(i).checked_sub(position) {
            Some(from) if from < length => bit(a, from as u32),
            _ => bit(b, i),
        })
    });
    all.push(insert.over(&[&values, &values, &shifts, &shifts]).at_most(20_000));
}

fn words(all: &mut Vec<Form>) {
    let shifts = shifts();
    let values = integers(32);
    for (mode, wraps) in [("wrap", true), ("clamp", false)] {
        let by = move |c: u64| if wraps { c & 31 } else { c.min(32) } as u32;
        // `b` above `a`, 64 bits: the upper word after a shift to the left, the lower after one to
        // the right.
        let left = form(&format!("shf.l.{mode}.b32"), W, [W; 3], move |[a, b, c]| {
            from_bits(32, |i| bit(b << 32 | a, 32 + i - by(c)))
        });
        all.push(left.over(&[&values, &values, &shifts]));
        let right = form(&format!("shf.r.{mode}.b32"), W, [W; 3], move |[a, b, c]| {
            from_bits(32, |i| bit(b << 32 | a, i + by(c)))
        });
        all.push(right.over(&[&values, &values, &shifts]));
    }

    let selectors: Vec<u64> = (0..16)
        .flat_map(|i| {
            [i, i << 4 | 0x3201 & !0xf0, i << 8 | 0x76, i << 12 | 0x789, 0xffff_0000 | (i * 0x1111)]
        })
        .collect();
    let permute = form("prmt.b32", W, [W; 3], |[a, b, c]| {
        from_bits(32, |i| {
            let selector = c >> (4 * (i / 8)) & 0xf;
            let byte = (b << 32 | a) >> (8 * (selector & 7)) & 0xff;
            if selector & 8 != 0 { bit(byte, 7) } else { bit(byte, i % 8) }
        })
    });
    all.push(permute.over(&[&values, &values, &selectors]));

    permutations(all, &values);
    ranges(all, &values, &shifts);

    for table in 0..256_u64 {
        let text = format!("lop3.b32 {{d}}, {{1}}, {{2}}, {{3}}, {table};");
        let lop3 = form("lop3.b32", W, [W; 3], move |[a, b, c]| {
            from_bits(32, |i| {
                let row =
                    u32::from(bit(a, i)) << 2 | u32::from(bit(b, i)) << 1 | u32::from(bit(c, i));
                bit(table, row)
            })
        });
        all.push(lop3.written(&text).over(&[&values, &values, &values]).at_most(128));
    }
}

/// The other modes of `prmt`: which bytes they give for each value of the selector's low two bits,
/// the highest first, as the PTX ISA lists them.
fn permutations(all: &mut Vec<Form>, values: &[u64]) {
    const MODES: [(&str, [[u32; 4]; 4]); 6] = [
        ("f4e", [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]]),
        ("b4e", [[5, 6, 7, 0], [6, 7, 0, 1], [7, 0, 1, 2], [0, 1, 2, 3]]),
        ("rc8", [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]]),
        ("ecl", [[3, 2, 1, 0], [3, 2, 1, 1], [3, 2, 2, 2], [3, 3, 3, 3]]),
        ("ecr", [[0, 0, 0, 0], [1, 1, 1, 0], [2, 2, 1, 0], [3, 2, 1, 0]]),
        ("rc16", [[1, 0, 1, 0], [3, 2, 3, 2], [1, 0, 1, 0], [3, 2, 3, 2]]),
    ];
    let selectors: Vec<u64> = (0..16).chain([0xffff_fff2, 0x3210, 0x7654]).collect();
    for (mode, table) in MODES {
        let permute = form(&format!("prmt.b32.{mode}"), W, [W; 3], move |[a, b, c]| {
            let bytes = table[(c & 3) as usize];
            bytes.iter().fold(0, |all, byte| all << 8 | (b << 32 | a) >> (8 * byte) & 0xff)
        });
        all.push(permute.over(&[values, values, &selectors]));
    }
}

/// `szext`, `bmsk`, `fns`.
fn ranges(all: &mut Vec<Form>, values: &[u64], shifts: &[u64]) {
    for (mode, wraps) in [("wrap", true), ("clamp", false)] {
        let of = move |v: u64| if wraps { v & 31 } else { v.min(32) } as u32;
        for (name, signed) in [("u32", false), ("s32", true)] {
            let extend = form(&format!("szext.{mode}.{name}"), W, [W; 2], move |[a, b]| {
                let length = of(b);
                let sign = signed && length > 0 && bit(a, length - 1);
                from_bits(32, |i| if i < length { bit(a, i) } else { sign })
            });
            all.push(extend.over(&[values, shifts]));
        }
        let mask = form(&format!("bmsk.{mode}.b32"), W, [W; 2], move |[a, b]| {
            from_bits(32, |i| i >= of(a) && i < of(a) + of(b))
        });
        all.push(mask.over(&[shifts, shifts]));
    }
    // The algorithm of the PTX ISA.
    let find = form("fns.b32", W, [W; 3], |[mask, base, offset]| {
        let (mut position, offset) = (i64::from(base as u32), i64::from(offset as i32));
        if offset == 0 {
            return if position < 32 && bit(mask, position as u32) { base } else { u64::MAX };
        }
        let mut count = offset.abs() - 1;
        while (0..32).contains(&position) {
            if bit(mask, position as u32) {
                if count == 0 {
                    return position as u64;
                }
                count -= 1;
            }
            position += offset.signum();
        }
        u64::MAX
    });
    let bases: Vec<u64> = (0..32).chain([32, 33, 1 << 31]).collect();
    let offsets: Vec<u64> = (-34..=34).map(|i: i32| u64::from(i as u32)).collect();
    all.push(find.over(&[values, &bases, &offsets]).at_most(20_000));
}

fn predicates(all: &mut Vec<Form>) {
    let both = [0_u64, 1];
    let mut two = |name: &str, wanted: fn(u64, u64) -> u64| {
        all.push(form(name, P, [P, P], move |[a, b]| wanted(a, b)).over(&[&both, &both]));
    };
    two("and.pred", |a, b| a & b);
    two("or.pred", |a, b| a | b);
    two("xor.pred", |a, b| a ^ b);
    all.push(form("not.pred", P, [P], |[a]| 1 - a).over(&[&both]));
    all.push(form("mov.pred", P, [P], |[a]| a).over(&[&both]));
    // A 64-bit value and the predicate of a lane do not touch each other.
    let text = "and.pred {d}, {1}, {2}; xor.b64 {e}, {3}, -1;";
    let apart = several("and.pred", text, [P, L], [P, P, L], |[a, b, c]| [a & b, low(!c, 64)]);
    all.push(apart.over(&[&both, &both, &integers(64)]));
}

#[test]
fn bits_are_where_they_should_be() {
    check("bits", &forms());
}
