//! The contents of a buffer before the launch: `0`, `1,2,3`, `random:-1..1`, `index%7+1`, `@file`.

use std::fs;

use crate::number::Type;

/// Returns the bytes of `count` numbers that `text` describes, or `None` if they stay `unwritten`.
///
/// Buffers with different `seed`s get different random numbers.
pub fn bytes(text: &str, ty: Type, count: usize, seed: u64) -> Result<Option<Vec<u8>>, String> {
    let size = ty.bytes().checked_mul(count).ok_or("more bytes than there are addresses")?;
    if text == "unwritten" {
        return Ok(None);
    }
    if let Some(path) = text.strip_prefix('@') {
        let bytes = fs::read(path).map_err(|error| format!("cannot read {path}: {error}"))?;
        let (found, name) = (bytes.len(), ty.name());
        let wrong =
            || format!("{path} has {found} bytes, and {count} numbers of {name} have {size}");
        return if found == size { Ok(Some(bytes)) } else { Err(wrong()) };
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| format!("there is no memory for {size} bytes"))?;
    let numbers = 0..count as u64;
    if let Some(rest) = text.strip_prefix("random") {
        let (low, high) = bounds(rest, ty).ok_or_else(|| {
            format!("`{text}` is neither `random` nor `random:LOW..HIGH` with LOW below HIGH")
        })?;
        bytes.extend(numbers.flat_map(|number| drawn(ty, low, high, seed, number)));
    } else if let Some(rest) = text.strip_prefix("index") {
        let operations = operations(rest).ok_or_else(|| {
            format!("`{text}` is not `index` followed by `+N`, `-N`, `*N`, `/N` or `%N`")
        })?;
        for number in numbers {
            bytes.extend(indexed(ty, &operations, number)?);
        }
    } else if !text.contains(',') {
        let one = ty.parse(text)?;
        numbers.for_each(|_| bytes.extend_from_slice(&one));
    } else {
        for number in text.split(',') {
            bytes.extend(ty.parse(number)?);
        }
        let given = bytes.len() / ty.bytes();
        if given != count {
            return Err(format!("{given} numbers are given, and {count} are needed"));
        }
    }
    Ok(Some(bytes))
}

/// Reads what follows `random`: nothing, or `:-1..1`.
fn bounds(rest: &str, ty: Type) -> Option<(f64, f64)> {
    if rest.is_empty() {
        return Some((0.0, if ty.is_float() { 1.0 } else { 100.0 }));
    }
    let (low, high) = rest.strip_prefix(':')?.split_once("..")?;
    let (low, high): (f64, f64) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
    (low < high && low.is_finite() && high.is_finite()).then_some((low, high))
}

/// Reads what follows `index`: operators, each with a number.
fn operations(mut rest: &str) -> Option<Vec<(char, i128)>> {
    let mut operations = Vec::new();
    while let Some(operator) = rest.chars().next() {
        let number = rest.get(1..)?;
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let value: i64 = number[..end].parse().ok()?;
        let divides = matches!(operator, '/' | '%') && value != 0;
        if !divides && !matches!(operator, '+' | '-' | '*') {
            return None;
        }
        operations.push((operator, value.into()));
        rest = &number[end..];
    }
    Some(operations)
}

/// Returns a random number between two others. A seed and a position determine it, the same on
/// every machine (SplitMix64).
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

fn indexed(ty: Type, operations: &[(char, i128)], number: u64) -> Result<Vec<u8>, String> {
    let apply = |value: i128, &(operator, by): &(char, i128)| match operator {
        '+' => value.saturating_add(by),
        '-' => value.saturating_sub(by),
        '*' => value.saturating_mul(by),
        '/' => value / by,
        _ => value % by,
    };
    let value = operations.iter().fold(i128::from(number), apply);
    ty.integer(value).ok_or_else(|| {
        format!("element {number} would be {value}, out of the range of {}", ty.name())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str, ty: Type) -> Vec<f64> {
        let bytes = bytes(text, ty, 1000, 0).unwrap().unwrap();
        bytes.chunks(ty.bytes()).map(|bytes| ty.value(bytes)).collect()
    }

    #[test]
    fn random_numbers_are_between_their_bounds() {
        for (text, low, high) in [("random", 0.0, 1.0), ("random:-2..-1", -2.0, -1.0)] {
            let drawn = drawn(text, Type::F32);
            assert!(drawn.iter().all(|value| (low..=high).contains(value)));
            let mean = drawn.iter().sum::<f64>() / 1000.0;
            assert!((mean - (low + high) / 2.0).abs() < 0.05, "{mean}");
        }
        let mut whole = drawn("random:3..6", Type::Unsigned(1));
        whole.sort_by(f64::total_cmp);
        whole.dedup();
        assert_eq!(whole, [3.0, 4.0, 5.0]);
    }
}
