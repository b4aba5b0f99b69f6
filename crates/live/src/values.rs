//! The types of a kernel's arguments, and the contents of arrays: `noise`, `gates`, or numbers that
//! a reader writes.

/// A type in a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    F32,
    F64,
    U8,
    U16,
    U32,
    I32,
    U64,
    I64,
}

impl Type {
    pub fn named(name: &str) -> Result<Type, String> {
        Ok(match name {
            "f32" => Type::F32,
            "f64" => Type::F64,
            "u8" => Type::U8,
            "u16" => Type::U16,
            "u32" => Type::U32,
            "i32" => Type::I32,
            "u64" => Type::U64,
            "i64" => Type::I64,
            _ => {
                return Err(format!(
                    "there is no type `{name}`: f32, f64, u8, u16, u32, i32, u64 or i64"
                ));
            }
        })
    }

    pub fn bytes(self) -> usize {
        match self {
            Type::U8 => 1,
            Type::U16 => 2,
            Type::F32 | Type::U32 | Type::I32 => 4,
            Type::F64 | Type::U64 | Type::I64 => 8,
        }
    }

    /// Returns the bytes of a number. Integer types drop the fraction.
    pub fn encode(self, value: f64) -> Vec<u8> {
        match self {
            Type::F32 => (value as f32).to_le_bytes().to_vec(),
            Type::F64 => value.to_le_bytes().to_vec(),
            Type::U8 => vec![value as u8],
            Type::U16 => (value as u16).to_le_bytes().to_vec(),
            Type::U32 => (value as u32).to_le_bytes().to_vec(),
            Type::I32 => (value as i32).to_le_bytes().to_vec(),
            Type::U64 => (value as u64).to_le_bytes().to_vec(),
            Type::I64 => (value as i64).to_le_bytes().to_vec(),
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64)
    }

    pub fn encode_whole(self, value: i64) -> Vec<u8> {
        match self {
            Type::F32 | Type::F64 => self.encode(value as f64),
            _ => value.to_le_bytes()[..self.bytes()].to_vec(),
        }
    }
}

/// Returns the elements of an array.
///
/// - `noise`: between -1 and 1. `gates`: between 0 and 1. `near-one`: from 0.98 to 1.
/// - `zeros`. `impulse`: 1 and then zeros. `index`: 0, 1, 2 and so on.
/// - Otherwise numbers separated by commas or blanks, which repeat after the last.
pub fn elements(how: &str, count: usize) -> Result<Vec<f64>, String> {
    let mut state = 7_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 24)
    };
    let all = 0..count;
    Ok(match how.trim() {
        "noise" => all.map(|_| 2.0 * random() - 1.0).collect(),
        "gates" => all.map(|_| random()).collect(),
        "near-one" => all.map(|_| 0.98 + 0.02 * random()).collect(),
        "zeros" => vec![0.0; count],
        "impulse" => all.map(|i| if i == 0 { 1.0 } else { 0.0 }).collect(),
        "index" => all.map(|i| i as f64).collect(),
        list => {
            let numbers: Result<Vec<f64>, String> = list
                .split([',', ' '])
                .filter(|word| !word.is_empty())
                .map(|word| word.parse().map_err(|_| format!("`{word}` is no number")))
                .collect();
            let numbers = numbers?;
            if numbers.is_empty() {
                return Err("no values".to_owned());
            }
            numbers.iter().copied().cycle().take(count).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lists_of_values_repeat() {
        assert_eq!(elements("1, 0.5", 3), Ok(vec![1.0, 0.5, 1.0]));
        assert_eq!(elements("index", 3), Ok(vec![0.0, 1.0, 2.0]));
        assert!(elements("1, x", 3).unwrap_err().contains("`x` is no number"));
        assert!(elements(" , ", 3).is_err());
        let noise = elements("noise", 100).unwrap();
        assert!(noise.iter().all(|value| (-1.0..1.0).contains(value)));
    }
}
