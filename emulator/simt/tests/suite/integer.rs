//! Integer arithmetic, by 128-bit integers.

use crate::form::Kind::{self, L, W};
use crate::form::{Form, check, form};
use crate::values::low;

/// An integer type: its name, width, and whether it is signed.
#[derive(Debug, Clone, Copy)]
pub struct Int {
    pub name: &'static str,
    pub bits: u32,
    pub signed: bool,
}

pub const INTS: [Int; 6] = [
    Int { name: "u16", bits: 16, signed: false },
    Int { name: "s16", bits: 16, signed: true },
    Int { name: "u32", bits: 32, signed: false },
    Int { name: "s32", bits: 32, signed: true },
    Int { name: "u64", bits: 64, signed: false },
    Int { name: "s64", bits: 64, signed: true },
];

impl Int {
    pub fn kind(self) -> Kind {
        Kind::of_bits(self.bits)
    }

    /// The number that bits of this type mean.
    pub fn value(self, bits: u64) -> i128 {
        let value = i128::from(low(bits, self.bits));
        if self.signed && value >> (self.bits - 1) == 1 { value - (1 << self.bits) } else { value }
    }

    pub fn least(self) -> i128 {
        if self.signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    pub fn greatest(self) -> i128 {
        (1 << (self.bits - u32::from(self.signed))) - 1
    }

    /// All bits of a product, of twice the width.
    pub fn product(self, a: u64, b: u64) -> u128 {
        if self.signed {
            (self.value(a) * self.value(b)) as u128
        } else {
            u128::from(low(a, self.bits)) * u128::from(low(b, self.bits))
        }
    }
}

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for ty in INTS {
        two(&mut all, ty, "add", move |a, b| (ty.value(a) + ty.value(b)) as u64);
        two(&mut all, ty, "sub", move |a, b| (ty.value(a) - ty.value(b)) as u64);
        two(&mut all, ty, "mul.lo", move |a, b| ty.product(a, b) as u64);
        two(&mut all, ty, "mul.hi", move |a, b| (ty.product(a, b) >> ty.bits) as u64);
        two(&mut all, ty, "min", move |a, b| ty.value(a).min(ty.value(b)) as u64);
        two(&mut all, ty, "max", move |a, b| ty.value(a).max(ty.value(b)) as u64);
        // Divided by zero, which PTX leaves open: all ones, as on an H100.
        two(&mut all, ty, "div", move |a, b| {
            ty.value(a).checked_div(ty.value(b)).map_or(u64::MAX, |quotient| quotient as u64)
        });
        two(&mut all, ty, "rem", move |a, b| {
            ty.value(a).checked_rem(ty.value(b)).map_or(u64::MAX, |rest| rest as u64)
        });
        let kind = ty.kind();
        let mut mad = |half: &str, shift: u32| {
            let opcode = format!("mad.{half}.{}", ty.name);
            all.push(form(&opcode, kind, [kind; 3], move |[a, b, c]| {
                ((ty.product(a, b) >> shift) as u64).wrapping_add(c)
            }));
        };
        mad("lo", 0);
        mad("hi", ty.bits);
        if ty.signed {
            let abs = move |[a]: [u64; 1]| ty.value(a).unsigned_abs() as u64;
            all.push(form(&format!("abs.{}", ty.name), kind, [kind], abs));
            let neg = move |[a]: [u64; 1]| -ty.value(a) as u64;
            all.push(form(&format!("neg.{}", ty.name), kind, [kind], neg));
        }
        if ty.bits < 64 {
            let product = Kind::of_bits(2 * ty.bits);
            let opcode = format!("mul.wide.{}", ty.name);
            all.push(form(&opcode, product, [kind; 2], move |[a, b]| ty.product(a, b) as u64));
            let opcode = format!("mad.wide.{}", ty.name);
            all.push(form(&opcode, product, [kind, kind, product], move |[a, b, c]| {
                (ty.product(a, b) as u64).wrapping_add(c)
            }));
        }
        all.push(form(&format!("sad.{}", ty.name), kind, [kind; 3], move |[a, b, c]| {
            c.wrapping_add((ty.value(a) - ty.value(b)).unsigned_abs() as u64)
        }));
        if ty.bits == 32 {
            of_24_bits(&mut all, ty);
        }
    }
    dot_products(&mut all);
    all
}

/// The low 24 bits of both factors, and 32 of the 48 bits of the product.
fn of_24_bits(all: &mut Vec<Form>, ty: Int) {
    let short = Int { bits: 24, ..ty };
    for (half, shift) in [("lo", 0), ("hi", 16)] {
        let product = move |a, b| (short.value(a) * short.value(b)) >> shift;
        let opcode = format!("mul24.{half}.{}", ty.name);
        all.push(form(&opcode, W, [W; 2], move |[a, b]| product(a, b) as u64));
        let opcode = format!("mad24.{half}.{}", ty.name);
        all.push(form(&opcode, W, [W; 3], move |[a, b, c]| (product(a, b) as u64).wrapping_add(c)));
        if half == "hi" && ty.signed {
            all.push(form("mad24.hi.sat.s32", W, [W; 3], move |[a, b, c]| {
                let sum = ty.value(product(a, b) as u64) + ty.value(c);
                sum.clamp(ty.least(), ty.greatest()) as u64
            }));
        }
    }
}

/// `dp4a`, and `dp2a` with the lower or the upper bytes of the second operand.
fn dot_products(all: &mut Vec<Form>) {
    for (a_name, a_signed) in [("u32", false), ("s32", true)] {
        for (b_name, b_signed) in [("u32", false), ("s32", true)] {
            let rows = [("dp4a", 8, 4, 0), ("dp2a.lo", 16, 2, 0), ("dp2a.hi", 16, 2, 2)];
            for (name, bits, count, first) in rows {
                let part = Int { name: "", bits, signed: a_signed };
                let byte = Int { name: "", bits: 8, signed: b_signed };
                let opcode = format!("{name}.{a_name}.{b_name}");
                all.push(form(&opcode, W, [W; 3], move |[a, b, c]| {
                    let term =
                        |i: u32| part.value(a >> (bits * i)) * byte.value(b >> (8 * (first + i)));
                    (i128::from(c) + (0..count).map(term).sum::<i128>()) as u64
                }));
            }
        }
    }
}

fn two(all: &mut Vec<Form>, ty: Int, name: &str, wanted: impl Fn(u64, u64) -> u64 + 'static) {
    let kind = ty.kind();
    all.push(form(&format!("{name}.{}", ty.name), kind, [kind; 2], move |[a, b]| wanted(a, b)));
}

#[test]
fn integers_wrap_extend_and_divide() {
    check("integers", &forms());
}

#[test]
fn literals_of_every_notation_are_operands() {
    let literal = |text: &str, value: u64| {
        form("add.u64", L, [L], move |[a]| a.wrapping_add(value))
            .written(&format!("add.u64 {{d}}, {{1}}, {text};"))
    };
    check(
        "literals",
        &[
            literal("17", 17),
            literal("-1", u64::MAX),
            literal("0x1F", 0x1f),
            literal("0b101", 5),
            literal("017", 0o17),
            literal("0xffffffffffffffff", u64::MAX),
            literal("-9223372036854775808", 1 << 63),
            literal("4294967296U", 1 << 32),
        ],
    );
}
