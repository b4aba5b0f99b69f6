//! The scalar video instructions, as the PTX ISA writes them down: parts of operands, bounds, and
//! what is done with the result.

use crate::form::Kind::W;
use crate::form::{Form, check, form};
use crate::integer::Int;
use crate::simd::{COMPARISONS, OPERATIONS, Operation};
use crate::values::integers;

const TYPES: [Int; 2] =
    [Int { name: "u32", bits: 32, signed: false }, Int { name: "s32", bits: 32, signed: true }];

/// Parts of a word: what is written behind a register, where they begin, and their bits.
const PARTS: [(&str, u32, u32); 7] = [
    ("", 0, 32),
    (".b0", 0, 8),
    (".b1", 8, 8),
    (".b2", 16, 8),
    (".b3", 24, 8),
    (".h0", 0, 16),
    (".h1", 16, 16),
];

const SHIFTS: [(&str, &str, Operation); 4] = [
    ("vshl", ".clamp", |a, b| a * (1 << b.min(32))),
    ("vshl", ".wrap", |a, b| a * (1 << (b % 32))),
    ("vshr", ".clamp", |a, b| a.div_euclid(1 << b.min(32))),
    ("vshr", ".wrap", |a, b| a.div_euclid(1 << (b % 32))),
];

fn part(bits: u64, (_, first, count): (&str, u32, u32), signed: bool) -> i128 {
    Int { name: "", bits: count, signed }.value(bits >> first)
}

/// The types of an instruction, and the parts that it takes: of `a`, `b` and the result.
#[derive(Clone, Copy)]
struct Shape {
    types: [Int; 2],
    parts: [(&'static str, u32, u32); 3],
}

impl Shape {
    fn result(self, operation: Operation, a: u64, b: u64) -> i128 {
        let [ta, tb] = self.types;
        let [pa, pb, (_, _, bits)] = self.parts;
        let value = operation(part(a, pa, ta.signed), part(b, pb, tb.signed));
        value & ((1 << bits) - 1)
    }
}

/// With nothing behind the result, with each operation that may be, and with the result in the
/// place of a part.
fn rows(all: &mut Vec<Form>, opcode: &str, shape: Shape, operation: Operation) {
    let [(pa, ..), (pb, ..), (pd, first, bits)] = shape.parts;
    let whole = Shape { parts: [shape.parts[0], shape.parts[1], PARTS[0]], ..shape };
    let text = format!("{opcode} {{d}}, {{1}}{pa}, {{2}}{pb};");
    let plain = form(opcode, W, [W; 2], move |[a, b]| whole.result(operation, a, b) as u64);
    all.push(plain.written(&text).at_most(300));
    if !pd.is_empty() {
        let text = format!("{opcode} {{d}}{pd}, {{1}}{pa}, {{2}}{pb}, {{3}};");
        let merged = form(opcode, W, [W; 3], move |[a, b, c]| {
            let mask = ((1 << bits) - 1) << first;
            c & !mask | (shape.result(operation, a, b) as u64) << first & mask
        });
        all.push(merged.written(&text).at_most(300));
    }
    let opcode = format!("{opcode}.add");
    let text = format!("{opcode} {{d}}, {{1}}{pa}, {{2}}{pb}, {{3}};");
    let row = form(&opcode, W, [W; 3], move |[a, b, c]| {
        (whole.result(operation, a, b) + i128::from(c)) as u64
    });
    all.push(row.written(&text).at_most(300));
}

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    // Each combination of types takes the next parts.
    let mut number = 0;
    let mut parts = move || {
        number += 1;
        [number % 7, number / 2 % 7, number / 3 % 7].map(|i| PARTS[i])
    };
    for ta in TYPES {
        for tb in TYPES {
            for td in TYPES {
                let scalar = OPERATIONS.into_iter().filter(|(name, _)| *name != "vavrg");
                let scalar = scalar.map(|(name, operation)| (name, "", operation));
                for (name, mode, operation) in scalar.chain(SHIFTS) {
                    if mode.is_empty() || !tb.signed {
                        let (a, b, d) = (ta.name, tb.name, td.name);
                        let opcode = format!("{name}.{d}.{a}.{b}{mode}");
                        let shape = Shape { types: [ta, tb], parts: parts() };
                        rows(&mut all, &opcode, shape, operation);
                    }
                }
                for more in ["", ".po"] {
                    multiply_add(&mut all, [ta, tb, td], parts(), more);
                }
            }
            for (name, operation) in COMPARISONS {
                let opcode = format!("vset.{}.{}.{name}", ta.name, tb.name);
                let shape = Shape { types: [ta, tb], parts: parts() };
                rows(&mut all, &opcode, shape, operation);
            }
        }
    }
    all
}

fn multiply_add(
    all: &mut Vec<Form>,
    [ta, tb, td]: [Int; 3],
    [pa, pb, _]: [(&'static str, u32, u32); 3],
    more: &'static str,
) {
    let opcode = format!("vmad.{}.{}.{}{more}", td.name, ta.name, tb.name);
    let text = format!("{opcode} {{d}}, {{1}}{}, {{2}}{}, {{3}};", pa.0, pb.0);
    let row = form(&opcode, W, [W; 3], move |[a, b, c]| {
        let product = part(a, pa, ta.signed) * part(b, pb, tb.signed);
        (product + i128::from(c) + i128::from(!more.is_empty())) as u64
    });
    all.push(row.written(&text).all_over(&integers(32)).at_most(300));
}

#[test]
fn parts_of_words_are_taken_and_replaced() {
    check("scalar video instructions", &forms());
}
