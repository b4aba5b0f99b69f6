//! The approximate functions: those of f32 bit by bit, others within what the PTX ISA allows a GPU.

use crate::exact::{
    BF16, F16, F32, F64, Mode, Number, encode_flushed, flushed, product, same_f32, same_f64,
};
use crate::form::Kind::{H, L, W};
use crate::form::{Form, check, form};
use crate::values::{f32s, f64s};
use simt::special;

/// A function of the bits of f32, with subnormal numbers flushed or not, and its name.
pub type Function = (&'static str, fn(u32, bool) -> u32);

/// Their results are compared with a GPU's in `special_functions`.
pub const FUNCTIONS: [Function; 8] = [
    ("ex2", special::ex2),
    ("lg2", special::lg2),
    ("rcp", special::rcp),
    ("rsqrt", special::rsqrt),
    ("sqrt", special::sqrt),
    ("sin", |x, _| special::sin(x)),
    ("cos", |x, _| special::cos(x)),
    ("tanh", |x, _| special::tanh(x)),
];

type Wide = fn(f64) -> f64;
const WIDE: [(&str, Wide); 2] = [("rcp", |x| 1.0 / x), ("rsqrt", |x| 1.0 / x.sqrt())];

/// `div.approx` and `div.full`, of exact products: the dividend times the unit's reciprocal, both
/// scaled before where it has none.
fn divided(full: bool, ftz: bool, [a, b]: [u64; 2]) -> u64 {
    const LARGE: f32 = f32::from_bits(0x7e80_0000);
    let encode = |number: &Number| match ftz {
        true => encode_flushed(number, F32, Mode::Nearest),
        false => number.encode(F32, Mode::Nearest),
    };
    let decode = |bits: u64| Number::decode(if ftz { flushed(bits, F32) } else { bits }, F32);
    let magnitude = f32::from_bits(b as u32).abs();
    let scale = match magnitude {
        _ if full && magnitude > LARGE => 0.25_f32,
        _ if !ftz && magnitude < f32::MIN_POSITIVE => 16_777_216.0,
        _ => 1.0,
    };
    let scale = Number::decode(scale.to_bits().into(), F32);
    let [a, b] = [a, b].map(|bits| encode(&product(&decode(bits), &scale)));
    let reciprocal = special::rcp(b as u32, true).into();
    encode(&product(&Number::decode(a, F32), &Number::decode(reciprocal, F32)))
}

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    let narrow = f32s();
    for (name, function) in FUNCTIONS {
        for (ending, ftz) in [("", false), (".ftz", true)] {
            if ftz && name == "tanh" {
                continue;
            }
            let bits = move |[a]: [u64; 1]| function(a as u32, ftz).into();
            let text = format!("{name}.approx{ending}.f32");
            all.push(form(&text, W, [W], bits).over(&[&narrow]));
        }
    }
    for name in ["approx", "full", "approx.ftz", "full.ftz"] {
        let (full, ftz) = (name.starts_with("full"), name.ends_with("ftz"));
        let divide = move |operands| divided(full, ftz, operands);
        let text = format!("div.{name}.f32");
        all.push(form(&text, W, [W; 2], divide).all_over(&narrow).same(same_f32));
    }

    let wide = f64s();
    let rsqrt = |[a]: [u64; 1]| (1.0 / f64::from_bits(a).sqrt()).to_bits();
    all.push(form("rsqrt.approx.f64", L, [L], rsqrt).over(&[&wide]).same(same_f64));
    for (name, function) in WIDE {
        let coarse = move |[a]: [u64; 1]| {
            let flushed = |x: f64| if x.is_subnormal() { 0.0_f64.copysign(x) } else { x };
            let value = flushed(function(flushed(f64::from_bits(a))));
            value.to_bits()
        };
        let close: fn(u64, u64) -> bool = |got, wanted| {
            let nan = f64::from_bits(got).is_nan() && f64::from_bits(wanted).is_nan();
            // The low word is zero, and the high one within one of what was wanted.
            nan || got & 0xffff_ffff == 0 && (got >> 32).abs_diff(wanted >> 32) <= 1
        };
        all.push(
            form(&format!("{name}.approx.ftz.f64"), L, [L], coarse).over(&[&wide]).same(close),
        );
    }
    halves(&mut all);
    all
}

