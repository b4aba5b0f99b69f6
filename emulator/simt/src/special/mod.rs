//! The bits of the special function unit (compute capability 9.0), computed in integers.
//!
//! The unit cuts a mantissa or a fraction of 23 bits into 64 or 128 segments. In each segment it
//! evaluates `c0 + c1 x + c2 x^2`, where `x` is the bits below the segment's number. The
//! coefficients have 26, 16 and 10 bits. `c1 x` and the sum are exact, and the lower bits of the
//! sum are dropped at the end. The square is not exact: its partial products in the columns below
//! 2^19 (below 2^17 with 128 segments) are never added. `README.md` in this folder describes how
//! the coefficients were found. Tested by `special_functions.rs` in `tests/suite`, against sums of
//! an H200's results.

const NAN: u32 = 0x7fff_ffff;
const INFINITY: u32 = 0x7f80_0000;
const SIGN: u32 = 0x8000_0000;
const ONE: u32 = 0x3f80_0000;
const FRACTION: u32 = 0x7f_ffff;

/// The coefficients `[c0, c1, c2]` of each segment, one line for each, of the tables below in their
/// order. Nearly all were found by linear programming over an H200's results. The solutions are so
/// narrow that `c1` and `c2` can each be only one integer.
const COEFFICIENTS: &[u8] = include_bytes!("coefficients.txt");

/// 2^x for a fraction x.
const EX2: [[i32; 3]; 64] = segments(0);
/// 1/x of a mantissa.
const RCP: [[i32; 3]; 128] = segments(64);
/// 1/sqrt(x) of a mantissa in [1, 2).
const RSQRT_ONE: [[i32; 3]; 64] = segments(192);
/// 1/sqrt(2 x) of a mantissa.
const RSQRT_TWO: [[i32; 3]; 64] = segments(256);
/// sqrt(x) of a mantissa.
const SQRT_ONE: [[i32; 3]; 64] = segments(320);
/// sqrt(2 x) of a mantissa.
const SQRT_TWO: [[i32; 3]; 64] = segments(384);
/// log2(x) of a mantissa.
const LG2: [[i32; 3]; 64] = segments(448);
/// sin(x pi/2) of a fraction.
const SIN: [[i32; 3]; 64] = segments(512);
/// tanh(x), from the segments of exponent -8 to those of exponent 2.
const TANH: [[i32; 3]; 51] = segments(576);

/// Reads `N` segments of the file from segment number `first` on.
const fn segments<const N: usize>(first: usize) -> [[i32; 3]; N] {
    let (mut segments, mut at, mut number) = ([[0; 3]; N], 0, 0);
    while number < 3 * (first + N) {
        while COEFFICIENTS[at] <= b' ' {
            at += 1;
        }
        let sign = if COEFFICIENTS[at] == b'-' { -1 } else { 1 };
        let mut value = 0;
        while COEFFICIENTS[at] > b' ' {
            if COEFFICIENTS[at] != b'-' {
                value = 10 * value + (COEFFICIENTS[at] - b'0') as i32;
            }
            at += 1;
        }
        if number >= 3 * first {
            segments[number / 3 - first][number % 3] = sign * value;
        }
        number += 1;
    }
    segments
}

/// The parts of a number; `exponent` is biased.
struct Parts {
    sign: u32,
    exponent: i32,
    fraction: u32,
}

impl Parts {
    fn of(x: u32) -> Self {
        Self { sign: x & SIGN, exponent: (x >> 23 & 0xff) as i32, fraction: x & FRACTION }
    }

    fn is_nan(&self) -> bool {
        self.exponent == 255 && self.fraction != 0
    }

    fn is_infinite(&self) -> bool {
        self.exponent == 255 && self.fraction == 0
    }

    /// Returns true for zero and subnormal numbers: the unit takes both for zero.
    fn is_zero(&self) -> bool {
        self.exponent == 0
    }
}

/// Returns the square of the low `bits` bits of `x`, without its columns below `dropped`, shifted
/// right by `dropped`.
///
/// Column `k` has the partial products `x[i] x[j]` with `i + j + 1 = k` and `j < i`, and `x[i]`
/// with `2 i = k`.
fn square(x: u32, bits: u32, dropped: u32) -> i64 {
    let mut sum = 0_u64;
    for i in dropped.div_ceil(2)..bits {
        if x >> i & 1 == 1 {
            let lowest = (dropped - 1).saturating_sub(i);
            let lower = x & ((1 << i) - 1) & !((1 << lowest) - 1);
            sum += (1 << (2 * i)) + (u64::from(lower) << (i + 1));
        }
    }
    (sum >> dropped) as i64
}

/// The units of a table's segments: `c0` is in units of 2^`constant`, and `c2` of 2^`curve`.
struct Form {
    constant: u32,
    bias: i64,
    curve: u32,
}

