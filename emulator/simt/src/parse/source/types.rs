//! The types of instructions and registers as PTX writes them, the rules by which they agree, and
//! the literals of each.

use crate::isa::{Bank, Type};

/// A type as PTX writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Typed {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) ty: Type,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `.b32`: agrees with every type of its size.
    Bits,
    Integer,
    Float,
}

const fn typed(name: &'static str, kind: Kind, ty: Type) -> Typed {
    Typed { name, kind, ty }
}

pub(crate) const B16: Typed = typed("b16", Kind::Bits, Type::U16);
pub(crate) const B32: Typed = typed("b32", Kind::Bits, Type::U32);
pub(crate) const B64: Typed = typed("b64", Kind::Bits, Type::U64);
pub(crate) const U32: Typed = typed("u32", Kind::Integer, Type::U32);
pub(crate) const S32: Typed = typed("s32", Kind::Integer, Type::S32);
pub(crate) const U64: Typed = typed("u64", Kind::Integer, Type::U64);
pub(crate) const F32: Typed = typed("f32", Kind::Float, Type::F32);
/// Two f16 numbers in one 32-bit register.
pub(crate) const F16X2: Typed = typed("f16x2", Kind::Float, Type::F16x2);
/// Two bf16 numbers in one 32-bit register, which is declared `.b32`.
pub(crate) const BF16X2: Typed = typed("bf16x2", Kind::Float, Type::Bf16x2);

const TYPES: [Typed; 17] = [
    B32,
    B64,
    U32,
    U64,
    F32,
    B16,
    S32,
    typed("s64", Kind::Integer, Type::S64),
    typed("f64", Kind::Float, Type::F64),
    typed("u16", Kind::Integer, Type::U16),
    typed("s16", Kind::Integer, Type::S16),
    typed("b8", Kind::Bits, Type::U8),
    typed("u8", Kind::Integer, Type::U8),
    typed("s8", Kind::Integer, Type::S8),
    typed("f16", Kind::Float, Type::F16),
    typed("bf16", Kind::Float, Type::Bf16),
    F16X2,
];

impl Typed {
    pub(crate) fn bytes(self) -> u32 {
        self.ty.bytes()
    }

    /// Returns the type of a copy of the bits: floats stay, and integers become unsigned.
    pub(crate) fn bits(self) -> Type {
        if self.kind == Kind::Float { self.ty } else { unsigned(self.ty) }
    }

    /// Returns true if an instruction of this type takes a register of that type: the sizes are
    /// equal, and the kinds are equal or one of them is bits.
    pub(crate) fn agrees_with(self, register: Typed) -> bool {
        self.bytes() == register.bytes()
            && (self.kind == Kind::Bits
                || register.kind == Kind::Bits
                || (self.kind == register.kind
                    && (self.kind == Kind::Integer || self.ty == register.ty)))
    }

    /// Returns true if a load, store or conversion of this type takes a register of that type,
    /// which may be wider unless the type is a float.
    pub(crate) fn fits_in(self, register: Typed) -> bool {
        self.agrees_with(register)
            || (self.bytes() < register.bytes()
                && match self.kind {
                    Kind::Bits => true,
                    Kind::Integer => register.kind != Kind::Float,
                    Kind::Float => false,
                })
    }
}

/// Returns any type but pairs of halves.
pub(crate) fn any(name: &str) -> Option<Typed> {
    TYPES.into_iter().find(|typed| typed.name == name && name != "f16x2")
}

/// Returns a type of `.reg` and of variables: any type, or `f16x2`.
pub(crate) fn declared(name: &str) -> Option<Typed> {
    TYPES.into_iter().find(|typed| typed.name == name)
}

/// Returns a type from `u16` to `s64`.
pub(crate) fn integer(name: &str) -> Option<Typed> {
    any(name).filter(|typed| typed.kind == Kind::Integer && typed.bytes() > 1)
}

/// Returns `s16`, `s32` or `s64`.
pub(crate) fn signed(name: &str) -> Option<Typed> {
    integer(name).filter(|typed| typed.ty.is_signed())
}

/// Returns a type from `u32` to `s64`.
pub(crate) fn integer32(name: &str) -> Option<Typed> {
    integer(name).filter(|typed| typed.bytes() >= 4)
}

/// Returns `b16`, `b32` or `b64`.
pub(crate) fn bits(name: &str) -> Option<Typed> {
    any(name).filter(|typed| typed.kind == Kind::Bits && typed.bytes() > 1)
}

/// Returns `b32` or `b64`.
pub(crate) fn bits32(name: &str) -> Option<Typed> {
    bits(name).filter(|typed| typed.bytes() >= 4)
}

/// Returns `f32` or `f64`.
pub(crate) fn float(name: &str) -> Option<Typed> {
    any(name).filter(|typed| matches!(typed.ty, Type::F32 | Type::F64))
}

/// Returns `f16`, `bf16` or a pair of one of them.
pub(crate) fn half(name: &str) -> Option<Typed> {
    let pair = [F16X2, BF16X2].into_iter().find(|typed| typed.name == name);
    pair.or_else(|| any(name).filter(|typed| typed.ty.is_half()))
}

/// Returns a type of whole registers: `b16` to `b64`, integers of these sizes, `f32` or `f64`.
pub(crate) fn word(name: &str) -> Option<Typed> {
    bits(name).or_else(|| integer(name)).or_else(|| float(name))
}

/// Returns a type of loads and stores: `b8` to `f64`, but not halves.
pub(crate) fn memory(name: &str) -> Option<Typed> {
    any(name).filter(|typed| !matches!(typed.ty, Type::F16 | Type::Bf16))
}

/// Returns the unsigned integer type of the same size.
pub(crate) fn unsigned(ty: Type) -> Type {
    match ty.bytes() {
        1 => Type::U8,
        2 => Type::U16,
        4 => Type::U32,
        _ => Type::U64,
    }
}

/// The type that a register is declared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Class {
    Predicate,
    Data(Typed),
}

impl Class {
    pub(crate) fn bank(self) -> Bank {
        match self {
            Class::Predicate => Bank::Predicate,
            Class::Data(typed) if typed.ty.is_wide() => Bank::Long,
            Class::Data(_) => Bank::Word,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::Predicate => "pred",
            Class::Data(typed) => typed.name,
        }
    }
}

/// A literal operand, before its type is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// An integer in two's complement; a narrower type takes the low bits.
    Integer(u64),
    /// `0f…`: the bits of a single.
    Single(u32),
    /// `0d…`: the bits of a double.
    Double(u64),
    /// `1.5`: becomes a value of the required type.
    Decimal(f64),
}

impl Number {
    /// Parses a literal as the lexer delimits it.
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
        let magnitude = literal(text)?;
        Some(Number::Integer(if negative { magnitude.wrapping_neg() } else { magnitude }))
    }

    /// Returns the bits of the literal as a value of the type, in the low bits.
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

fn literal(text: &str) -> Option<u64> {
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
