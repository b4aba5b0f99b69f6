//! The operands that instructions are tried with: edges, patterns, and some at random.

/// Random numbers that are the same in every run (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// The low bits of a value.
pub fn low(value: u64, bits: u32) -> u64 {
    if bits == 64 { value } else { value & ((1 << bits) - 1) }
}

/// Integers of a width: around 0, around the powers of two that matter, the extremes, patterns.
pub fn integers(bits: u32) -> Vec<u64> {
    let mut all = vec![0, 1, 2, 3, 7, 31, 32, 33, 100, 0x5555_5555_5555_5555];
    all.extend([0xaaaa_aaaa_aaaa_aaaa, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
    for power in [7, 8, 15, 16, 24, 31, 32, 48, 63] {
        if power < bits {
            all.extend([(1 << power) - 1, 1 << power, (1 << power) + 1]);
        }
    }
    let negative: Vec<u64> = [1_u64, 2, 3, 100, 128, 129].map(u64::wrapping_neg).into();
    all.extend(negative);
    let mut random = Random(bits.into());
    all.extend((0..4).map(|_| random.next()));
    all.iter_mut().for_each(|value| *value = low(*value, bits));
    all.sort_unstable();
    all.dedup();
    all
}

/// Shifts, positions and lengths of 32 bits.
pub fn shifts() -> Vec<u64> {
    let mut all: Vec<u64> = (0..=34).collect();
    all.extend(47..=49);
    all.extend(62..=66);
    all.extend([95, 96, 127, 128, 129, 255, 256, 257, 288, 0x1_0000, 1 << 31, u32::MAX.into()]);
    all
}

/// Floating-point numbers of a format, as bits: zeros, subnormals, extremes, infinities, NaNs;
/// integers and halves; powers of two at which conversions begin to round or to overflow; and
/// neighbours of all these.
pub fn floats(fraction: u32, exponent: u32) -> Vec<u64> {
    let (bias, infinity) = ((1_u64 << (exponent - 1)) - 1, ((1_u64 << exponent) - 1) << fraction);
    let one = bias << fraction;
    let power = |p: i64| (one as i64 + (p << fraction)) as u64;
    let mut all = vec![0, 1, 2, 3, (1 << fraction) - 1, 1 << fraction, (1 << fraction) + 1];
    all.extend([infinity - 1, infinity, infinity + 1, infinity | 1 << (fraction - 1)]);
    // 1.5, 2.5, 0.5 and their neighbours; 3 and 1/3.
    let half = 1 << (fraction - 1);
    all.extend([one - 1, one, one + 1, one + half, power(1) + half / 2, power(1) + half]);
    all.extend([power(-1) - 1, power(-1), power(-1) + 1, power(-2) + (1 << fraction) / 3]);
    let greatest = (bias as i64).min(64);
    for p in [4, 7, 8, 11, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64] {
        if p <= greatest {
            all.extend([power(p) - 1, power(p), power(p) + 1, power(p) + half]);
        }
    }
    let mut random = Random(u64::from(fraction));
    let spread = (4 * (u64::from(fraction) + 3)) << fraction;
    for _ in 0..6 {
        all.push(low(random.next(), fraction + exponent).min(infinity));
        // Near 1, where sums cancel and products round.
        all.push((one + random.next() % spread).saturating_sub(spread / 2).min(infinity - 1));
    }
    all.sort_unstable();
    all.dedup();
    let sign = 1 << (fraction + exponent);
    let negative: Vec<u64> = all.iter().map(|bits| bits | sign).collect();
    all.extend(negative);
    all
}

pub fn f32s() -> Vec<u64> {
    floats(23, 8)
}

pub fn f64s() -> Vec<u64> {
    floats(52, 11)
}
