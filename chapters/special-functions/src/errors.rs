//! The precision of a function, over every argument of an interval.

use rayon::prelude::*;

/// The number of arguments in a thread's piece of work.
const CHUNK: u32 = 1 << 18;

/// A function on an interval.
#[derive(Debug, Clone, Copy)]
pub struct Over {
    /// The function, from and to the bits of f32.
    pub function: fn(u32) -> u32,
    /// The exact function that it approximates.
    pub exact: fn(f64) -> f64,
    /// The bits of the first argument, and of the argument after the last.
    pub bits: (u32, u32),
}

/// The errors of a function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// The number of arguments.
    pub arguments: u32,
    /// The number of results that are the exact result rounded to nearest.
    pub rounded: u32,
    /// The lowest error in units of the exact result's last place, and its argument.
    pub low: (f64, u32),
    /// The highest error in these units, and its argument.
    pub high: (f64, u32),
    /// The largest distance to the rounded exact result, counted in numbers of f32.
    pub off: u32,
    /// The largest absolute error, and its argument.
    pub absolute: (f64, u32),
    /// The largest relative error.
    pub relative: f64,
    /// The number of results on the wrong side of the result before, and the largest such step,
    /// counted in numbers of f32.
    pub backward: (u32, u32),
}

/// Returns the error in units of the exact result's last place.
pub fn in_ulps(result: f32, exact: f64) -> f64 {
    let exponent = (exact.abs().to_bits() >> 52) as i32 - 1023;
    (f64::from(result) - exact) / f64::from(exponent - 23).exp2()
}

/// Returns a result's position among all numbers of f32, in ascending order.
fn place(bits: u32) -> i64 {
    let magnitude = i64::from(bits & 0x7fff_ffff);
    if bits >> 31 == 1 { -magnitude } else { magnitude }
}

impl Over {
    /// Compares all results with the exact function.
    pub fn errors(&self) -> Errors {
        let (first, end) = self.bits;
        let chunks = (end - first).div_ceil(CHUNK);
        let all = (0..chunks).into_par_iter().map(|chunk| {
            let from = first + chunk * CHUNK;
            self.part(from, end.min(from + CHUNK))
        });
        all.reduce_with(Errors::with).unwrap_or_else(|| self.part(first, first + 1))
    }

    fn part(&self, first: u32, end: u32) -> Errors {
        let rising = {
            let at = |bits: u32| (self.exact)(f64::from(f32::from_bits(bits)));
            at(end - 1) >= at(first)
        };
        let mut errors = Errors {
            arguments: end - first,
            rounded: 0,
            low: (f64::INFINITY, first),
            high: (f64::NEG_INFINITY, first),
            off: 0,
            absolute: (0.0, first),
            relative: 0.0,
            backward: (0, 0),
        };
        // The very first argument has no result before it.
        let mut before = (first > self.bits.0).then(|| place((self.function)(first - 1)));
        for argument in first..end {
            let exact = (self.exact)(f64::from(f32::from_bits(argument)));
            let bits = (self.function)(argument);
            let result = f32::from_bits(bits);
            let off = place(bits).abs_diff(place((exact as f32).to_bits())) as u32;
            errors.rounded += u32::from(off == 0);
            errors.off = errors.off.max(off);
            let ulps = in_ulps(result, exact);
            if ulps < errors.low.0 {
                errors.low = (ulps, argument);
            }
            if ulps > errors.high.0 {
                errors.high = (ulps, argument);
            }
            let error = (f64::from(result) - exact).abs();
            if error > errors.absolute.0 {
                errors.absolute = (error, argument);
            }
            errors.relative = errors.relative.max(error / exact.abs());
            if let Some(before) = before {
                let step = if rising { before - place(bits) } else { place(bits) - before };
                if step > 0 {
                    errors.backward.0 += 1;
                    errors.backward.1 = errors.backward.1.max(step as u32);
                }
            }
            before = Some(place(bits));
        }
        errors
    }
}

impl Errors {
    /// Combines the errors of two intervals.
    pub fn with(self, other: Self) -> Self {
        Errors {
            arguments: self.arguments + other.arguments,
            rounded: self.rounded + other.rounded,
            low: if self.low.0 <= other.low.0 { self.low } else { other.low },
            high: if self.high.0 >= other.high.0 { self.high } else { other.high },
            off: self.off.max(other.off),
            absolute: if self.absolute.0 >= other.absolute.0 {
                self.absolute
            } else {
                other.absolute
            },
            relative: self.relative.max(other.relative),
            backward: (self.backward.0 + other.backward.0, self.backward.1.max(other.backward.1)),
        }
    }
}