impl Form {
    fn evaluate<const N: usize>(&self, table: &[[i32; 3]; N], fraction: u32) -> i64 {
        let bits = if N == 128 { 16 } else { 17 };
        let [c0, c1, c2] = table[(fraction >> bits) as usize].map(i64::from);
        let x = fraction & ((1 << bits) - 1);
        let square = square(x, bits, if N == 128 { 17 } else { 19 });
        (c0 << self.constant) + self.bias + c1 * i64::from(x) + ((c2 * square) << self.curve)
    }
}

/// Returns a mantissa with its leading one, times 2^`power`. A result that is too small is zero,
/// and a result that is too large is infinite.
fn assemble(sign: u32, power: i32, mantissa: i64) -> u32 {
    match power + 150 {
        ..=0 => sign,
        255.. => sign | INFINITY,
        exponent => sign | (exponent as u32) << 23 | mantissa as u32 & FRACTION,
    }
}

/// Returns `value` times 2^-`point`, without the bits that do not fit into a mantissa of 24 bits.
fn normalise(sign: u32, value: i64, point: i32) -> u32 {
    if value == 0 {
        return sign;
    }
    let excess = 40 - value.leading_zeros() as i32;
    let mantissa = if excess > 0 { value >> excess } else { value << -excess };
    assemble(sign, excess - point, mantissa)
}

fn times(x: u32, factor: f32) -> u32 {
    (f32::from_bits(x) * factor).to_bits()
}

fn is_subnormal(x: u32) -> bool {
    f32::from_bits(x).is_subnormal()
}

/// Computes `ex2.approx.f32`, 2^x, from and to the bits of f32.
pub fn ex2(x: u32, ftz: bool) -> u32 {
    if ftz || f32::from_bits(x) >= -126.0 || f32::from_bits(x).is_nan() {
        return ex2_unit(x);
    }
    let root = f32::from_bits(ex2_unit(times(x, 0.5)));
    (root * root).to_bits()
}

fn ex2_unit(x: u32) -> u32 {
    let parts = Parts::of(x);
    if parts.is_nan() {
        return NAN;
    }
    let shift = parts.exponent - 127;
    if shift >= 8 {
        return if parts.sign == 0 { INFINITY } else { 0 };
    }
    let mantissa = u64::from(parts.fraction | 1 << 23);
    // The value with 23 bits below the point, without the others. A negative number is the
    // complement of its magnitude.
    let fixed = if parts.is_zero() || shift < -23 {
        0
    } else if shift < 0 {
        mantissa >> -shift
    } else {
        mantissa << shift
    };
    let (whole, fraction) = ((fixed >> 23) as i32, fixed as u32 & FRACTION);
    let (whole, fraction) = match (parts.sign, fraction) {
        (0, _) => (whole, fraction),
        (_, 0) => (-whole, 0),
        _ => (!whole, !fraction & FRACTION),
    };
    let form = Form { constant: 13, bias: 6114, curve: 0 };
    assemble(0, whole - 23, form.evaluate(&EX2, fraction) >> 15)
}

/// Computes `rcp.approx.f32`, 1 / x, from and to the bits of f32.
pub fn rcp(x: u32, ftz: bool) -> u32 {
    let magnitude = x & !SIGN;
    if !ftz && is_subnormal(x) {
        return times(rcp_unit(times(x, 16_777_216.0)), 16_777_216.0);
    }
    if !ftz && magnitude > 0x7e80_0000 && magnitude < INFINITY {
        return times(rcp_unit(times(x, 0.25)), 0.25);
    }
    rcp_unit(x)
}

fn rcp_unit(x: u32) -> u32 {
    let parts = Parts::of(x);
    if parts.is_nan() {
        return NAN;
    }
    if parts.is_infinite() {
        return parts.sign;
    }
    if parts.is_zero() {
        return parts.sign | INFINITY;
    }
    let power = 127 - parts.exponent;
    if parts.fraction == 0 {
        return assemble(parts.sign, power - 23, 1 << 23);
    }
    let form = Form { constant: 13, bias: 2023, curve: 0 };
    assemble(parts.sign, power - 24, form.evaluate(&RCP, parts.fraction) >> 15)
}

/// Computes `rsqrt.approx.f32`, 1 / sqrt(x), from and to the bits of f32.
pub fn rsqrt(x: u32, ftz: bool) -> u32 {
    if !ftz && is_subnormal(x) {
        return times(rsqrt_unit(times(x, 16_777_216.0)), 4096.0);
    }
    rsqrt_unit(x)
}

fn rsqrt_unit(x: u32) -> u32 {
    let parts = Parts::of(x);
    if parts.is_zero() {
        return parts.sign | INFINITY;
    }
    if parts.is_nan() || parts.sign != 0 {
        return NAN;
    }
    if parts.is_infinite() {
        return 0;
    }
    let power = parts.exponent - 127;
    let half = power.div_euclid(2);
    let form = Form { constant: 14, bias: -1, curve: 2 };
    if power % 2 != 0 {
        return assemble(0, -half - 24, form.evaluate(&RSQRT_TWO, parts.fraction) >> 16);
    }
    if parts.fraction == 0 {
        return assemble(0, -half - 23, 1 << 23);
    }
    assemble(0, -half - 24, form.evaluate(&RSQRT_ONE, parts.fraction) >> 16)
}

