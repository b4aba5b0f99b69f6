//! `cvt`: all pairs of types, roundings and saturation.
//!
//! A conversion is defined here by `exact`: the operand is decoded to a number of any size, which
//! is rounded once to the type of the result. The emulator uses the host's floating point instead,
//! so that the two share no code. The operands are the numbers of `values`, at which conversions
//! begin to round or to overflow. Pairs that are refused are in `cases/refusals.ptx`.

use crate::exact::{self, BF16, F16, F32, F64, Format, MODES, Mode, Number};
use crate::exact::{encode_flushed, flushed, saturated};
use crate::form::Kind::{self, H, L, W};
use crate::form::{Form, check, form, several};
use crate::integer::{INTS, Int};
use crate::values::{floats, integers, low};

const BYTES: [Int; 2] =
    [Int { name: "u8", bits: 8, signed: false }, Int { name: "s8", bits: 8, signed: true }];

/// A float type that is converted.
#[derive(Debug, Clone, Copy)]
struct Float {
    name: &'static str,
    format: Format,
    kind: Kind,
    /// Its subnormal numbers are zeros: f32 beside `.ftz`.
    flushes: bool,
}

const HALF: Float = Float { name: "f16", format: F16, kind: H, flushes: false };
const BRAIN: Float = Float { name: "bf16", format: BF16, kind: H, flushes: false };
const SINGLE: Float = Float { name: "f32", format: F32, kind: W, flushes: false };
const FLUSHED: Float = Float { flushes: true, ..SINGLE };
const DOUBLE: Float = Float { name: "f64", format: F64, kind: L, flushes: false };

impl Float {
    fn pool(self) -> Vec<u64> {
        floats(self.format.fraction, self.format.exponent)
    }

    fn number(self, bits: u64) -> Number {
        Number::decode(self.flush(bits), self.format)
    }

    fn encode(self, number: &Number, mode: Mode) -> u64 {
        match self.flushes {
            true => encode_flushed(number, self.format, mode),
            false => number.encode(self.format, mode),
        }
    }

    fn flush(self, bits: u64) -> u64 {
        if self.flushes { flushed(bits, self.format) } else { bits }
    }

    fn same(self) -> fn(u64, u64) -> bool {
        match self.format {
            F16 => exact::same_f16,
            BF16 => exact::same_bf16,
            F32 => exact::same_f32,
            _ => exact::same_f64,
        }
    }
}

fn ints() -> impl Iterator<Item = Int> {
    BYTES.into_iter().chain(INTS)
}

/// The registers that a source of an integer type may lie in: it may be narrower than they are.
fn sources(ty: Int) -> &'static [Kind] {
    match ty.bits {
        8 | 16 => &[H, W, L],
        32 => &[W, L],
        _ => &[L],
    }
}

/// The registers that a result may go to, extended by its sign or by zeros.
fn destinations(ty: Int) -> &'static [Kind] {
    match ty.bits {
        8 | 16 => &[H, W],
        32 => &[W],
        _ => &[L],
    }
}

/// `tf32`: an `f32` of 10 bits of fraction; ties go away from zero, or to even.
fn to_tf32(all: &mut Vec<Form>) {
    let format = exact::Format { fraction: 10, exponent: 8 };
    for (name, relu) in [("rna", false), ("rn", false), ("rz", false), ("rn", true), ("rz", true)] {
        let wanted = move |[a]: [u64; 1]| {
            let number = Number::decode(a, F32);
            let bits = match name {
                "rz" => number.encode(format, Mode::Zero),
                "rn" => number.encode(format, Mode::Nearest),
                // Nearest, and the larger size of two that are as near.
                _ => {
                    let zero = number.encode(format, Mode::Zero);
                    let value = f64::from(f32::from_bits(a as u32)).abs();
                    let bound = |bits: u64| f64::from(f32::from_bits((bits << 13) as u32)).abs();
                    let exact = bound(zero) == value || value.is_infinite();
                    // Behind the largest number there is infinity, as near as the next one would
                    // be.
                    let (low, high) = (bound(zero), bound(zero + 1));
                    let high = if high.is_infinite() { 2_f64.powi(128) } else { high };
                    if !exact && value >= (low + high) / 2.0 { zero + 1 } else { zero }
                }
            };
            // As an H100 was seen to give it.
            let nan = if name == "rna" { a & 0xffff_e000 } else { 0x7fff_e000 };
            let bits = if number.is_nan() { nan } else { bits << 13 };
            if relu && bits >> 31 == 1 { 0 } else { bits }
        };
        let opcode = format!("cvt.{name}{}.tf32.f32", if relu { ".relu" } else { "" });
        all.push(form(&opcode, W, [W], wanted).over(&[&crate::values::f32s()]));
    }
}

const SATURATIONS: [(&str, bool); 2] = [("", false), (".sat", true)];

pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    to_tf32(&mut all);
    for to in ints() {
        for from in ints() {
            between_integers(&mut all, to, from);
        }
        for from in [HALF, BRAIN, SINGLE, FLUSHED, DOUBLE] {
            if from.name != "bf16" || to.bits > 8 {
                to_integer(&mut all, to, from);
            }
        }
        for float in [HALF, BRAIN, SINGLE, FLUSHED, DOUBLE] {
            if float.name != "bf16" || to.bits > 8 {
                to_float(&mut all, float, to);
            }
        }
    }
    let narrower = [(HALF, SINGLE), (HALF, FLUSHED), (HALF, DOUBLE)];
    for (to, from) in narrower.into_iter().chain([(SINGLE, DOUBLE), (FLUSHED, DOUBLE)]) {
        for (rounding, mode) in MODES {
            between_floats(&mut all, to, from, &format!(".{rounding}"), mode, false);
        }
    }
    for (rounding, mode) in MODES {
        for (to, from) in
            [(BRAIN, SINGLE), (BRAIN, FLUSHED), (BRAIN, DOUBLE), (BRAIN, HALF), (HALF, BRAIN)]
        {
            between_floats(&mut all, to, from, &format!(".{rounding}"), mode, false);
        }
    }
    for (rounding, mode) in &MODES[..2] {
        for to in [HALF, BRAIN] {
            rectified(&mut all, to, rounding, *mode);
        }
    }
    let exactly =
        [(SINGLE, HALF), (DOUBLE, HALF), (DOUBLE, SINGLE), (SINGLE, BRAIN), (DOUBLE, BRAIN)];
    let flushing = [(FLUSHED, HALF), (DOUBLE, FLUSHED), (FLUSHED, FLUSHED), (FLUSHED, BRAIN)];
    let same = [HALF, BRAIN, SINGLE, DOUBLE].map(|ty| (ty, ty));
    for (to, from) in exactly.into_iter().chain(flushing).chain(same) {
        between_floats(&mut all, to, from, "", Mode::Nearest, false);
    }
    for ty in [HALF, BRAIN, SINGLE, FLUSHED, DOUBLE] {
        for (rounding, mode) in MODES {
            between_floats(&mut all, ty, ty, &format!(".{rounding}i"), mode, true);
        }
    }
    for (name, ty) in [("f16x2", HALF), ("bf16x2", BRAIN)] {
        for (rounding, mode) in &MODES[..2] {
            for relu in ["", ".relu"] {
                let opcode = format!("cvt.{rounding}{relu}.{name}.f32");
                pairs(&mut all, &opcode, ty, *mode, !relu.is_empty());
            }
        }
    }
    all
}

/// The result of `.relu`: +0 for a negative number.
fn not_negative(bits: u64, ty: Float) -> u64 {
    if bits >> 15 & 1 == 1 && !Number::decode(bits, ty.format).is_nan() { 0 } else { bits }
}

fn rectified(all: &mut Vec<Form>, to: Float, rounding: &str, mode: Mode) {
    let opcode = format!("cvt.{rounding}.relu.{}.f32", to.name);
    let wanted = move |[a]: [u64; 1]| not_negative(to.encode(&SINGLE.number(a), mode), to);
    all.push(form(&opcode, H, [W], wanted).over(&[&SINGLE.pool()]).same(to.same()));
}

fn between_integers(all: &mut Vec<Form>, to: Int, from: Int) {
    // Where every value fits, nothing can be saturated.
    let fits = to.least() <= from.least() && from.greatest() <= to.greatest();
    for (suffix, sat) in if fits { &SATURATIONS[..1] } else { &SATURATIONS } {
        let (opcode, sat) = (format!("cvt{suffix}.{}.{}", to.name, from.name), *sat);
        for &source in sources(from) {
            for &destination in destinations(to) {
                let wanted = move |[a]: [u64; 1]| {
                    let value = from.value(a);
                    let value = if sat { value.clamp(to.least(), to.greatest()) } else { value };
                    to.value(low(value as u64, to.bits)) as u64
                };
                all.push(form(&opcode, destination, [source], wanted));
            }
        }
    }
}

/// Rounded, then clamped to the type. NaN becomes zero; the highest bit alone if either side has 64
/// bits.
fn to_integer(all: &mut Vec<Form>, to: Int, from: Float) {
    for (rounding, mode) in MODES {
        for (suffix, sat) in SATURATIONS {
            if sat && from.format == BF16 {
                continue;
            }
            let ftz = if from.flushes { ".ftz" } else { "" };
            let opcode = format!("cvt.{rounding}i{ftz}{suffix}.{}.{}", to.name, from.name);
            for &destination in destinations(to) {
                let wanted = move |[a]: [u64; 1]| {
                    let bits = match from.number(a).to_integer(mode) {
                        Some(value) => value.clamp(to.least(), to.greatest()) as u64,
                        None if to.bits == 64 || from.kind == L => 1 << (to.bits - 1),
                        None => 0,
                    };
                    to.value(bits) as u64
                };
                all.push(form(&opcode, destination, [from.kind], wanted).over(&[&from.pool()]));
            }
        }
    }
}