/// `ex2` and `tanh` of halves: those of f32, which are nearly exact, rounded; so at most one unit
/// from what is exact and rounded.
fn halves(all: &mut Vec<Form>) {
    let functions: [(&str, Wide); 2] = [("ex2", f64::exp2), ("tanh", f64::tanh)];
    for (ty, format) in [("f16", F16), ("bf16", BF16)] {
        for (name, function) in functions {
            let ftz = ty == "bf16" && name == "ex2";
            let one = move |bits: u64| {
                let flush = |bits| if ftz { flushed(bits, format) } else { bits };
                let value = Number::decode(flush(bits & 0xffff), format);
                let value = function(f64::from_bits(value.encode(F64, Mode::Nearest)));
                let value = Number::decode(value.to_bits(), F64);
                if value.is_nan() { 0x7fff } else { flush(value.encode(format, Mode::Nearest)) }
            };
            let near: fn(u64, u64) -> bool = |got, wanted| {
                // Half by half; a sign is never another one.
                [0, 16].iter().all(|by| {
                    let [got, wanted] = [got, wanted].map(|bits| bits >> by & 0xffff);
                    got >> 15 == wanted >> 15 && got.abs_diff(wanted) <= 1
                })
            };
            let opcode = format!("{name}.approx{}.{ty}", if ftz { ".ftz" } else { "" });
            let every: Vec<u64> = (0..=0xffff).collect();
            let single = form(&opcode, H, [H], move |[a]| one(a)).over(&[&every]);
            all.push(single.at_most(1 << 16).same(near));
            let pair = form(&format!("{opcode}x2"), W, [W], move |[a]| one(a >> 16) << 16 | one(a));
            let pairs: Vec<u64> =
                every.iter().map(|a| a << 16 | (a * 40503 + 7) & 0xffff).collect();
            all.push(pair.over(&[&pairs]).at_most(1 << 16).same(near));
        }
    }
}

#[test]
fn approximations_are_close_and_exact_where_it_matters() {
    check("approximate functions", &forms());
}

#[test]
fn special_values_are_as_the_isa_says() {
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    const TABLE: [(&str, &[(f32, f32)]); 8] = [
        ("ex2", &[(-INF, 0.0), (-0.0, 1.0), (0.0, 1.0), (INF, INF), (NAN, NAN), (10.0, 1024.0)]),
        ("lg2", &[(-INF, NAN), (-1.0, NAN), (-0.0, -INF), (0.0, -INF), (INF, INF), (1.0, 0.0)]),
        ("rcp", &[(-INF, -0.0), (-0.0, -INF), (0.0, INF), (INF, 0.0), (4.0, 0.25)]),
        ("rsqrt", &[(-INF, NAN), (-0.0, -INF), (0.0, INF), (INF, 0.0), (-1.0, NAN), (4.0, 0.5)]),
        ("sqrt", &[(-INF, NAN), (-0.0, -0.0), (0.0, 0.0), (INF, INF), (-1.0, NAN), (4.0, 2.0)]),
        ("sin", &[(-INF, NAN), (-0.0, -0.0), (0.0, 0.0), (INF, NAN)]),
        ("cos", &[(-INF, NAN), (-0.0, 1.0), (0.0, 1.0), (INF, NAN)]),
        ("tanh", &[(-INF, -1.0), (-0.0, -0.0), (0.0, 0.0), (INF, 1.0), (NAN, NAN)]),
    ];
    let rows = TABLE.map(|(name, values)| {
        let pool: Vec<u64> = values.iter().map(|(x, _)| x.to_bits().into()).collect();
        let wanted = move |[a]: [u64; 1]| {
            let of = |(x, _): &&(f32, f32)| u64::from(x.to_bits()) == a;
            values.iter().find(of).map_or(0, |(_, y)| y.to_bits().into())
        };
        form(&format!("{name}.approx.f32"), W, [W], wanted).over(&[&pool]).same(same_f32)
    });
    check("special values", &rows);
}

/// Quotients as an H100 gave them: above the nearest number, below it, and with a reciprocal that
/// is not the unit's.
#[test]
fn quotients_are_those_of_a_gpu() {
    const OPERANDS: [[u32; 2]; 6] = [
        [0x41b0_0000, 0x40e0_0000], // 22 / 7
        [0x41e8_0000, 0x4214_0000], // 29 / 37
        [0x4049_0fdb, 0x7f00_0000],
        [0x7f80_0000, 0x7f00_0001],
        [0x0000_0001, 0x0040_0000],
        [0x0080_0000, 0x4049_0fdb],
    ];
    const NAN: u32 = 0x7fff_ffff;
    const RESULTS: [(&str, [u32; 6]); 4] = [
        ("approx", [0x4049_2493, 0x3f48_a60d, 0, NAN, 0x3480_0000, 0x0028_be61]),
        ("approx.ftz", [0x4049_2493, 0x3f48_a60d, 0, NAN, NAN, 0]),
        ("full", [0x4049_2493, 0x3f48_a60d, 0x00c9_0fdb, 0x7f80_0000, 0x3480_0000, 0x0028_be61]),
        ("full.ftz", [0x4049_2493, 0x3f48_a60d, 0x00c9_0fdb, 0x7f80_0000, NAN, 0]),
    ];
    for (number, operands) in OPERANDS.iter().enumerate() {
        let [a, b] = operands.map(u64::from);
        let rows = RESULTS.map(|(name, results)| {
            form(&format!("div.{name}.f32"), W, [W; 2], move |_| results[number].into())
                .over(&[&[a], &[b]])
                .same(same_f32)
        });
        check(&format!("quotient {number}"), &rows);
    }
}
