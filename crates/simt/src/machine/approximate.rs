//! The instructions that PTX calls approximate: computed in double precision and rounded once.
//!
//! The GPU computes them from tables, with the errors below, so that these are the instructions whose
//! bits differ between the emulator and a GPU. Errors of the GPU after the PTX ISA 8.0, section 9.7.3; ours
//! is at most 0.5 ulp and what the host's double-precision function is off by.
//!
//! | instruction | largest error on a GPU |
//! |---|---|
//! | `ex2.approx.f32` | 2 ulp + 2^-22.6 relative |
//! | `lg2.approx.f32` | 2^-22 absolute in (0.5, 2), 2^-22 relative elsewhere |
//! | `rcp.approx.f32` | 1 ulp |
//! | `rsqrt.approx.f32` | 2^-22.9 relative |
//! | `sqrt.approx.f32` | 2^-23 relative |
//! | `sin.approx.f32`, `cos.approx.f32` | 2^-20.5 absolute in (−π, π) |
//! | `tanh.approx.f32` | 2^-11 relative |
//! | `rcp.approx.ftz.f64`, `rsqrt.approx.ftz.f64` | the upper 20 bits of the fraction hold, the rest is zero |

use crate::program::Approximate;

/// With `ftz`, subnormal numbers going in and coming out are zeros with their sign.
pub(super) fn approximate(function: Approximate, ftz: bool, x: f32) -> f32 {
    let flush = |x: f32| if ftz && x.is_subnormal() { 0.0_f32.copysign(x) } else { x };
    flush(evaluate(function, f64::from(flush(x))) as f32)
}

/// The low 32 bits of the result are zero, and subnormal numbers are flushed.
pub(super) fn approximate64(function: Approximate, x: f64) -> f64 {
    let flush = |x: f64| if x.is_subnormal() { 0.0_f64.copysign(x) } else { x };
    let result = flush(evaluate(function, flush(x)));
    f64::from_bits(result.to_bits() & !0xffff_ffff)
}

fn evaluate(function: Approximate, x: f64) -> f64 {
    match function {
        Approximate::Ex2 => x.exp2(),
        Approximate::Lg2 => x.log2(),
        Approximate::Rcp => x.recip(),
        Approximate::Rsqrt => x.sqrt().recip(),
        Approximate::Sqrt => x.sqrt(),
        Approximate::Sin => x.sin(),
        Approximate::Cos => x.cos(),
        Approximate::Tanh => x.tanh(),
    }
}
