//! What a buffer holds before the kernel runs.

use std::fs;

use crate::number::Type;

/// Numbers to fill with, as the command line says them.
#[derive(Debug, Clone, PartialEq)]
pub enum Fill {
    /// Nothing: a kernel that reads there is told so.
    Unwritten,
    /// These bytes, over and over; as many as an element has.
    Each(Vec<u8>),
    /// These bytes, all of them.
    All(Vec<u8>),
    /// Random numbers from the first up to the second.
    Random(f64, f64),
    /// The element's number, with one operation after the other applied to it.
    Index(Vec<(char, i64)>),
    /// What is in a file: raw bytes, little-endian.
    File(String),
}

impl Fill {
    /// Reads `0`, `1,2,3`, `random`, `random:-1..1`, `index`, `index%7+1`, `@file` or `unwritten`.
    pub fn parse(text: &str, ty: Type) -> Result<Fill, String> {
        if let Some(path) = text.strip_prefix('@') {
            return Ok(Fill::File(path.to_owned()));
        }
        if let Some(rest) = text.strip_prefix("random") {
            return random(rest, ty).ok_or_else(|| {
                format!("`{text}` is neither `random` nor `random:LOW..HIGH` with LOW below HIGH")
            });
        }
        if let Some(rest) = text.strip_prefix("index") {
            let wrong =
                || format!("`{text}` is not `index` with `+N`, `-N`, `*N`, `/N` or `%N` behind it");
            return operations(rest).map(Fill::Index).ok_or_else(wrong);
        }
        if text == "unwritten" {
            return Ok(Fill::Unwritten);
        }
        let numbers: Vec<_> =
            text.split(',').map(|text| ty.parse(text)).collect::<Result<_, _>>()?;
        Ok(match &numbers[..] {
            [one] => Fill::Each(one.clone()),
            _ => Fill::All(numbers.concat()),
        })
    }

    /// The bytes of `count` elements; `None` of what is not written. `seed` tells random numbers of
    /// one buffer from those of another.
    pub fn bytes(&self, ty: Type, count: usize, seed: u64) -> Result<Option<Vec<u8>>, String> {
        let all = ty.bytes().checked_mul(count).ok_or("more bytes than there are addresses")?;
        let exactly = |bytes: Vec<u8>, what: &str| {
            let is = bytes.len();
            if is == all {
                return Ok(Some(bytes));
            }
            let (name, each) = (ty.name(), ty.bytes());
            Err(format!(
                "{what} holds {is} bytes, and {count} numbers of {name} take {} of {each}",
                all
            ))
        };
        match self {
            Fill::Unwritten => return Ok(None),
            Fill::All(bytes) => {
                let given = bytes.len() / ty.bytes();
                let wrong = format!("{given} numbers are given, and there are {count}");
                return if bytes.len() == all { Ok(Some(bytes.clone())) } else { Err(wrong) };
            }
            Fill::File(path) => {
                let bytes =
                    fs::read(path).map_err(|error| format!("cannot read {path}: {error}"))?;
                return exactly(bytes, path);
            }
            _ => {}
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(all).map_err(|_| format!("there is no memory for {all} bytes"))?;
        for number in 0..count as u64 {
            match self {
                Fill::Each(one) => bytes.extend_from_slice(one),
                Fill::Random(low, high) => bytes.extend(drawn(ty, *low, *high, seed, number)),
                Fill::Index(operations) => bytes.extend(indexed(ty, operations, number)?),
                _ => {}
            }
        }
        Ok(Some(bytes))
    }
}

fn random(rest: &str, ty: Type) -> Option<Fill> {
    if rest.is_empty() {
        return Some(Fill::Random(0.0, if ty.is_float() { 1.0 } else { 100.0 }));
    }
    let (low, high) = rest.strip_prefix(':')?.split_once("..")?;
    let (low, high): (f64, f64) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
    (low < high && low.is_finite() && high.is_finite()).then_some(Fill::Random(low, high))
}

fn operations(mut rest: &str) -> Option<Vec<(char, i64)>> {
    let mut operations = Vec::new();
    while let Some(operator) = rest.chars().next() {
        let number = rest.get(1..)?;
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let value: i64 = number[..end].parse().ok()?;
        let divides = matches!(operator, '/' | '%') && value != 0;
        if !divides && !matches!(operator, '+' | '-' | '*') {
            return None;
        }
        operations.push((operator, value));
        rest = &number[end..];
    }
    Some(operations)
}

/// A number between two others, drawn by a seed and a place: it is the same on every machine
/// (SplitMix64).
fn drawn(ty: Type, low: f64, high: f64, seed: u64, number: u64) -> Vec<u8> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0xd1b5_4a32_d192_ed03);
    state = state.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    let unit = ((state ^ state >> 31) >> 11) as f64 / (1_u64 << 53) as f64;
    let value = low + (high - low) * unit;
    let whole = || ty.integer(value.floor() as i128).unwrap_or_else(|| vec![0; ty.bytes()]);
    if ty.is_float() { ty.float(value) } else { whole() }
}

