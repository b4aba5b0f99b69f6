//! The arguments of a kernel as the command line says them.
//!
//! ```text
//! u32=1024                     a number
//! f32[1024]=random             a new buffer, whose address the kernel gets; x:f32[1024]=random has a name
//! &x  &x+256                   the address of a buffer made before, or so many bytes behind it
//! null                         no address
//! {&x; u32=7; f32(3)=0}        a struct, laid out as C++ does; f32(3) is an array inside of it
//! *{&x; &y}                    a new buffer that holds this, and its address
//! bytes=00ff12                 bytes as they are
//! tex2d(f32, 64x32, clamp)=0   a texture over a new buffer, and its handle; surf2d(f32, 64x32) a surface
//! ```

use crate::fill::Fill;
use crate::number::Type;
use crate::object::Object;

/// An argument, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Numbers that lie there themselves.
    Numbers {
        ty: Type,
        count: usize,
        fill: Fill,
    },
    /// The address of a new buffer.
    Buffer {
        name: Option<String>,
        ty: Type,
        count: usize,
        fill: Fill,
    },
    /// The address of a new buffer that holds a value.
    Holding {
        name: Option<String>,
        value: Box<Value>,
    },
    /// The handle of a texture or surface over a new buffer.
    Object {
        name: Option<String>,
        object: Object,
        fill: Fill,
    },
    /// An address in a buffer that is there.
    Address {
        name: String,
        offset: u64,
    },
    /// Parts, each at the next multiple of its alignment.
    Struct(Vec<Value>),
    /// Bytes, without an alignment.
    Bytes(Vec<u8>),
    Null,
}

/// Braces in braces: more are a mistake, and would end the program.
const MOST_NESTED: usize = 32;

impl Value {
    /// Reads an argument.
    pub fn parse(text: &str) -> Result<Value, String> {
        parse(text.trim(), 0).map_err(|why| format!("`{text}`: {why}"))
    }
}

fn parse(text: &str, nested: usize) -> Result<Value, String> {
    if nested > MOST_NESTED {
        return Err(format!("more than {MOST_NESTED} braces in each other"));
    }
    if text == "null" {
        return Ok(Value::Null);
    }
    if let Some(hex) = text.strip_prefix("bytes=") {
        return bytes(hex).map(Value::Bytes);
    }
    if let Some(rest) = text.strip_prefix('&') {
        let (name, offset) = rest.split_once('+').unwrap_or((rest, "0"));
        let wrong = |_| format!("`{offset}` is no number of bytes");
        let offset = offset.trim().parse().map_err(wrong)?;
        return Ok(Value::Address { name: name.trim().to_owned(), offset });
    }
    if let Some(rest) = text.strip_prefix('{') {
        let inside = rest.strip_suffix('}').ok_or("the brace is not closed")?;
        let parts = parts(inside)?;
        return parts
            .into_iter()
            .map(|part| parse(part, nested + 1))
            .collect::<Result<_, _>>()
            .map(Value::Struct);
    }
    let (name, rest) = named(text);
    if let Some(rest) = rest.strip_prefix('*') {
        let value = parse(rest.trim(), nested + 1)?;
        return Ok(Value::Holding { name, value: Box::new(value) });
    }
    let (typed, fill) = match rest.split_once('=') {
        Some((typed, fill)) => (typed.trim(), Some(fill.trim())),
        None => (rest, None),
    };
    let read = |ty| fill.map_or(Ok(Fill::Unwritten), |fill| Fill::parse(fill, ty));
    if let Some(object) = Object::parse(typed)? {
        return Ok(Value::Object { name, object, fill: read(object.ty())? });
    }
    if let Some((ty, count)) = counted(typed, '[', ']')? {
        return Ok(Value::Buffer { name, ty, count, fill: read(ty)? });
    }
    if name.is_some() {
        return Err(
            "only a buffer, texture or surface has a name, such as `x:f32[1024]=random`".to_owned()
        );
    }
    if fill.is_none() {
        return Err(
            "say what it is: `u32=7`, `f32[1024]=random`, `&name`, `{…; …}`, `bytes=…` or `null`"
                .to_owned(),
        );
    }
    if let Some((ty, count)) = counted(typed, '(', ')')? {
        return Ok(Value::Numbers { ty, count, fill: read(ty)? });
    }
    let ty = Type::named(typed)?;
    Ok(Value::Numbers { ty, count: 1, fill: read(ty)? })
}

