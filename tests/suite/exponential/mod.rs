//! Tests of the kernels' exponential: its error, and equal bits on every device.
//!
//! The exponential decides the bits of every recurrence with logarithmic coefficients. `twin`
//! repeats the kernel's operations on the processor; its error is measured here against double
//! precision, or against numbers with twice the digits, and the kernel is compared with it bit by
//! bit on every device and for every type.

mod twin;

use half::{bf16, f16};
use linrec::Error;
use linrec::device::{Device, Storage, under_test};
use linrec::kernels;
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

pub use twin::Twin;

/// Returns the error of a result in units in the last place of the exact number, which is given in
/// double precision.
fn ulps_f32(got: f32, exact: f64) -> f64 {
    let exponent = ((exact.to_bits() >> 52) as i32 - 1023).max(-126);
    (f64::from(got) - exact).abs() / 2f64.powi(exponent - 23)
}

/// Returns the largest error over numbers with these bits. Where the exact result rounds to 0, ∞ or
/// NaN, the result must equal it.
fn worst_f32(all: impl ParallelIterator<Item = u32>) -> f64 {
    let error = |bits| {
        let x = f32::from_bits(bits);
        let (got, exact) = (x.twin_exp(), f64::from(x).exp());
        let rounded = exact as f32;
        if rounded.is_normal() || rounded.is_subnormal() {
            return ulps_f32(got, exact);
        }
        assert!(got == rounded || (got.is_nan() && rounded.is_nan()), "e^{x:e} is {got:e}");
        0.0
    };
    all.map(error).reduce(|| 0.0, f64::max)
}

#[test]
fn in_single_precision_it_is_off_by_less_than_one_unit() {
    // Every 509th of all numbers; 509 is prime.
    let worst = worst_f32((0..u32::MAX / 509).into_par_iter().map(|i| i * 509));
    assert!((0.5..1.0).contains(&worst), "{worst} units");
}

#[test]
#[ignore = "needs a minute: all of the 2^32 numbers"]
fn in_single_precision_it_is_off_by_less_than_one_unit_for_every_number() {
    let worst = worst_f32((0..=u32::MAX).into_par_iter());
    println!("{worst} units");
    assert!((0.5..1.0).contains(&worst), "{worst} units");
}

/// A number as the sum of two: the nearest one, and the remainder.
#[derive(Clone, Copy)]
struct Double(f64, f64);

impl Double {
    fn sum(a: f64, b: f64) -> Double {
        let high = a + b;
        let of_b = high - a;
        Double(high, (a - (high - of_b)) + (b - of_b))
    }

    fn plus(self, other: Double) -> Double {
        let Double(high, low) = Double::sum(self.0, other.0);
        Double::sum(high, low + (self.1 + other.1))
    }

    fn times(self, other: Double) -> Double {
        let high = self.0 * other.0;
        let missing = self.0.mul_add(other.0, -high);
        Double::sum(high, self.0.mul_add(other.1, self.1.mul_add(other.0, missing)))
    }
}

/// Computes `e^x / 2^n` and `n` to about 2^-95: the Taylor series of a 256th of `x - n ln 2`,
/// squared eight times.
fn exact_f64(x: f64) -> (Double, i32) {
    let n = (x * std::f64::consts::LOG2_E).round();
    let ln_2 = [std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17, 5.707_708_438_416_212e-34];
    let parts = ln_2.map(|part| Double(-n, 0.0).times(Double(part, 0.0)));
    let rest = parts.into_iter().fold(Double(x, 0.0), Double::plus);
    let rest = Double(rest.0 / 256.0, rest.1 / 256.0);
    let one = Double(1.0, 0.0);
    let mut sum = one;
    for k in (1..=14).rev() {
        // 1 + r / k (1 + …)
        let inverse = 1.0 / f64::from(k);
        let inverse = Double(inverse, (-inverse).mul_add(f64::from(k), 1.0) / f64::from(k));
        sum = one.plus(rest.times(inverse).times(sum));
    }
    for _ in 0..8 {
        sum = sum.times(sum);
    }
    (sum, n as i32)
}