fn indexed(ty: Type, operations: &[(char, i64)], number: u64) -> Result<Vec<u8>, String> {
    let apply = |value: i128, &(operator, by): &(char, i64)| {
        let by = i128::from(by);
        match operator {
            '+' => value.saturating_add(by),
            '-' => value.saturating_sub(by),
            '*' => value.saturating_mul(by),
            '/' => value / by,
            _ => value % by,
        }
    };
    let value = operations.iter().fold(i128::from(number), apply);
    let wrong =
        || format!("element {number} would be {value}, beyond the numbers of {}", ty.name());
    ty.integer(value).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    const U32: Type = Type::Unsigned(4);

    fn filled(text: &str, ty: Type, count: usize) -> Result<Vec<String>, String> {
        let bytes = Fill::parse(text, ty)?.bytes(ty, count, 0)?.unwrap_or_default();
        Ok(bytes.chunks(ty.bytes()).map(|bytes| ty.show(bytes)).collect())
    }

    #[test]
    fn fills_are_what_they_say() {
        assert_eq!(filled("7", U32, 3).unwrap(), ["7", "7", "7"]);
        assert_eq!(filled("1,2,3", U32, 3).unwrap(), ["1", "2", "3"]);
        assert_eq!(filled("index", Type::F32, 3).unwrap(), ["0.0", "1.0", "2.0"]);
        assert_eq!(filled("index*3%4+1", U32, 4).unwrap(), ["1", "4", "3", "2"]);
        assert_eq!(filled("unwritten", U32, 4).unwrap(), [""; 0]);
        let drawn = filled("random:-2..-1", Type::F32, 1000).unwrap();
        let drawn: Vec<f32> = drawn.iter().map(|text| text.parse().unwrap()).collect();
        assert!(drawn.iter().all(|value| (-2.0..=-1.0).contains(value)));
        let mean = drawn.iter().sum::<f32>() / 1000.0;
        assert!((mean + 1.5).abs() < 0.05, "{mean}");
        let mut whole = filled("random:3..6", Type::Unsigned(1), 100).unwrap();
        whole.sort();
        whole.dedup();
        assert_eq!(whole, ["3", "4", "5"]);
    }

    #[test]
    fn wrong_fills_are_told() {
        for (text, said) in [
            ("1,2", "2 numbers are given, and there are 3"),
            ("random:2..1", "LOW below HIGH"),
            ("random5", "neither `random` nor"),
            ("index%0", "is not `index` with"),
            ("index*é", "is not `index` with"),
            ("index-1", "element 0 would be -1, beyond the numbers of u32"),
            ("x", "`x` is no u32"),
            ("@/no/such/file", "cannot read /no/such/file"),
        ] {
            let error = filled(text, U32, 3).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert!(Fill::Each(vec![0; 4]).bytes(U32, usize::MAX / 2, 0).is_err());
    }
}
