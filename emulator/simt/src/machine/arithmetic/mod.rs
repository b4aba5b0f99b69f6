//! Results that are computed from registers alone, 32 lanes at a time.

mod approximate;
pub(crate) mod convert;
mod directed;
pub(crate) mod float;
pub(crate) mod half;
pub(crate) mod integer;
pub(crate) mod moves;
pub(crate) mod rounding;
mod simd;
pub(crate) mod tensor;
pub(crate) mod ternary;
