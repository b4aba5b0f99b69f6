//! The instructions that PTX calls approximate.
//!
//! Those of f32 give the bits of a GPU of compute capability 9.0: see `special`. Those of f64 are
//! computed in double precision and cut to the bits that the PTX ISA 8.0 (section 9.7.3) defines,
//! and those of halves (`ex2`, `tanh`) are those of f32, rounded: so that these are the
//! instructions whose bits may differ between the emulator and a GPU.

use crate::isa::Approximate;
use crate::special;

/// With `ftz`, subnormal numbers going in and coming out are zeros with their sign.
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

/// `div.approx` and, `full`, `div.full`: the dividend times the reciprocal, as ptxas has it for
/// compute capability 9.0. Where the unit has no reciprocal both are scaled before; `div.approx`
/// does so for subnormal divisors only, and the reciprocals of those above 2^126 are zeros. Its
/// product is not rounded yet.
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

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: the upper 20 bits of the fraction hold, the
/// rest is zero.
///
/// The low 32 bits of the result are zero, and subnormal numbers are flushed.
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
