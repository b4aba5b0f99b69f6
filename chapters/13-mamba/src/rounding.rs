//! Counting roundings: a number type for error bounds.
//!
//! A result in floating point is a sum of terms, and every operation multiplies the terms that pass
//! through it by some `1 + ε` with `|ε| ≤ u`. A [`Count`] records the size of the terms of such a
//! sum and the number of roundings they have been through.

use std::ops::{Add, Mul};

use linrec::Element;

/// The size of a computed number and the roundings it has been through.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
// ANCHOR: count
pub struct Count {
    /// The sum of the terms' absolute values.
    pub size: f64,
    /// The sum of the terms' absolute values, each times its number of roundings.
    pub weight: f64,
    /// The largest number of roundings of any term.
    pub most: f64,
    /// The error that underflow may add.
    pub slack: f64,
}
// ANCHOR_END: count

// ANCHOR: operations
impl Count {
    /// Returns this count after `times` more roundings.
    pub fn rounded(self, times: f64) -> Self {
        Count {
            weight: self.weight + times * self.size,
            most: self.most + times,
            slack: self.slack + f32::SMALLEST_SUBNORMAL,
            ..self
        }
    }

    /// Multiplies by another number, with an operation of `roundings` roundings: 1 for real
    /// numbers, and more for complex ones.
    pub fn times(self, other: Count, roundings: f64) -> Count {
        let product = Count {
            size: self.size * other.size,
            weight: self.weight * other.size + self.size * other.weight,
            most: self.most + other.most,
            slack: self.slack * other.size + self.size * other.slack + self.slack * other.slack,
        };
        product.rounded(roundings)
    }
}

impl Mul for Count {
    type Output = Count;

    fn mul(self, other: Count) -> Count {
        self.times(other, 1.0)
    }
}

impl Add for Count {
    type Output = Count;

    fn add(self, other: Count) -> Count {
        self.joined(other).rounded(1.0)
    }
}
// ANCHOR_END: operations

impl Count {
    /// Multiplies exactly, by a power of two or by repeated addition without rounding.
    pub fn exactly(self, times: f64) -> Count {
        let Count { size, weight, most, slack } = self;
        Count { size: times * size, weight: times * weight, most, slack: times * slack }
    }

    /// Counts a number that was given exactly.
    pub fn exact(value: f64) -> Self {
        Count { size: value.abs(), ..Count::default() }
    }

    /// Adds numbers in any order: each meets at most as many additions as there are others.
    // ANCHOR: sum
    pub fn sum(terms: impl Iterator<Item = Count>) -> Self {
        let (mut sum, mut others) = (Count::default(), -1.0_f64);
        for term in terms {
            sum = sum.joined(term);
            others += 1.0;
        }
        sum.rounded(others.max(0.0))
    }
    // ANCHOR_END: sum

    /// Collects the terms of both without adding them.
    fn joined(self, other: Count) -> Self {
        Count {
            size: self.size + other.size,
            weight: self.weight + other.weight,
            most: self.most.max(other.most),
            slack: self.slack + other.slack,
        }
    }

    /// Returns the largest error of a number computed in `T` against the same number computed in
    /// double precision with the same number of roundings.
    ///
    /// A product of `n` factors between `1 - ε` and `1 / (1 - ε)` differs from one by at most
    /// `n ε / (1 - n ε)`.
    // ANCHOR: bound
    pub fn bound<T: Element>(&self) -> f64 {
        let unit = T::UNIT_ROUNDOFF + f64::UNIT_ROUNDOFF;
        match 1.0 - self.most * unit {
            rest if rest > 0.0 => (unit * self.weight + self.slack) / rest,
            // Beyond 1 / u roundings no bound exists.
            _ => f64::INFINITY,
        }
    }
    // ANCHOR_END: bound
}
