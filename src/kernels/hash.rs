//! A fingerprint of texts, by which a stale PTX is noticed.

use std::fmt;

/// FNV-1a with 128 bits, over texts (Fowler, Noll and Vo; RFC 9923).
///
/// It is the same on every machine: carriage returns are left out, so that a checkout with Windows
/// line ends has it too. It guards against mistakes, not against malice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hash(u128);

impl Hash {
    /// Of nothing.
    pub const EMPTY: Hash = Hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);

    /// Of everything so far and then `text`, whose end counts: `ab`, `c` differs from `a`, `bc`.
    #[must_use]
    pub fn and(self, text: &str) -> Hash {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        // No text holds a byte of 0xFF.
        let bytes = text.bytes().filter(|&byte| byte != b'\r').chain([0xFF]);
        Hash(bytes.fold(self.0, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME)))
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Hash;

    #[test]
    fn line_ends_do_not_count_and_text_ends_do() {
        assert_eq!(Hash::EMPTY.and("a\r\nb"), Hash::EMPTY.and("a\nb"));
        assert_ne!(Hash::EMPTY.and("ab").and("c"), Hash::EMPTY.and("a").and("bc"));
        assert_ne!(Hash::EMPTY.and("a").and(""), Hash::EMPTY.and("a"));
    }
}
