//! `f32` and `f64` with one rounding, in all four directions; minimum, maximum, signs, roots.

use crate::exact::{
    F32, F64, Format, MODES, Mode, Number, product, quotient, root, same_f32, same_f64,
};
use crate::exact::{saturated, sum};
use crate::form::Kind::{self, L, W};
use crate::form::{Form, check, form};
use crate::values::{Random, f32s, f64s};

/// A float type as the table needs it.
#[derive(Clone, Copy)]
struct Float {
    name: &'static str,
    format: Format,
    kind: Kind,
    same: fn(u64, u64) -> bool,
}

impl Float {
    fn number(self, bits: u64) -> Number {
        Number::decode(bits, self.format)
    }
}

const FLOATS: [Float; 2] = [
    Float { name: "f32", format: F32, kind: W, same: same_f32 },
    Float { name: "f64", format: F64, kind: L, same: same_f64 },
];

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for ty in FLOATS {
        let pool = if ty.kind == W { f32s() } else { f64s() };
        let mut add = |form: Form| all.push(form.all_over(&pool).at_most(12_000).same(ty.same));
        for (rounding, mode) in MODES {
            rounded(&mut add, ty, &format!(".{rounding}"), mode, false);
            if ty.kind == W {
                rounded(&mut add, ty, &format!(".{rounding}.sat"), mode, true);
            }
        }
        // Without a rounding: to nearest.
        let mut unrounded = |form: Form| {
            if !form.opcode.starts_with("fma")
                && !form.opcode.starts_with("mad")
                && !form.opcode.starts_with("div")
            {
                add(form);
            }
        };
        rounded(&mut unrounded, ty, "", Mode::Nearest, false);
        if ty.kind == W {
            rounded(&mut unrounded, ty, ".sat", Mode::Nearest, true);
        }
        signs(&mut add, ty);
        let (format, kind, name) = (ty.format, ty.kind, ty.name);
        add(form(&format!("sqrt.rn.{name}"), kind, [kind], move |[a]| {
            root(&ty.number(a)).encode(format, Mode::Nearest)
        }));
        add(form(&format!("rcp.rn.{name}"), kind, [kind], move |[a]| {
            quotient(&Number::integer(1), &ty.number(a)).encode(format, Mode::Nearest)
        }));
    }
    all
}

/// Addition and its like in one rounding.
fn rounded(add: &mut impl FnMut(Form), ty: Float, rounding: &str, mode: Mode, sat: bool) {
    let Float { name, format, kind, .. } = ty;
    let finish = move |number: Number| {
        let bits = number.encode(format, mode);
        if sat { saturated(bits, format) } else { bits }
    };
    let opcode = |op: &str| format!("{op}{rounding}.{name}");
    add(form(&opcode("add"), kind, [kind; 2], move |[a, b]| {
        finish(sum(&ty.number(a), &ty.number(b), mode))
    }));
    add(form(&opcode("sub"), kind, [kind; 2], move |[a, b]| {
        finish(sum(&ty.number(a), &ty.number(b).negated(), mode))
    }));
    add(form(&opcode("mul"), kind, [kind; 2], move |[a, b]| {
        finish(product(&ty.number(a), &ty.number(b)))
    }));
    if !sat {
        add(form(&opcode("div"), kind, [kind; 2], move |[a, b]| {
            finish(quotient(&ty.number(a), &ty.number(b)))
        }));
    }
    for op in ["fma", "mad"] {
        add(form(&opcode(op), kind, [kind; 3], move |[a, b, c]| {
            finish(sum(&product(&ty.number(a), &ty.number(b)), &ty.number(c), mode))
        }));
    }
}

/// What looks at signs: they count for zeros and are kept for NaN only by `neg`, `abs` and `copysign`.
fn signs(add: &mut impl FnMut(Form), ty: Float) {
    let Float { name, format, kind, .. } = ty;
    let top = 1_u64 << (format.fraction + format.exponent);
    add(form(&format!("neg.{name}"), kind, [kind], move |[a]| a ^ top));
    add(form(&format!("abs.{name}"), kind, [kind], move |[a]| a & !top));
    add(form(&format!("copysign.{name}"), kind, [kind; 2], move |[a, b]| a & top | b & !top));
    for (op, smaller) in [("min", true), ("max", false)] {
        add(form(&format!("{op}.{name}"), kind, [kind; 2], move |[a, b]| {
            let (x, y) = (ty.number(a), ty.number(b));
            // As if -0 lay below +0, and the other one if one is NaN.
            let a_first = match x.order(&y) {
                Some(order) => order.then((b & top).cmp(&(a & top))).is_le() == smaller,
                None => y.is_nan(),
            };
            if a_first { a } else { b }
        }));
    }
}

#[test]
fn arithmetic_is_rounded_once() {
    check("arithmetic", &forms());
}

/// Sums of a product that land beside the middle between two numbers: what is rounded twice goes wrong.
#[test]
fn multiply_add_is_not_rounded_twice() {
    let mut random = Random(7);
    let mut near_ties = Vec::new();
    while near_ties.len() < 300 {
        // Odd factors and a summand whose last place is near the middle of the product's.
        let (a, b) = (random.next() >> 41 | 1 << 22 | 1, random.next() >> 41 | 1 << 22 | 1);
        let scale = |x: u64, by: i32| u64::from((x as f32 * 2_f32.powi(by)).to_bits());
        near_ties.push(scale(a, -23));
        near_ties.push(scale(b, -46));
        near_ties.push(scale(a & !0x7ff, 1));
        near_ties.push(scale(1, -60) | 1 << 31);
    }
    let rows = MODES.map(|(name, mode)| {
        form(&format!("fma.{name}.f32"), W, [W; 3], move |v| {
            let [a, b, c] = v.map(|bits| Number::decode(bits, F32));
            sum(&product(&a, &b), &c, mode).encode(F32, mode)
        })
        .all_over(&near_ties)
        .at_most(40_000)
        .same(same_f32)
    });
    check("near ties", &rows);
}

/// The host's own multiply-add is a third witness.
#[test]
fn multiply_add_is_the_hosts() {
    let narrow = form("fma.rn.f32", W, [W; 3], |v| {
        let [a, b, c] = v.map(|bits| f32::from_bits(bits as u32));
        a.mul_add(b, c).to_bits().into()
    });
    let wide = form("fma.rn.f64", L, [L; 3], |v| {
        let [a, b, c] = v.map(f64::from_bits);
        a.mul_add(b, c).to_bits()
    });
    let mut random = Random(3);
    let some: Vec<u64> = (0..3000).map(|_| random.next()).collect();
    let near_one: Vec<u64> = some.iter().map(|bits| 0x3f00_0000 + (bits & 0x80ff_ffff)).collect();
    check(
        "multiply-add",
        &[
            narrow.all_over(&near_one).at_most(60_000).same(same_f32),
            wide.all_over(&some).at_most(60_000).same(same_f64),
        ],
    );
}