/// Computes `sqrt.approx.f32`, the square root, from and to the bits of f32.
pub fn sqrt(x: u32, ftz: bool) -> u32 {
    if !ftz && is_subnormal(x) {
        return times(sqrt_unit(times(x, 16_777_216.0)), 1.0 / 4096.0);
    }
    sqrt_unit(x)
}

fn sqrt_unit(x: u32) -> u32 {
    let parts = Parts::of(x);
    if parts.is_zero() {
        return parts.sign;
    }
    if parts.is_nan() || parts.sign != 0 {
        return NAN;
    }
    if parts.is_infinite() {
        return INFINITY;
    }
    let power = parts.exponent - 127;
    let table = if power % 2 == 0 { &SQRT_ONE } else { &SQRT_TWO };
    let form = Form { constant: 15, bias: -1, curve: 1 };
    assemble(0, power.div_euclid(2) - 23, form.evaluate(table, parts.fraction) >> 17)
}

/// Computes `lg2.approx.f32`, the logarithm to base 2, from and to the bits of f32.
pub fn lg2(x: u32, ftz: bool) -> u32 {
    if !ftz && is_subnormal(x) {
        let scaled = f32::from_bits(lg2_unit(times(x, 16_777_216.0))) - 24.0;
        return if scaled.is_nan() { NAN } else { scaled.to_bits() };
    }
    lg2_unit(x)
}

fn lg2_unit(x: u32) -> u32 {
    let parts = Parts::of(x);
    if parts.is_zero() {
        return SIGN | INFINITY;
    }
    if parts.is_nan() || parts.sign != 0 {
        return NAN;
    }
    if parts.is_infinite() {
        return INFINITY;
    }
    if x == ONE {
        return 0;
    }
    let form = Form { constant: 12, bias: 837, curve: 1 };
    let fraction = form.evaluate(&LG2, parts.fraction) >> 2;
    let value = (i64::from(parts.exponent - 127) << 36) + fraction;
    if value < 0 { normalise(SIGN, !value, 36) } else { normalise(0, value, 36) }
}

/// Computes `sin.approx.f32`, the sine, from and to the bits of f32.
pub fn sin(x: u32) -> u32 {
    wave(x, 0)
}

/// Computes `cos.approx.f32`, the cosine, from and to the bits of f32.
pub fn cos(x: u32) -> u32 {
    wave(x & !SIGN, 1)
}

/// Evaluates the unit for the turns x / (2 pi), rounded toward zero.
fn wave(x: u32, quarters: u64) -> u32 {
    const INVERSE: u64 = 0xa2_f983; // times 2^-26
    let parts = Parts::of(x);
    if parts.exponent == 255 {
        return NAN;
    }
    let product = if parts.is_zero() { 0 } else { u64::from(parts.fraction | 1 << 23) * INVERSE };
    let dropped = if product >> 47 == 1 { 24 } else { 23 };
    // Turns with 25 bits below the point: 2 bits for the quarter, 23 for the fraction.
    let shift = parts.exponent - 127 - 23 - 26 + dropped + 25;
    let product = product >> dropped;
    let turns = match shift {
        ..-40 => 0,
        -40..0 => product >> -shift,
        0..28 => product << shift,
        _ => 0,
    };
    let quarter = (turns >> 23) + quarters;
    let fraction = if quarter & 1 == 1 { !turns } else { turns } as u32 & FRACTION;
    let sign = parts.sign ^ if quarter & 2 == 2 { SIGN } else { 0 };
    let form = Form { constant: 13, bias: 0, curve: 1 };
    normalise(sign, form.evaluate(&SIN, fraction), 38)
}

/// Computes `tanh.approx.f32`, the hyperbolic tangent, from and to the bits of f32.
pub fn tanh(x: u32) -> u32 {
    let parts = Parts::of(x);
    if parts.is_nan() {
        return NAN;
    }
    // The first segment of an exponent, and the number of bits that cut it into segments.
    let (first, cut) = match parts.exponent {
        ..119 => return x,
        119 => (0, 0),
        120 => (1, 0),
        121 => (2, 0),
        122 => (3, 1),
        123 => (5, 1),
        124 => (7, 2),
        125 => (11, 2),
        126 => (15, 2),
        127 => (19, 3),
        128 => (27, 4),
        129 => (43, 3),
        _ => return parts.sign | ONE,
    };
    let place = parts.fraction >> (6 - cut);
    let [c0, c1, c2] = TANH[first + (place >> 17) as usize].map(i64::from);
    let x = place & 0x1_ffff;
    let value = (c0 << 15) + c1 * i64::from(x) + c2 * square(x, 17, 19);
    normalise(parts.sign, value, 39)
}
