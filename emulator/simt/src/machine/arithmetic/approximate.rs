//! The instructions that PTX calls approximate.
//!
//! The functions of f32 give the bits of a GPU of compute capability 9.0; see `special`. The
//! functions of f64 are computed in double precision, and cut to the bits that the PTX ISA 8.0
//! (section 9.7.3) defines. The functions of halves (`ex2`, `tanh`) round the results of f32. So
//! only the functions of f64 and of halves may differ in bits between the emulator and a GPU.

use crate::isa::Approximate;
use crate::special;

/// Computes a function of f32. `ftz` makes subnormal operands and results signed zeros.
pub(crate) fn approximate(function: Approximate, ftz: bool, x: f32) -> f32 {
    let x = x.to_bits();
    f32::from_bits(match function {
        Approximate::Ex2 => special::ex2(x, ftz),
        Approximate::Lg2 => special::lg2(x, ftz),
        Approximate::Rcp => special::rcp(x, ftz),
        Approximate::Rsqrt => special::rsqrt(x, ftz),
        Approximate::Sqrt => special::sqrt(x, ftz),
        Approximate::Sin => special::sin(x),
        Approximate::Cos => special::cos(x),
        Approximate::Tanh => special::tanh(x),
    })
}

/// Returns the factors of `div.approx` or, if `full`, of `div.full`: the dividend and the divisor's
/// reciprocal, as ptxas compiles them for compute capability 9.0. Where the unit has no reciprocal,
/// both are scaled first. `div.approx` scales only subnormal divisors, and its reciprocals of
/// divisors above 2^126 are zeros. The caller multiplies the factors and rounds once.
pub(crate) fn quotient(full: bool, ftz: bool, a: f32, b: f32) -> (f32, f32) {
    const LARGE: f32 = f32::from_bits(0x7e80_0000); // 2^126
    let scale = match b.abs() {
        magnitude if full && magnitude > LARGE => 0.25,
        magnitude if !ftz && magnitude < f32::MIN_POSITIVE => 16_777_216.0,
        _ => 1.0,
    };
    let scaled =
        |x: f32| if ftz && (x * scale).is_subnormal() { 0.0_f32.copysign(x) } else { x * scale };
    (scaled(a), f32::from_bits(special::rcp(scaled(b).to_bits(), true)))
}

/// Computes `rcp.approx.ftz.f64` or `rsqrt.approx.ftz.f64`. The upper 20 bits of the fraction are
/// significant, and the low 32 bits of the result are zero. Subnormal numbers are flushed.
pub(crate) fn approximate64(function: Approximate, x: f64) -> f64 {
    let flush = |x: f64| if x.is_subnormal() { 0.0_f64.copysign(x) } else { x };
    let result = flush(evaluate(function, flush(x)));
    f64::from_bits(result.to_bits() & !0xffff_ffff)
}

fn evaluate(function: Approximate, x: f64) -> f64 {
    match function {
        Approximate::Rsqrt => x.sqrt().recip(),
        _ => x.recip(),
    }
}