#[test]
fn in_double_precision_it_is_off_by_less_than_one_unit() {
    let mut random = StdRng::seed_from_u64(2026);
    let mut worst: f64 = 0.0;
    for i in 0..300_000 {
        let size = [3.0, 30.0, 708.0][i % 3];
        let x: f64 = random.random_range(-size..size);
        let (exact, n) = exact_f64(x);
        // Exact scaling by a power of two, as all numbers are normal.
        let got = x.twin_exp() * 2f64.powi(-(n / 2)) * 2f64.powi(-(n - n / 2));
        let unit = if exact.0 < 1.0 { f64::EPSILON / 2.0 } else { f64::EPSILON };
        worst = worst.max(((got - exact.0) - exact.1).abs() / unit);
    }
    assert!((0.5..1.0).contains(&worst), "{worst} units");
}

#[test]
fn special_values_are_exact() {
    fn check<T: Twin + PartialEq + std::fmt::Debug>(pairs: &[(T, T)]) {
        for &(x, expected) in pairs {
            assert_eq!(x.twin_exp(), expected, "e^{x:?}");
        }
    }
    let (inf, tiny) = (f32::INFINITY, f32::from_bits(1));
    check(&[(0.0, 1.0), (-0.0, 1.0), (-inf, 0.0), (inf, inf), (89.0, inf), (88.8, inf)]);
    check(&[(-103.97, tiny), (-103.98, 0.0), (f32::MIN, 0.0), (f32::MAX, inf), (tiny, 1.0)]);
    assert!(f32::NAN.twin_exp().is_nan() && 88.7_f32.twin_exp().is_finite());
    let (inf, tiny) = (f64::INFINITY, f64::from_bits(1));
    check(&[(0.0, 1.0), (-inf, 0.0), (inf, inf), (709.79, inf), (-745.13, tiny), (-745.14, 0.0)]);
    assert!(f64::NAN.twin_exp().is_nan() && 709.78_f64.twin_exp().is_finite());
    let c = Complex::<f64>::new;
    check(&[(c(0.0, 0.0), c(1.0, 0.0)), (c(-inf, 2.0), c(0.0, 0.0)), (c(-inf, inf), c(0.0, 0.0))]);
    assert!(c(0.0, inf).twin_exp().is_nan() && c(0.0, f64::NAN).twin_exp().re.is_nan());
    // e^709.9 is infinite, and e^709.9 / √2 is finite.
    let large = c(709.9, std::f64::consts::FRAC_PI_4).twin_exp();
    assert!(large.re.is_finite() && large.im.is_finite(), "{large}");
}

/// Pairs of an angle and its sine, computed with 1300 bits.
const SINES: [(f64, f64); 4] = [
    (1e+22, -0.8522008497671888),
    (5.319372648326541e+255, 1.0),
    (1.7976931348623157e+308, 0.004961954789184062),
    (281474976710657.5, 0.9982562068906616),
];

#[test]
fn complex_exponentials_take_angles_of_any_size() {
    for (angle, sine) in SINES {
        let got = Complex::new(0.0, angle).twin_exp().im;
        assert!((got - sine).abs() <= f64::EPSILON * sine.abs(), "sin {angle:e} is {got}");
        assert_eq!(Complex::new(0.0, -angle).twin_exp().im, -got);
    }
    let mut random = StdRng::seed_from_u64(2026);
    for i in 0..200_000 {
        let size = [4.0, 1e4, 1e15, 1e300][i % 4];
        let (re, im) = (random.random_range(-3.0..3.0), random.random_range(-size..size));
        // The standard library's sine, cosine and exponential each err by less than one unit.
        let (got, expected) = (Complex::<f64>::new(re, im).twin_exp(), Complex::new(re, im).exp());
        let error = (got - expected).norm() / expected.norm();
        assert!(error <= 5.0 * f64::EPSILON, "e^({re} + {im}i) is {got} instead of {expected}");

        let narrow = Complex::new(re as f32, im as f32);
        let wide = Complex::new(f64::from(narrow.re), f64::from(narrow.im));
        if narrow.im.is_finite() {
            let (got, expected) = (narrow.twin_exp(), wide.exp());
            let got = Complex::new(f64::from(got.re), f64::from(got.im));
            let error = (got - expected).norm() / expected.norm();
            assert!(error <= 0.6 * f64::from(f32::EPSILON), "e^({narrow}) is {got}");
        }
    }
}

