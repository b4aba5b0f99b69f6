//! A fingerprint of texts, by which a stale or foreign PTX is noticed.

use std::fmt;

use sha2::{Digest, Sha256};

/// SHA-256 over a list of texts (FIPS 180-4): nobody can make another list with the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Of these texts, in this order; where each one ends counts: `ab`, `c` differs from `a`, `bc`.
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
    fn one_text_is_hashed_after_its_length() {
        // As `printf '\3\0\0\0\0\0\0\0abc' | sha256sum` says.
        let expected = "ce91dc5eec0139adf091900d225971d6ad246a845bad791b5693a9d0d55dd391";
        assert_eq!(Hash::of(["abc"]).to_string(), expected);
    }

    #[test]
    fn where_texts_end_counts() {
        assert_ne!(Hash::of(["ab", "c"]), Hash::of(["a", "bc"]));
        assert_ne!(Hash::of(["a", ""]), Hash::of(["a"]));
        assert_ne!(Hash::of(["a"]), Hash::of([]));
    }
}