fn to_float(all: &mut Vec<Form>, to: Float, from: Int) {
    for (rounding, mode) in MODES {
        for (suffix, sat) in SATURATIONS {
            if sat && to.format == BF16 {
                continue;
            }
            let ftz = if to.flushes { ".ftz" } else { "" };
            let opcode = format!("cvt.{rounding}{ftz}{suffix}.{}.{}", to.name, from.name);
            for &source in sources(from) {
                let wanted = move |[a]: [u64; 1]| {
                    let bits = Number::integer(from.value(a)).encode(to.format, mode);
                    if sat { saturated(bits, to.format) } else { bits }
                };
                // Values with as many bits as make the rounding hard, too.
                let mut pool = integers(from.bits);
                let top = from.bits.min(63);
                for kept in [to.format.fraction, to.format.fraction + 1, to.format.fraction + 2] {
                    for length in [kept + 1, top] {
                        if kept < length && length <= top {
                            let ones = ((1_u64 << kept) - 1) << (length - kept);
                            let half = ones | 1 << (length - kept - 1);
                            pool.extend([ones, ones + 1, half, ones - 1]);
                        }
                    }
                }
                all.push(form(&opcode, to.kind, [source], wanted).over(&[&pool]));
            }
        }
    }
}

fn between_floats(
    all: &mut Vec<Form>,
    to: Float,
    from: Float,
    rounding: &str,
    mode: Mode,
    integral: bool,
) {
    for (suffix, sat) in SATURATIONS {
        if sat && (to.format == BF16 || from.format == BF16) {
            continue;
        }
        let ftz = if to.flushes || from.flushes { ".ftz" } else { "" };
        let opcode = format!("cvt{rounding}{ftz}{suffix}.{}.{}", to.name, from.name);
        // As an H100 does, and not as PTX says, what becomes an `f16` is not flushed.
        let taken = Float { flushes: from.flushes && to.format != F16, ..from };
        let wanted = move |[a]: [u64; 1]| {
            let number = taken.number(a);
            let number = if integral { number.integral(mode) } else { number };
            let bits = to.encode(&number, mode);
            if sat { saturated(bits, to.format) } else { bits }
        };
        let mut pool = from.pool();
        // Halfway between neighbours of the narrower format, and beside that.
        if to.format.fraction < from.format.fraction {
            let dropped = from.format.fraction - to.format.fraction;
            let halves = from.pool().into_iter().flat_map(|bits| {
                let half = bits >> dropped << dropped | 1 << (dropped - 1);
                [half - 1, half, half + 1]
            });
            pool.extend(halves);
            // Where the narrower format is subnormal or overflows.
            let one = ((1_u64 << (from.format.exponent - 1)) - 1) << from.format.fraction;
            let bias = (1_i64 << (to.format.exponent - 1)) - 1;
            let places = i64::from(to.format.fraction);
            let least = -bias - places;
            for power in [1 - bias, -bias, 1 + least, least, least - 1, bias, bias + 1] {
                let bits = one.wrapping_add((power << from.format.fraction) as u64);
                if power > -((1 << (from.format.exponent - 1)) - 1)
                    && power < 1 << (from.format.exponent - 1)
                {
                    pool.extend([bits - 1, bits, bits + 1, bits | 1 << (from.format.fraction - 1)]);
                }
            }
        }
        all.push(form(&opcode, to.kind, [from.kind], wanted).over(&[&pool]).same(to.same()));
    }
}

fn pairs(all: &mut Vec<Form>, opcode: &str, ty: Float, mode: Mode, relu: bool) {
    let round = move |bits: u64| {
        let bits = ty.encode(&SINGLE.number(bits), mode);
        if relu { not_negative(bits, ty) } else { bits }
    };
    // The first operand is the upper half. Compared half by half, as one may be NaN.
    let text = format!("{opcode} %r20, {{1}}, {{2}}; {}", "mov.b32 {{d}, {e}}, %r20;");
    let halves = several(opcode, &text, [H, H], [W, W], move |[a, b]| [round(b), round(a)]);
    all.push(halves.all_over(&SINGLE.pool()).same(ty.same()));
    let whole = form(opcode, W, [W, W], move |[a, b]| round(a) << 16 | round(b));
    let numbers: Vec<u64> =
        SINGLE.pool().into_iter().filter(|&bits| !Number::decode(bits, F32).is_nan()).collect();
    // Few enough that no random bits, which may be NaN, are added.
    let numbers: Vec<u64> = numbers.into_iter().step_by(5).take(24).collect();
    all.push(whole.over(&[&numbers, &numbers]));
}

#[test]
fn conversions_round_extend_and_saturate() {
    check("conversions", &forms());
}
