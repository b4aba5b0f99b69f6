//! A fingerprint of texts, which shows that a PTX is stale or foreign.

use std::fmt;

use sha2::{Digest, Sha256};

/// SHA-256 of a list of texts (FIPS 180-4). Nobody can find another list with the same hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Hashes texts in this order, with their lengths: `ab`, `c` differs from `a`, `bc`.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Hash {
        let mut hash = Sha256::new();
        for text in texts {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        Hash(hash.finalize().into())
    }
}

/// 64 hexadecimal digits.
impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Hash;

    #[test]
    fn a_text_is_hashed_behind_its_length() {
        // The output of `printf '\3\0\0\0\0\0\0\0abc' | sha256sum`.
        let expected = "ce91dc5eec0139adf091900d225971d6ad246a845bad791b5693a9d0d55dd391";
        assert_eq!(Hash::of(["abc"]).to_string(), expected);
    }

    #[test]
    fn the_ends_of_texts_count() {
        assert_ne!(Hash::of(["ab", "c"]), Hash::of(["a", "bc"]));
        assert_ne!(Hash::of(["a", ""]), Hash::of(["a"]));
        assert_ne!(Hash::of(["a"]), Hash::of([]));
    }
}
