//! Counting roundings: a number type for error bounds.
//!
//! What is computed in floating point is a sum of terms, and every operation multiplies the terms
//! that pass through it by some `1 + ε` with `|ε| ≤ u`. A [`Count`] knows, of such a sum, how large
//! the terms are and how many roundings they have met.

use std::ops::{Add, Mul};

use linrec::Element;

/// What is known about the error of a computed number.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
// ANCHOR: count
pub struct Count {
    /// The sum of the terms' absolute values.
    pub size: f64,
    /// The sum of the terms' absolute values, each times the number of roundings that it met.
    pub weight: f64,
    /// The largest number of roundings that any term met.
    pub most: f64,
    /// What underflow may add.
    pub slack: f64,
}
// ANCHOR_END: count

// ANCHOR: operations
impl Count {
    /// What is known about this number after so many more roundings.
    pub fn rounded(self, times: f64) -> Self {
        Count {
            weight: self.weight + times * self.size,
            most: self.most + times,
            slack: self.slack + f32::SMALLEST_SUBNORMAL,
            ..self
        }
    }

    /// The product with another number, by an operation with so many roundings: 1 for real numbers,
    /// and more for complex ones.
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
        self.beside(other).rounded(1.0)
    }
}
// ANCHOR_END: operations

impl Count {
    /// The number times a power of two, or added up so many times exactly.
    pub fn exactly(self, times: f64) -> Count {
        let Count { size, weight, most, slack } = self;
        Count { size: times * size, weight: times * weight, most, slack: times * slack }
    }

    /// A number that was given exactly.
    pub fn exact(value: f64) -> Self {
        Count { size: value.abs(), ..Count::default() }
    }

    /// A sum of numbers in any order: none of them meets more additions than there are others.
    // ANCHOR: sum
    pub fn sum(terms: impl Iterator<Item = Count>) -> Self {
        let (mut sum, mut others) = (Count::default(), -1.0_f64);
        for term in terms {
            sum = sum.beside(term);
            others += 1.0;
        }
        sum.rounded(others.max(0.0))
    }
    // ANCHOR_END: sum

    /// The terms of both, not added yet.
    fn beside(self, other: Count) -> Self {
        Count {
            size: self.size + other.size,
            weight: self.weight + other.weight,
            most: self.most.max(other.most),
            slack: self.slack + other.slack,
        }
    }

    /// The largest error of a number computed in `T`, compared with one computed in double
    /// precision, which was rounded as often.
    ///
    /// A product of `n` factors between `1 - ε` and `1 / (1 - ε)` differs from one by at most
    /// `n ε / (1 - n ε)`.
    // ANCHOR: bound
    pub fn bound<T: Element>(&self) -> f64 {
        let unit = T::UNIT_ROUNDOFF + f64::UNIT_ROUNDOFF;
        match 1.0 - self.most * unit {
            rest if rest > 0.0 => (unit * self.weight + self.slack) / rest,
            // Past 1 / u roundings there is nothing left to promise.
            _ => f64::INFINITY,
        }
    }
    // ANCHOR_END: bound
}