/// A storage type whose accumulator has a [`Twin`].
trait Stored: Storage<Accum: Twin> {
    fn from_bits(bits: u128) -> Self;
    fn from_parts(re: f64, im: f64) -> Self;
}

macro_rules! real {
    ($($number:ty = $bits:ty, $convert:expr;)*) => {$(impl Stored for $number {
        fn from_bits(bits: u128) -> Self {
            <$number>::from_bits(bits as $bits)
        }
        fn from_parts(re: f64, _: f64) -> Self {
            $convert(re)
        }
    })*};
}
real! {
    f32 = u32, |x| x as f32;
    f64 = u64, |x| x;
    bf16 = u16, bf16::from_f64;
    f16 = u16, f16::from_f64;
}

macro_rules! complex {
    ($($real:ty = $bits:ty;)*) => {$(impl Stored for Complex<$real> {
        fn from_bits(bits: u128) -> Self {
            let (re, im) = (bits as $bits, (bits >> 64) as $bits);
            Complex::new(<$real>::from_bits(re), <$real>::from_bits(im))
        }
        fn from_parts(re: f64, im: f64) -> Self {
            Complex::new(re as $real, im as $real)
        }
    })*};
}
complex! {
    f32 = u32;
    f64 = u64;
}

/// Returns numbers with random bits, and as many of ordinary sizes.
fn samples<S: Stored>() -> Vec<S> {
    let mut random = StdRng::seed_from_u64(2026);
    let mut samples: Vec<S> = (0..10_000).map(|_| S::from_bits(random.random())).collect();
    for i in 0..10_000 {
        let size: f64 = [1.0, 100.0, 800.0, 1e6][i % 4];
        let (re, im) = (random.random_range(-size..size), random.random_range(-size..size));
        samples.push(S::from_parts(re, im));
    }
    samples
}

/// Asserts that the kernel's results are the processor's to the bit; any NaN equals any NaN.
fn compare<S: Stored>() {
    let samples = samples::<S>();
    let expected: Vec<_> = samples.iter().map(|log| log.widen().twin_exp()).collect();
    for device in under_test() {
        let got = run::<S>(&device, &samples).unwrap();
        for ((log, got), expected) in samples.iter().zip(&got).zip(&expected) {
            // The text reads back as the same number, and distinguishes -0 from 0.
            let (got, expected) = (format!("{got:?}"), format!("{expected:?}"));
            assert_eq!(got, expected, "e^({log:?}) of {} on {}", S::ELEMENT, device.label());
        }
    }
}

fn run<S: Stored>(device: &Device, logs: &[S]) -> Result<Vec<S::Accum>, Error> {
    let name = S::ELEMENT.cuda_name();
    let module = kernels::shipped()
        .find(|(module, _)| *module == format!("exponential-{}", S::ELEMENT))
        .map(|(_, ptx)| device.module(ptx.text()));
    let kernel = module.expect("it is shipped")?.function(&format!("coeffs_from_logs<{name}>"))?;
    let (logs, mut coeffs) = (device.upload(logs)?, device.allocate(logs.len())?);
    let launch = kernel.launch(logs.len().div_ceil(256) as u32, 256);
    launch.arg(&logs).arg(&mut coeffs).arg(logs.len() as i64).run(&device.stream())?;
    coeffs.download()
}

#[test]
fn devices_have_the_bits_of_a_processor() {
    compare::<f32>();
    compare::<f64>();
    compare::<bf16>();
    compare::<f16>();
    compare::<Complex<f32>>();
    compare::<Complex<f64>>();
}
