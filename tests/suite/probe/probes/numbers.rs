//! Numbers that are the same in every run, without a pattern that a mistake could hide in.

use linrec::Element;

/// The number in [0, 1) with this index of the sequence `seed` (the generator splitmix64).
pub fn unit(seed: u64, index: usize) -> f64 {
    let mut z = (seed << 40).wrapping_add(index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z >> 40) as f64 / (1u64 << 24) as f64
}

/// `len` numbers of absolute value between `low` and `high`; complex ones point anywhere.
pub fn numbers<T: Element>(seed: u64, len: usize, low: f64, high: f64) -> Vec<T> {
    let number = |index| {
        let angle = std::f64::consts::TAU * unit(seed + 1, index);
        T::from_polar(low + (high - low) * unit(seed, index), angle)
    };
    (0..len).map(number).collect()
}

/// `len` numbers between 0.5 and 1.5.
pub fn floats(seed: u64, len: usize) -> Vec<f32> {
    numbers(seed, len, 0.5, 1.5)
}
