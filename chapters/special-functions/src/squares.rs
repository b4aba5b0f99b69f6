//! Squarers: the exact one, and cheaper ones that hardware may have.

/// A way to square the bits of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Square {
    /// All of it.
    Exact,
    /// Of the exact square the bits below 2^k are cut off.
    Cut(u32),
    /// Of the argument the lowest bits are cut off, so many of them, and what is left is squared.
    Short(u32),
    /// Of the array of partial products `x[i] x[j]`, each in column `i + j`, the columns below 2^k
    /// are left out.
    Array(u32),
    /// Of the folded array, where `x[i] x[j]` and `x[j] x[i]` are one partial product in column
    /// `i + j + 1`, the columns below 2^k are left out.
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
    /// The square of `x`.
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

    /// It, in words.
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
        // Of the row of bit i what is in the columns from `dropped` on.
        let lowest = dropped.saturating_sub(i);
        sum += u64::from(x) >> lowest << lowest << i;
    }
    sum
}
