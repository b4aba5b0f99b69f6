//! The SIMD video instructions: element by element, as the PTX ISA writes them down.

use crate::form::Kind::W;
use crate::form::{Form, check, form};
use crate::integer::Int;
use crate::values::{Random, integers};

const TYPES: [(&str, bool); 2] = [("u32", false), ("s32", true)];

pub type Operation = fn(i128, i128) -> i128;

/// The operations. `vavrg` has no scalar twin.
pub const OPERATIONS: [(&str, Operation); 6] = [
    ("vadd", |a, b| a + b),
    ("vsub", |a, b| a - b),
    ("vavrg", |a, b| if a + b >= 0 { (a + b + 1) >> 1 } else { (a + b) >> 1 }),
    ("vabsdiff", |a, b| if a < b { b - a } else { a - b }),
    ("vmin", |a, b| if a < b { a } else { b }),
    ("vmax", |a, b| if a < b { b } else { a }),
];

pub const COMPARISONS: [(&str, Operation); 6] = [
    ("eq", |a, b| (a == b).into()),
    ("ne", |a, b| (a != b).into()),
    ("lt", |a, b| (a < b).into()),
    ("le", |a, b| (a <= b).into()),
    ("gt", |a, b| (a > b).into()),
    ("ge", |a, b| (a >= b).into()),
];

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for bits in [8, 16] {
        let count = 32 / bits;
        for (a_name, a_signed) in TYPES {
            for (b_name, b_signed) in TYPES {
                let int = |signed| Int { name: "", bits, signed };
                let from = [a_signed, b_signed].map(int);
                for (name, operation) in OPERATIONS {
                    for (d_name, signed) in TYPES {
                        let opcode = format!("{name}{count}.{d_name}.{a_name}.{b_name}");
                        rows(&mut all, &opcode, (from, int(signed)), operation, true);
                    }
                }
                for (name, operation) in COMPARISONS {
                    let opcode = format!("vset{count}.{a_name}.{b_name}.{name}");
                    rows(&mut all, &opcode, (from, int(false)), operation, false);
                }
            }
        }
    }
    all
}

/// The results side by side, clamped if there is such a form, and summed up.
fn rows(
    all: &mut Vec<Form>,
    opcode: &str,
    (from, to): ([Int; 2], Int),
    operation: Operation,
    clamps: bool,
) {
    let bits = to.bits;
    let result = move |a: u64, b: u64, i: u32| {
        operation(from[0].value(a >> (bits * i)), from[1].value(b >> (bits * i)))
    };
    let side_by_side = move |values: &dyn Fn(u32) -> i128| {
        (0..32 / bits).fold(0, |all, i| all | (values(i) as u64 & ((1 << bits) - 1)) << (bits * i))
    };
    let mut random = Random(9);
    let pool: Vec<u64> =
        integers(32).into_iter().chain((0..40).map(|_| random.next() & 0xffff_ffff)).collect();
    let mut add = |form: Form| all.push(form.all_over(&pool).at_most(2000));
    add(form(opcode, W, [W; 3], move |[a, b, _]| side_by_side(&|i| result(a, b, i))));
    if clamps {
        add(form(&format!("{opcode}.sat"), W, [W; 3], move |[a, b, _]| {
            side_by_side(&|i| result(a, b, i).clamp(to.least(), to.greatest()))
        }));
    }
    add(form(&format!("{opcode}.add"), W, [W; 3], move |[a, b, c]| {
        (i128::from(c) + (0..32 / bits).map(|i| result(a, b, i)).sum::<i128>()) as u64
    }));
}

#[test]
fn bytes_and_halves_are_apart() {
    check("bytes and halves", &forms());
}
