//! A function's results on one binade, which its table has to explain.

use simt::special;

/// The number of arguments with the same exponent.
pub const ARGUMENTS: u32 = 1 << 23;

/// A function on [1, 2), where all its results have the same unit in the last place.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// The name of the function.
    pub name: &'static str,
    /// The function, from and to the bits of f32.
    pub function: fn(u32) -> u32,
    /// The exact function that it approximates.
    pub exact: fn(f64) -> f64,
    /// A result's unit in the last place, as 2^-unit.
    pub unit: i32,
    /// The number of an argument's 23 bits that select the segment.
    pub index: u32,
    /// The column below which the square has no partial products.
    pub dropped: u32,
}

/// 2^x. (Its table is for the fraction: 2^(1 + x) is twice 2^x.)
pub const EX2: Table = Table {
    name: "ex2",
    function: |x| special::ex2(x, true),
    exact: f64::exp2,
    unit: 22,
    index: 6,
    dropped: 19,
};

/// 1/x.
pub const RCP: Table = Table {
    name: "rcp",
    function: |x| special::rcp(x, true),
    exact: |x| 1.0 / x,
    unit: 24,
    index: 7,
    dropped: 17,
};

impl Table {
    /// Returns the number of an argument's bits below the segment's number.
    pub fn bits(&self) -> u32 {
        23 - self.index
    }

    /// Returns the number of segments.
    pub fn segments(&self) -> u32 {
        1 << self.index
    }

    /// Returns the bits of the argument with this fraction.
    pub fn argument(&self, fraction: u32) -> u32 {
        0x3f80_0000 + fraction
    }

    /// Returns the result as an integer, in units of its last place.
    pub fn result(&self, fraction: u32) -> u32 {
        let result = f32::from_bits((self.function)(self.argument(fraction)));
        (f64::from(result) * f64::from(self.unit).exp2()) as u32
    }

    /// Returns all results of a segment.
    pub fn results(&self, segment: u32) -> Vec<u32> {
        let bits = self.bits();
        (0..1 << bits).map(|x| self.result(segment << bits | x)).collect()
    }

    /// Returns the mean error of every group of neighbours, in units of the result's last place.
    pub fn mean_errors(&self, group: u32) -> Vec<f64> {
        let error = |fraction: u32| {
            let x = f64::from(f32::from_bits(self.argument(fraction)));
            f64::from(self.result(fraction)) - (self.exact)(x) * f64::from(self.unit).exp2()
        };
        let mean = |first: u32| (first..first + group).map(error).sum::<f64>() / f64::from(group);
        (0..ARGUMENTS / group).map(|i| mean(i * group)).collect()
    }
}
