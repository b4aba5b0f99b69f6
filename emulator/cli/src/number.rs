//! The types of the numbers in arguments and buffers: from text to little-endian bytes, and back.

use half::{bf16, f16};

/// A type of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// An unsigned integer of this many bytes.
    Unsigned(usize),
    /// A signed integer of this many bytes.
    Signed(usize),
    /// IEEE's half precision.
    F16,
    /// The upper half of an `f32`.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

use Type::*;

const NAMES: [(&str, Type); 12] = [
    ("u8", Unsigned(1)),
    ("u16", Unsigned(2)),
    ("u32", Unsigned(4)),
    ("u64", Unsigned(8)),
    ("i8", Signed(1)),
    ("i16", Signed(2)),
    ("i32", Signed(4)),
    ("i64", Signed(8)),
    ("f16", F16),
    ("bf16", Bf16),
    ("f32", F32),
    ("f64", F64),
];

impl Type {
    /// Returns the type of this name. Integers may also have the `s` and `b` of PTX.
    pub fn named(name: &str) -> Result<Type, String> {
        let of_ptx = name.strip_prefix('s').map(|bits| format!("i{bits}"));
        let of_ptx = of_ptx.or_else(|| {
            let bits = name.strip_prefix('b')?;
            Some(format!("u{bits}"))
        });
        let same = |(known, _): &&(&str, Type)| *known == name || of_ptx.as_deref() == Some(known);
        NAMES.iter().find(same).map(|(_, ty)| *ty).ok_or_else(|| {
            format!("`{name}` is not a type; types are {}", NAMES.map(|(name, _)| name).join(", "))
        })
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, ty)| *ty == self).map_or("?", |(name, _)| name)
    }

    /// Returns its size and alignment in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Unsigned(bytes) | Signed(bytes) => bytes,
            F16 | Bf16 => 2,
            F32 => 4,
            F64 => 8,
        }
    }

    /// Returns whether its numbers have fractions.
    pub fn is_float(self) -> bool {
        !matches!(self, Unsigned(_) | Signed(_))
    }

    /// Returns the bytes of a number: decimal or, for integers, also hexadecimal (`0x1f`).
    pub fn parse(self, text: &str) -> Result<Vec<u8>, String> {
        let text = text.trim();
        let wrong = || format!("`{text}` is not a number of the type {}", self.name());
        if self.is_float() {
            return Ok(self.float(text.parse().map_err(|_| wrong())?));
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        let size = match digits.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        let size = size.ok().filter(|size| *size >= 0).ok_or_else(wrong)?;
        let value = if digits == text { size } else { -size };
        self.integer(value).ok_or_else(|| format!("{text} is out of the range of {}", self.name()))
    }

    /// Returns the bytes of the nearest number of a type with fractions.
    pub fn float(self, value: f64) -> Vec<u8> {
        match self {
            F16 => f16::from_f64(value).to_le_bytes().to_vec(),
            Bf16 => bf16::from_f64(value).to_le_bytes().to_vec(),
            F32 => (value as f32).to_le_bytes().to_vec(),
            F64 => value.to_le_bytes().to_vec(),
            Unsigned(_) | Signed(_) => Vec::new(),
        }
    }

    /// Returns the bytes of an integer if it is in the type's range, or of the nearest number if
    /// the type has fractions.
    pub fn integer(self, value: i128) -> Option<Vec<u8>> {
        let bits = 8 * self.bytes() as u32;
        let range = match self {
            Unsigned(_) => 0..=(1_i128 << bits) - 1,
            Signed(_) => -(1_i128 << (bits - 1))..=(1_i128 << (bits - 1)) - 1,
            _ => return Some(self.float(value as f64)),
        };
        range.contains(&value).then(|| value.to_le_bytes()[..self.bytes()].to_vec())
    }

    /// Returns the number of these bytes as text. Takes as many bytes as the type has.
    pub fn show(self, bytes: &[u8]) -> String {
        match self {
            F32 => format!("{:?}", self.value(bytes) as f32),
            F16 | Bf16 | F64 => format!("{:?}", self.value(bytes)),
            Unsigned(_) | Signed(_) => self.whole(bytes).to_string(),
        }
    }

    /// Returns the `f64` nearest to the number of these bytes.
    pub fn value(self, bytes: &[u8]) -> f64 {
        let word = self.whole(bytes);
        match self {
            F16 => f16::from_bits(word as u16).to_f64(),
            Bf16 => bf16::from_bits(word as u16).to_f64(),
            F32 => f32::from_bits(word as u32).into(),
            F64 => f64::from_bits(word as u64),
            Unsigned(_) | Signed(_) => word as f64,
        }
    }

    /// Returns the bits as an integer, with the sign of a signed type.
    fn whole(self, bytes: &[u8]) -> i128 {
        let word = bytes.iter().rev().fold(0, |word, byte| word << 8 | i128::from(*byte));
        let unused = 128 - 8 * bytes.len() as u32;
        if matches!(self, Signed(_)) { word << unused >> unused } else { word }
    }
}