/// A buffer's name, if it has one, and the rest.
fn named(text: &str) -> (Option<String>, &str) {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
    };
    match text.split_once(':') {
        Some((name, rest)) if is_name(name) => (Some(name.to_owned()), rest.trim()),
        _ => (None, text),
    }
}

/// `f32[1024]`, `f32[16*64]`
fn counted(text: &str, open: char, close: char) -> Result<Option<(Type, usize)>, String> {
    let Some((ty, rest)) = text.split_once(open) else { return Ok(None) };
    let wrong = || format!("`{text}` has no number of elements between {open} and {close}");
    let factors = rest.strip_suffix(close).ok_or_else(wrong)?;
    let mut count = 1_usize;
    for factor in factors.split('*') {
        let factor: usize = factor.trim().parse().map_err(|_| wrong())?;
        count = count.checked_mul(factor).ok_or_else(wrong)?;
    }
    Ok(Some((Type::named(ty.trim())?, count)))
}

/// What stands between the semicolons that are in no braces.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1).ok_or("a brace is closed that is not open")?,
            ';' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    Ok(parts)
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u32> = hex
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).ok_or(format!("`{c}` is no hexadecimal digit")))
        .collect::<Result<_, _>>()?;
    if !digits.len().is_multiple_of(2) {
        return Err(format!("{} hexadecimal digits make no whole bytes", digits.len()));
    }
    Ok(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let f32s = |name: Option<&str>, count, fill| Value::Buffer {
            name: name.map(str::to_owned),
            ty: Type::F32,
            count,
            fill,
        };
        let address = |offset| Value::Address { name: "x".to_owned(), offset };
        let seven = Value::Numbers {
            ty: Type::Unsigned(4),
            count: 1,
            fill: Fill::Each(7_u32.to_le_bytes().to_vec()),
        };
        for (text, value) in [
            ("u32=7", seven.clone()),
            ("f32[4*8]", f32s(None, 32, Fill::Unwritten)),
            ("x:f32[8]=random", f32s(Some("x"), 8, Fill::Random(0.0, 1.0))),
            ("f32[2]=random:1..2", f32s(None, 2, Fill::Random(1.0, 2.0))),
            ("f32[2]=@C:/x", f32s(None, 2, Fill::File("C:/x".to_owned()))),
            ("&x", address(0)),
            ("&x+16", address(16)),
            ("null", Value::Null),
            ("bytes=00 fF", Value::Bytes(vec![0, 255])),
            ("{}", Value::Struct(vec![])),
            ("{&x; {u32=7}}", Value::Struct(vec![address(0), Value::Struct(vec![seven])])),
            (
                "*{&x}",
                Value::Holding { name: None, value: Box::new(Value::Struct(vec![address(0)])) },
            ),
        ] {
            assert_eq!(Value::parse(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn wrong_arguments_are_told() {
        for (text, said) in [
            ("", "say what it is"),
            ("7", "say what it is"),
            ("float=7", "`float` is no type"),
            ("f32[x]", "has no number of elements between [ and ]"),
            ("f32[4", "has no number of elements"),
            ("f32[99999999999*99999999999]", "has no number of elements"),
            ("x:u32=7", "only a buffer, texture or surface has a name"),
            ("tex2d(f32, 4)=0", "`4` has 1 numbers"),
            ("{u32=1", "the brace is not closed"),
            ("{}}", "a brace is closed that is not open"),
            ("&x+y", "`y` is no number of bytes"),
            ("bytes=0", "1 hexadecimal digits make no whole bytes"),
            ("bytes=0é", "`é` is no hexadecimal digit"),
        ] {
            let error = Value::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        let deep = "*".repeat(100_000);
        assert!(Value::parse(&deep).unwrap_err().contains("braces in each other"));
        let deep = format!("{}{}", "{".repeat(1000), "}".repeat(1000));
        assert!(Value::parse(&deep).unwrap_err().contains("braces in each other"));
    }
}
