//! Squarers: the exact one, and cheaper ones that hardware may use.

/// A way to square the bits of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Square {
    /// The whole square.
    Exact,
    /// The exact square without the bits below 2^k.
    Cut(u32),
    /// The square of the argument without its lowest bits; the number says how many.
    Short(u32),
    /// The partial products `x[i] x[j]` in columns `i + j`, without the columns below 2^k.
    Array(u32),
    /// The folded array, in which `x[i] x[j]` and `x[j] x[i]` are one partial product in column
    /// `i + j + 1`, without the columns below 2^k.
    Folded(u32),
}

// ANCHOR: folded
/// The square of `x` without the columns below `2^dropped` of its folded array.
pub fn folded(x: u32, dropped: u32) -> u64 {
    let bit = |i: u32| u64::from(x >> i & 1);
    let mut sum = 0;
    for i in 0..u32::BITS {
        // x[i] x[i] is x[i].
        if 2 * i >= dropped {
            sum += bit(i) << (2 * i);
        }
        for j in 0..i {
            if i + j + 1 >= dropped {
                sum += (bit(i) & bit(j)) << (i + j + 1);
            }
        }
    }
    sum
}
// ANCHOR_END: folded

impl Square {
    /// Returns the square of `x`.
    pub fn of(self, x: u32) -> u64 {
        let exact = |x: u32| u64::from(x) * u64::from(x);
        match self {
            Square::Exact => exact(x),
            Square::Cut(k) => exact(x) >> k << k,
            Square::Short(k) => exact(x >> k << k),
            Square::Array(dropped) => array(x, dropped),
            Square::Folded(dropped) => folded(x, dropped),
        }
    }

    /// Returns the name in words.
    pub fn name(self) -> String {
        match self {
            Square::Exact => String::from("exact"),
            Square::Cut(k) => format!("exact, cut at 2^{k}"),
            Square::Short(k) => format!("of x without {k} bits"),
            Square::Array(k) => format!("array from 2^{k}"),
            Square::Folded(k) => format!("folded from 2^{k}"),
        }
    }
}

fn array(x: u32, dropped: u32) -> u64 {
    let mut sum = 0;
    for i in (0..u32::BITS).filter(|i| x >> i & 1 == 1) {
        // The part of bit i's row in the columns from `dropped` on.
        let lowest = dropped.saturating_sub(i);
        sum += u64::from(x) >> lowest << lowest << i;
    }
    sum
}
