//! `kernels/exponential.cuh` for a processor, line by line: the same operations in the same order,
//! so the same bits.

use std::f64::consts::LOG2_E;

use num_complex::Complex;

/// Adding it rounds to an integer, which ends up in the lowest bits: 1.5 · 2^23 and 1.5 · 2^52.
const TO_WHOLE_F32: f32 = 12_582_912.0;
const TO_WHOLE: f64 = 6_755_399_441_055_744.0;

/// π/2 as the sum of three numbers.
const RIGHT_ANGLE: [f64; 3] =
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];

fn split_f32(x: f32) -> (f32, i32) {
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let rounded = x.mul_add(std::f32::consts::LOG2_E, TO_WHOLE_F32);
    let n = rounded - TO_WHOLE_F32;
    let r = (-n).mul_add(std::f32::consts::LN_2, x);
    let r = (-n).mul_add(-1.904_654_2e-9, r);
    let mut tail = 1.0 / 40320.0;
    for factorial in [5040.0, 720.0, 120.0, 24.0, 6.0, 2.0] {
        tail = r.mul_add(tail, 1.0 / factorial);
    }
    let exponent = rounded.to_bits() as i32 - TO_WHOLE_F32.to_bits() as i32;
    (1.0 + (r * r).mul_add(tail, r), exponent)
}

fn split_f64(x: f64) -> (f64, i32) {
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let rounded = x.mul_add(LOG2_E, TO_WHOLE);
    let n = rounded - TO_WHOLE;
    let r = (-n).mul_add(std::f64::consts::LN_2, x);
    let r = (-n).mul_add(2.319_046_813_846_299_6e-17, r);
    let terms = (2..14).rev().map(|n| 1.0 / factorial(n));
    let tail = terms.fold(1.0 / factorial(14), |tail, term| r.mul_add(tail, term));
    (1.0 + (r * r).mul_add(tail, r), rounded.to_bits() as i32)
}

fn factorial(n: u64) -> f64 {
    (1..=n).product::<u64>() as f64
}

fn scaled_f32(fraction: f32, exponent: i32) -> f32 {
    let power = |exponent: i32| f32::from_bits((exponent.wrapping_add(127) as u32) << 23);
    let half = exponent >> 1;
    fraction * power(half) * power(exponent.wrapping_sub(half))
}

fn scaled_f64(fraction: f64, exponent: i32) -> f64 {
    let power =
        |exponent: i32| f64::from_bits((i64::from(exponent.wrapping_add(1023)) as u64) << 52);
    let half = exponent >> 1;
    fraction * power(half) * power(exponent.wrapping_sub(half))
}

/// A number type with the device's exponential.
pub trait Twin: Copy {
    /// Computes `e^self` with the bits of the kernel.
    fn twin_exp(self) -> Self;
}

impl Twin for f32 {
    fn twin_exp(self) -> f32 {
        let (fraction, exponent) = split_f32(self);
        scaled_f32(fraction, exponent)
    }
}

impl Twin for f64 {
    fn twin_exp(self) -> f64 {
        let (fraction, exponent) = split_f64(self);
        scaled_f64(fraction, exponent)
    }
}

impl Twin for Complex<f64> {
    fn twin_exp(self) -> Complex<f64> {
        if self.re == f64::NEG_INFINITY {
            return Complex::new(0.0, 0.0);
        }
        let (fraction, exponent) = split_f64(self.re);
        let turn = unit(self.im);
        Complex::new(
            scaled_f64(fraction * turn.re, exponent),
            scaled_f64(fraction * turn.im, exponent),
        )
    }
}

impl Twin for Complex<f32> {
    fn twin_exp(self) -> Complex<f32> {
        let wide = Complex::new(f64::from(self.re), f64::from(self.im)).twin_exp();
        Complex::new(wide.re as f32, wide.im as f32)
    }
}

fn two_sum(a: f64, b: f64) -> [f64; 2] {
    let high = a + b;
    let of_b = high - a;
    [high, (a - (high - of_b)) + (b - of_b)]
}

/// Returns the rest, and the number of right angles.
fn reduce(x: f64) -> ([f64; 2], i32) {
    let rounded = x.mul_add(std::f64::consts::FRAC_2_PI, TO_WHOLE);
    let n = rounded - TO_WHOLE;
    let rest = (-n).mul_add(RIGHT_ANGLE[0], x);
    let second = n * RIGHT_ANGLE[1];
    let lost = n.mul_add(RIGHT_ANGLE[1], -second);
    let [high, low] = two_sum(rest, -second);
    let low = (-n).mul_add(RIGHT_ANGLE[2], low - lost);
    (two_sum(high, low), rounded.to_bits() as i32)
}

