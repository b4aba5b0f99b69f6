//! Numbers of 16 bits, as wider ones.

/// What `f16` bits are as `f32`: exact.
pub(crate) fn half_as_f32(bits: u16) -> f32 {
    half_as_f64(bits) as f32
}

pub(crate) fn half_as_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * power(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * power(exponent - 25),
    }
}

/// `2^exponent`, for exponents of normal numbers.
pub(crate) fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}
