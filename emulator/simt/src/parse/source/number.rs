//! Literals: `12`, `-1`, `0x1F`, `0f3F800000`, `0d3FF0000000000000`, `1.5`.

use super::types::{Kind, Typed};
use crate::isa::Type;

/// A literal operand, before it is known of which type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// Two's complement; a type of fewer bits takes the low ones.
    Integer(u64),
    /// `0f…`: the bits of a single.
    Single(u32),
    /// `0d…`: the bits of a double.
    Double(u64),
    /// `1.5`: becomes what is asked for.
    Decimal(f64),
}

impl Number {
    /// Reads a literal as the lexer delimits it.
    pub(crate) fn parse(text: &str, negative: bool) -> Option<Number> {
        let prefix = text.as_bytes().get(1).map(u8::to_ascii_lowercase);
        if text.starts_with('0') && matches!(prefix, Some(b'f' | b'd')) {
            return hexadecimal_float(&text[2..], prefix == Some(b'd'), negative);
        }
        let is_integer = text.bytes().all(|b| b.is_ascii_alphanumeric())
            && (prefix == Some(b'x') || !text.contains(['e', 'E']));
        if !is_integer {
            let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
            return Some(Number::Decimal(if negative { -value } else { value }));
        }
        let magnitude = integer(text)?;
        Some(Number::Integer(if negative { magnitude.wrapping_neg() } else { magnitude }))
    }

    /// The bits of the literal as a value of the type, in the low bits.
    pub(crate) fn bits(self, typed: Typed) -> Option<u64> {
        let bytes = typed.bytes();
        match (self, typed.kind) {
            (Number::Integer(value), Kind::Bits | Kind::Integer) => {
                Some(if bytes == 8 { value } else { value & ((1 << (8 * bytes)) - 1) })
            }
            // Halves have no literals.
            (_, Kind::Float) if !matches!(typed.ty, Type::F32 | Type::F64) => None,
            (Number::Single(bits), Kind::Bits | Kind::Float) if bytes == 4 => Some(bits.into()),
            (Number::Double(bits), Kind::Bits | Kind::Float) if bytes == 8 => Some(bits),
            (Number::Decimal(value), Kind::Float) if bytes == 4 => {
                Some((value as f32).to_bits().into())
            }
            (Number::Decimal(value), Kind::Float) if bytes == 8 => Some(value.to_bits()),
            _ => None,
        }
    }
}

fn integer(text: &str) -> Option<u64> {
    let digits = text.strip_suffix(['U', 'u']).unwrap_or(text);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    u64::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))
}

fn hexadecimal_float(digits: &str, double: bool, negative: bool) -> Option<Number> {
    let well_formed = digits.len() == if double { 16 } else { 8 }
        && digits.bytes().all(|b| b.is_ascii_hexdigit())
        && !negative;
    let bits = u64::from_str_radix(digits, 16).ok().filter(|_| well_formed)?;
    Some(if double { Number::Double(bits) } else { Number::Single(bits as u32) })
}