fn reduce_large(x: f64) -> ([f64; 2], i32) {
    /// A word of zeros, then the digits of 2/π.
    const TWO_BY_PI: [u64; 20] = [
        0x0000000000000000,
        0xa2f9836e4e441529,
        0xfc2757d1f534ddc0,
        0xdb6295993c439041,
        0xfe5163abdebbc561,
        0xb7246e3a424dd2e0,
        0x06492eea09d1921c,
        0xfe1deb1cb129a73e,
        0xe88235f52ebb4484,
        0xe99c7026b45f7e41,
        0x3991d639835339f4,
        0x9c845f8bbdf9283b,
        0x1ff897ffde05980f,
        0xef2f118b5a0a6d1f,
        0x6d367ecf27cb09b7,
        0x4f463f669e5fea2d,
        0x7527bac7ebe5f17b,
        0x3d0739f78a5292ea,
        0x6bfb5fb11f8d5d08,
        0x56033046fc7b6bab,
    ];
    let bits = x.to_bits();
    let m = (bits & 0x000f_ffff_ffff_ffff) | 0x0010_0000_0000_0000;
    let first = (bits >> 52) as usize + 64 - 1077;
    let word = |i: usize| match (first / 64 + i, first % 64) {
        (i, 0) => TWO_BY_PI[i],
        (i, shift) => TWO_BY_PI[i] << shift | TWO_BY_PI[i + 1] >> (64 - shift),
    };
    let high_half = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    let lowest = m.wrapping_mul(word(2));
    let (middle, carry) = m.wrapping_mul(word(1)).overflowing_add(high_half(m, word(2)));
    let highest = m.wrapping_mul(word(0)).wrapping_add(high_half(m, word(1)));
    let highest = highest.wrapping_add(u64::from(carry));

    let right_angles = (highest >> 62) as i32;
    let rest =
        u128::from(highest << 2 | middle >> 62) << 64 | u128::from(middle << 2 | lowest >> 62);
    let above = rest >> 127 == 1;
    let rest = if above { rest.wrapping_neg() } else { rest };
    let fraction = (rest >> 75) as f64 * 2f64.powi(-53);
    let behind = (rest >> 11) as u64 as f64 * 2f64.powi(-117);
    let product = fraction * RIGHT_ANGLE[0];
    let missing = fraction.mul_add(RIGHT_ANGLE[0], -product);
    let missing = fraction.mul_add(RIGHT_ANGLE[1], missing);
    let missing = behind.mul_add(RIGHT_ANGLE[0], missing);
    let sign = if above { -1.0 } else { 1.0 };
    (two_sum(product, missing).map(|part| sign * part), right_angles + i32::from(above))
}

fn unit(x: f64) -> Complex<f64> {
    let size = if x < 0.0 { -x } else { x };
    if !size.is_finite() {
        return Complex::new(f64::NAN, f64::NAN);
    }
    let (rest, right_angles) =
        if size <= 2f64.powi(48) { reduce(size) } else { reduce_large(size) };
    let [r, low] = rest;
    let z = r * r;

    let series = |terms: [u64; 8]| {
        // The sign of the term r^n / n! alternates with n; the highest power comes first.
        terms.into_iter().fold(0.0, |sum: f64, n| {
            let term = if n / 2 % 2 == 0 { 1.0 } else { -1.0 } / factorial(n);
            if n >= 17 { term } else { sum.mul_add(z, term) }
        })
    };
    let sine = series([17, 15, 13, 11, 9, 7, 5, 3]);
    let sine = r + (z * r).mul_add(sine, (-0.5 * z).mul_add(low, low));
    let cosine = series([18, 16, 14, 12, 10, 8, 6, 4]);
    let half = 0.5 * z;
    let near = 1.0 - half;
    let lost = ((1.0 - near) - half) - r.mul_add(low, 0.5 * r.mul_add(r, -z));
    let cosine = near + (z * z).mul_add(cosine, lost);

    let (re, im) = if right_angles & 1 == 1 { (sine, cosine) } else { (cosine, sine) };
    let left = (right_angles + 1) & 2 != 0;
    let below = (right_angles & 2 != 0) != (x < 0.0);
    Complex::new(if left { -re } else { re }, if below { -im } else { im })
}
