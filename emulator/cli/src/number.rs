//! The types of numbers that arguments and buffers are made of: from text to bytes, and back.

use half::{bf16, f16};

/// A type of numbers. All are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Without a sign, and so many bytes.
    Unsigned(usize),
    /// With a sign, and so many bytes.
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

const NAMES: [(&str, Type); 12] = [
    ("u8", Type::Unsigned(1)),
    ("u16", Type::Unsigned(2)),
    ("u32", Type::Unsigned(4)),
    ("u64", Type::Unsigned(8)),
    ("i8", Type::Signed(1)),
    ("i16", Type::Signed(2)),
    ("i32", Type::Signed(4)),
    ("i64", Type::Signed(8)),
    ("f16", Type::F16),
    ("bf16", Type::Bf16),
    ("f32", Type::F32),
    ("f64", Type::F64),
];

impl Type {
    /// The type of that name, also with the `s` and `b` of PTX for integers.
    pub fn named(name: &str) -> Result<Type, String> {
        let find = |name: &str| NAMES.iter().find(|(known, _)| *known == name).map(|(_, ty)| *ty);
        let as_in_ptx = || match name.split_at_checked(1)? {
            ("s", bits) => find(&format!("i{bits}")),
            ("b", bits) => find(&format!("u{bits}")),
            _ => None,
        };
        find(name).or_else(as_in_ptx).ok_or_else(|| {
            let names = NAMES.map(|(name, _)| name).join(", ");
            format!("`{name}` is no type; there are {names}")
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, ty)| *ty == self).map_or("?", |(name, _)| name)
    }

    /// Its size and alignment in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Type::Unsigned(bytes) | Type::Signed(bytes) => bytes,
            Type::F16 | Type::Bf16 => 2,
            Type::F32 => 4,
            Type::F64 => 8,
        }
    }

    /// Whether its numbers have fractions.
    pub fn is_float(self) -> bool {
        !matches!(self, Type::Unsigned(_) | Type::Signed(_))
    }

    /// The number that a text stands for: decimal or, of integers, hexadecimal (`0x1f`).
    pub fn parse(self, text: &str) -> Result<Vec<u8>, String> {
        let text = text.trim();
        let wrong = || format!("`{text}` is no {}", self.name());
        if self.is_float() {
            return Ok(self.float(text.parse().map_err(|_| wrong())?));
        }
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let size = match digits.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        let size = size.ok().filter(|size| *size >= 0).ok_or_else(wrong)?;
        self.integer(if negative { -size } else { size })
            .ok_or_else(|| format!("{text} is beyond the numbers of {}", self.name()))
    }

    /// The nearest number of a type with fractions, as bytes; of an integer none.
    pub fn float(self, value: f64) -> Vec<u8> {
        match self {
            Type::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
            Type::Bf16 => bf16::from_f64(value).to_le_bytes().to_vec(),
            Type::F32 => (value as f32).to_le_bytes().to_vec(),
            Type::F64 => value.to_le_bytes().to_vec(),
            Type::Unsigned(_) | Type::Signed(_) => Vec::new(),
        }
    }

    /// An integer as bytes of this type, if it has it; of a type with fractions the nearest number.
    pub fn integer(self, value: i128) -> Option<Vec<u8>> {
        let bits = 8 * self.bytes() as u32;
        let range = match self {
            Type::Unsigned(_) => 0..=(1_i128 << bits) - 1,
            Type::Signed(_) => -(1_i128 << (bits - 1))..=(1_i128 << (bits - 1)) - 1,
            _ => return Some(self.float(value as f64)),
        };
        range.contains(&value).then(|| value.to_le_bytes()[..self.bytes()].to_vec())
    }

    /// The number that these bytes are, in words; as many bytes as the type has.
    pub fn show(self, bytes: &[u8]) -> String {
        match self {
            Type::F32 => format!("{:?}", self.value(bytes) as f32),
            Type::F16 | Type::Bf16 | Type::F64 => format!("{:?}", self.value(bytes)),
            Type::Unsigned(_) => self.whole(bytes).to_string(),
            Type::Signed(_) => {
                let shift = 128 - 8 * bytes.len() as u32;
                ((self.whole(bytes) << shift) >> shift).to_string()
            }
        }
    }

    /// The number that these bytes are, as near as an `f64` is.
    pub fn value(self, bytes: &[u8]) -> f64 {
        let word = self.whole(bytes);
        match self {
            Type::F16 => f16::from_bits(word as u16).to_f64(),
            Type::Bf16 => bf16::from_bits(word as u16).to_f64(),
            Type::F32 => f32::from_bits(word as u32).into(),
            Type::F64 => f64::from_bits(word as u64),
            Type::Unsigned(_) => word as f64,
            Type::Signed(_) => {
                let shift = 128 - 8 * bytes.len() as u32;
                ((word << shift) >> shift) as f64
            }
        }
    }

    fn whole(self, bytes: &[u8]) -> i128 {
        bytes.iter().rev().fold(0, |word, byte| word << 8 | i128::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_they_were() {
        for (ty, text) in [
            ("u8", "255"),
            ("i8", "-128"),
            ("i64", "-9223372036854775808"),
            ("u64", "18446744073709551615"),
            ("f16", "0.5"),
            ("bf16", "-2.0"),
            ("f32", "0.1"),
            ("f64", "1e300"),
        ] {
            let ty = Type::named(ty).unwrap();
            let bytes = ty.parse(text).unwrap();
            assert_eq!((bytes.len(), ty.show(&bytes)), (ty.bytes(), text.to_owned()));
        }
        assert_eq!(Type::named("s32"), Ok(Type::Signed(4)));
        assert_eq!(Type::named("b64").unwrap().parse("0xffffffffffffffff").unwrap(), [0xff; 8]);
    }

    #[test]
    fn what_is_no_number_is_told_with_its_type() {
        let said = |ty: &str, text: &str| Type::named(ty).unwrap().parse(text).unwrap_err();
        assert_eq!(said("u8", "256"), "256 is beyond the numbers of u8");
        assert_eq!(said("u32", "-1"), "-1 is beyond the numbers of u32");
        assert_eq!(said("i32", "1.5"), "`1.5` is no i32");
        assert_eq!(said("i32", "--5"), "`--5` is no i32");
        assert_eq!(said("f32", ""), "`` is no f32");
        assert!(Type::named("float").unwrap_err().contains("there are u8, "));
        for name in ["", "s", "é", "b7", "sf32"] {
            assert!(Type::named(name).is_err(), "{name}");
        }
    }
}
