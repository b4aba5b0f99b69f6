//! `f32` and `f64` with one rounding, in all four directions; minimum, maximum, signs, roots.

use crate::exact::{F32, F64, Format, MODES, Mode, Number, product, quotient, root, sum};
use crate::exact::{encode_flushed, flushed, same_f32, same_f64, saturated};
use crate::form::Kind::{self, L, W};
use crate::form::{Form, check, form};
use crate::values::{Random, f32s, f64s};

/// A float type as the table needs it.
#[derive(Clone, Copy)]
struct Float {
    name: &'static str,
    /// `.ftz`: subnormal operands and results are zeros.
    ftz: &'static str,
    format: Format,
    kind: Kind,
    same: fn(u64, u64) -> bool,
}

impl Float {
    fn operand(self, bits: u64) -> u64 {
        if self.ftz.is_empty() { bits } else { flushed(bits, self.format) }
    }

    fn number(self, bits: u64) -> Number {
        Number::decode(self.operand(bits), self.format)
    }

    fn encode(self, number: &Number, mode: Mode) -> u64 {
        match self.ftz {
            "" => number.encode(self.format, mode),
            _ => encode_flushed(number, self.format, mode),
        }
    }

    fn pool(self) -> Vec<u64> {
        let mut pool = if self.kind == W { f32s() } else { f64s() };
        if !self.ftz.is_empty() {
            // Numbers around 2^-63, whose products are around the smallest normal one.
            pool.extend((0x1fff_fffc..0x2000_0004).flat_map(|bits| [bits, bits | 1 << 31]));
            // Two whose product only rounds to it.
            pool.extend([0x1fff_f800, 0x2000_0400]);
        }
        pool
    }
}

const FLOATS: [Float; 3] = [
    Float { name: "f32", ftz: "", format: F32, kind: W, same: same_f32 },
    Float { name: "f32", ftz: ".ftz", format: F32, kind: W, same: same_f32 },
    Float { name: "f64", ftz: "", format: F64, kind: L, same: same_f64 },
];

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for ty in FLOATS {
        let pool = ty.pool();
        let mut add = |form: Form| all.push(form.all_over(&pool).at_most(12_000).same(ty.same));
        for (rounding, mode) in MODES {
            let rounding = format!(".{rounding}");
            rounded(&mut add, ty, &rounding, mode, false);
            if ty.kind == W {
                rounded(&mut add, ty, &rounding, mode, true);
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
            rounded(&mut unrounded, ty, "", Mode::Nearest, true);
        }
        signs(&mut add, ty);
        let (kind, name, ftz) = (ty.kind, ty.name, ty.ftz);
        add(form(&format!("sqrt.rn{ftz}.{name}"), kind, [kind], move |[a]| {
            ty.encode(&root(&ty.number(a)), Mode::Nearest)
        }));
        add(form(&format!("rcp.rn{ftz}.{name}"), kind, [kind], move |[a]| {
            ty.encode(&quotient(&Number::integer(1), &ty.number(a)), Mode::Nearest)
        }));
    }
    all
}

/// Addition and its like in one rounding.
fn rounded(add: &mut impl FnMut(Form), ty: Float, rounding: &str, mode: Mode, sat: bool) {
    let Float { name, ftz, format, kind, .. } = ty;
    let finish = move |number: Number| {
        let bits = ty.encode(&number, mode);
        if sat { saturated(bits, format) } else { bits }
    };
    let suffix = if sat { ".sat" } else { "" };
    let opcode = |op: &str| format!("{op}{rounding}{ftz}{suffix}.{name}");
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

/// Instructions that look at signs. Zeros have signs; only `neg`, `abs` and `copysign` keep the
/// signs of NaN.
fn signs(add: &mut impl FnMut(Form), ty: Float) {
    let Float { name, ftz, format, kind, .. } = ty;
    let top = 1_u64 << (format.fraction + format.exponent);
    add(form(&format!("neg{ftz}.{name}"), kind, [kind], move |[a]| ty.operand(a) ^ top));
    add(form(&format!("abs{ftz}.{name}"), kind, [kind], move |[a]| ty.operand(a) & !top));
    if ftz.is_empty() {
        add(form(&format!("copysign.{name}"), kind, [kind; 2], move |[a, b]| a & top | b & !top));
    }
    let nans = [("", false), (".NaN", true)];
    let rows = [("min", true), ("max", false)].map(|row| nans.map(|nan| (row, nan)));
    for ((op, smaller), (suffix, passes_on)) in rows.into_iter().flatten() {
        if passes_on && kind == L {
            continue;
        }
        add(form(&format!("{op}{ftz}{suffix}.{name}"), kind, [kind; 2], move |[a, b]| {
            let [a, b] = [a, b].map(|bits| ty.operand(bits));
            let (x, y) = (ty.number(a), ty.number(b));
            // As if -0 lay below +0, and the other one if one is NaN.
            let a_first = match x.order(&y) {
                Some(order) => order.then((b & top).cmp(&(a & top))).is_le() == smaller,
                None if passes_on => return Number::Nan.encode(format, Mode::Nearest),
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

/// Sums of a product that land beside the middle between two numbers: what is rounded twice goes
/// wrong.
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
