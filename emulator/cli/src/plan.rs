//! The buffers and arguments of a launch, read from the command line and laid out before there is a
//! memory: bytes, with holes where addresses will be.
//!
//! ```text
//! u32=1024                     a number
//! f32[1024]=random             a new buffer and its address; x:f32[1024]=random has a name
//! &x  &x+256                   the address of an earlier buffer, or of a byte in it
//! null                         the null pointer
//! {&x; u32=7; f32(3)=0}        a struct, laid out as in C++; f32(3) is an array inside of it
//! *{&x; &y}                    a new buffer that holds this, and its address
//! bytes=00ff12                 bytes as they are
//! tex2d(f32, 64x32, clamp)=0   a texture over a new buffer and its handle; surf2d(…) is a surface
//! ```
//!
//! Reading and layout are one pass: every form becomes a [`Piece`] at once. The file
//! `tests/suite/cases.txt` has every form with its layout, its errors and its effects.

use simt::{Kernel, Param};

use crate::fill;
use crate::number::Type;
use crate::object::Object;

/// Everything that a kernel is given.
#[derive(Debug, Default)]
pub struct Plan {
    pub buffers: Vec<Buffer>,
    /// One piece for each parameter.
    pub arguments: Vec<Piece>,
}

/// A buffer as it is before the launch.
#[derive(Debug)]
pub struct Buffer {
    pub name: String,
    /// The type in which its bytes are shown.
    pub ty: Type,
    pub bytes: usize,
    /// `None` for a buffer that nothing is written to.
    pub contents: Option<Vec<u8>>,
    pub holes: Vec<Hole>,
    /// The texture or surface whose texels these are.
    pub object: Option<Object>,
}

/// Bytes, with the alignment of the widest number in them.
#[derive(Debug, Clone)]
pub struct Piece {
    pub bytes: Vec<u8>,
    align: usize,
    pub holes: Vec<Hole>,
}

/// Eight bytes at `at` that will be the address of byte `offset` of a buffer, or the handle of the
/// texture or surface over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    pub at: usize,
    /// The buffer's index in the plan.
    pub buffer: usize,
    pub offset: u64,
    pub is_handle: bool,
}

/// The depth of braces in braces that is accepted: recursion without a bound could end the program.
const DEEPEST: usize = 32;

impl Plan {
    /// Makes buffers that are not arguments.
    pub fn add(&mut self, texts: &[String]) -> Result<(), String> {
        for text in texts {
            let wrong = |why| format!("the buffer `{text}`: {why}");
            let name = format!("buffer{}", self.buffers.len());
            self.create(text.trim(), &name, 0).map_err(wrong)?.ok_or_else(|| {
                wrong("it does not describe a buffer, as `x:f32[1024]=random` does".to_owned())
            })?;
        }
        Ok(())
    }

    /// Lays out the arguments of a kernel with these parameters.
    pub fn arguments(&mut self, texts: &[String], params: &[Param]) -> Result<(), String> {
        let (given, takes) = (texts.len(), params.len());
        if given != takes {
            let params = shown(params);
            return Err(format!(
                "{given} arguments are given, and the kernel takes {takes}: {params}"
            ));
        }
        for (number, (text, param)) in texts.iter().zip(params).enumerate() {
            let wrong = |why: String| format!("argument {number}, `{text}`: {why}");
            let piece = self.piece(text.trim(), &format!("arg{number}"), 0).map_err(wrong)?;
            let (given, takes) = (piece.bytes.len(), param.bytes as usize);
            if given != takes {
                let param = shown(std::slice::from_ref(param));
                return Err(wrong(format!(
                    "has {given} bytes, and the kernel takes {takes} there ({param} in the PTX)"
                )));
            }
            self.arguments.push(piece);
        }
        Ok(())
    }

    /// Returns the index of the buffer of this name.
    fn buffer(&self, name: &str) -> Result<usize, String> {
        let found = self.buffers.iter().position(|buffer| buffer.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = self.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            format!("there is no buffer `{name}` yet; there are {names}")
        })
    }

    /// Reads one value. A buffer that the text does not name is called `name`.
    fn piece(&mut self, text: &str, name: &str, depth: usize) -> Result<Piece, String> {
        if depth > DEEPEST {
            return Err(format!("there are more than {DEEPEST} braces in each other"));
        }
        if text == "null" {
            return Ok(Piece::new(vec![0; 8], 8));
        }
        if let Some(hex) = text.strip_prefix("bytes=") {
            return Ok(Piece::new(bytes(hex)?, 1));
        }
        if let Some(rest) = text.strip_prefix('&') {
            let (name, offset) = rest.split_once('+').unwrap_or((rest, "0"));
            let wrong = |_| format!("`{offset}` is not a number of bytes");
            let offset = offset.trim().parse().map_err(wrong)?;
            return Ok(pointer(self.buffer(name.trim())?, offset, false));
        }
        if let Some(rest) = text.strip_prefix('{') {
            let mut whole = Piece::new(Vec::new(), 1);
            for part in parts(rest.strip_suffix('}').ok_or("a brace is not closed")?)? {
                whole.append(self.piece(part, name, depth + 1)?);
            }
            whole.pad(whole.align);
            return Ok(whole);
        }
        if let Some(address) = self.create(text, name, depth)? {
            return Ok(address);
        }
        let (typed, fill) = text.split_once('=').ok_or(
            "it is not one of `u32=7`, `f32[1024]=random`, `&name`, `{…; …}`, `bytes=…` and `null`",
        )?;
        let (ty, count) = array(typed.trim(), '(', ')')?;
        let bytes = fill::bytes(fill.trim(), ty, count, self.buffers.len() as u64)?;
        Ok(Piece::new(bytes.ok_or("a number in an argument cannot stay unwritten")?, ty.bytes()))
    }

    /// Makes the buffer that the text describes, and returns its address or the handle of the
    /// texture over it; `None` if the text describes something else.
    fn create(&mut self, text: &str, name: &str, depth: usize) -> Result<Option<Piece>, String> {
        let (own, rest) = named(text);
        let mut buffer = if let Some(held) = rest.strip_prefix('*') {
            let held = held.trim();
            let Piece { bytes, holes, .. } =
                self.piece(held, &format!("{name}.held"), depth + 1)?;
            // Numbers are shown as such, and everything else as words.
            let words = Type::Unsigned(if bytes.len().is_multiple_of(8) { 8 } else { 1 });
            let typed = held.split(['(', '=']).next().unwrap_or_default();
            let ty = Type::named(typed.trim()).unwrap_or(words);
            let (size, contents) = (bytes.len(), Some(bytes));
            Buffer { name: String::new(), ty, bytes: size, contents, holes, object: None }
        } else {
            let (typed, fill) = rest.split_once('=').unwrap_or((rest, "unwritten"));
            let object = Object::parse(typed.trim())?;
            let elements = match object {
                Some(object) => Some((object.ty(), object.count())),
                None => counted(typed.trim(), '[', ']')?,
            };
            let Some((ty, count)) = elements else {
                let wrong = "only a buffer, texture or surface has a name: `x:f32[1024]=random`";
                return if own.is_some() { Err(wrong.to_owned()) } else { Ok(None) };
            };
            let contents = fill::bytes(fill.trim(), ty, count, self.buffers.len() as u64)?;
            let bytes = ty.bytes() * count;
            Buffer { name: String::new(), ty, bytes, contents, holes: Vec::new(), object }
        };
        buffer.name = self.free_name(own, name)?;
        self.buffers.push(buffer);
        let last = self.buffers.len() - 1;
        Ok(Some(pointer(last, 0, self.buffers[last].object.is_some())))
    }

    /// Returns the given name of a new buffer, or one like `name` that no buffer has.
    fn free_name(&self, own: Option<&str>, name: &str) -> Result<String, String> {
        let is_free = |name: &str| self.buffers.iter().all(|buffer| buffer.name != name);
        match own {
            Some(own) if is_free(own) => Ok(own.to_owned()),
            Some(own) => Err(format!("a buffer `{own}` exists already; `&{own}` is its address")),
            None => {
                let numbered = (1..).map(|number| format!("{name}.{number}"));
                let mut names = std::iter::once(name.to_owned()).chain(numbered);
                Ok(names.find(|name| is_free(name)).unwrap_or_default())
            }
        }
    }

    /// Returns the lines of `launch.txt`: the kernel, its arguments with offsets and bytes, and its
    /// buffers with types and sizes.
    ///
    /// Behind an argument or a buffer, `8&x+4` means that its byte 8 begins the address of byte 4
    /// of `x`, and `8@x` that it begins the handle of the texture over `x`.
    pub fn lines(&self, kernel: &Kernel) -> String {
        let mut text = format!("kernel {}\n", kernel.name());
        for (param, piece) in kernel.params().iter().zip(&self.arguments) {
            let bytes: String = piece.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            text += &format!("argument {} {bytes}{}\n", param.offset, self.holes(&piece.holes));
        }
        for Buffer { name, ty, bytes, holes, .. } in &self.buffers {
            text += &format!("buffer {name} {} {bytes}{}\n", ty.name(), self.holes(holes));
        }
        text
    }

    fn holes(&self, holes: &[Hole]) -> String {
        let hole = |Hole { at, buffer, offset, is_handle }: &Hole| {
            let name = &self.buffers[*buffer].name;
            if *is_handle { format!(" {at}@{name}") } else { format!(" {at}&{name}+{offset}") }
        };
        holes.iter().map(hole).collect()
    }
}

impl Piece {
    fn new(bytes: Vec<u8>, align: usize) -> Piece {
        Piece { bytes, align, holes: Vec::new() }
    }

    fn pad(&mut self, align: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
    }

    /// Adds a member of a struct at the next multiple of its alignment.
    fn append(&mut self, part: Piece) {
        self.pad(part.align);
        let at = self.bytes.len();
        self.bytes.extend(part.bytes);
        self.holes.extend(part.holes.iter().map(|hole| Hole { at: hole.at + at, ..*hole }));
        self.align = self.align.max(part.align);
    }
}

fn pointer(buffer: usize, offset: u64, is_handle: bool) -> Piece {
    let hole = Hole { at: 0, buffer, offset, is_handle };
    Piece { bytes: vec![0; 8], align: 8, holes: vec![hole] }
}

/// Splits a text into the name before a colon, if there is one, and the rest.
fn named(text: &str) -> (Option<&str>, &str) {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    match text.split_once(':') {
        Some((name, rest)) if !name.is_empty() && name.chars().all(is_part) => {
            (Some(name), rest.trim())
        }
        _ => (None, text),
    }
}

/// Reads `f32[1024]` or `f32[16*64]`; `None` for a text without the opening bracket.
fn counted(text: &str, open: char, close: char) -> Result<Option<(Type, usize)>, String> {
    let Some((ty, rest)) = text.split_once(open) else { return Ok(None) };
    let wrong = || format!("`{text}` has no number of elements between {open} and {close}");
    let mut count = 1_usize;
    for factor in rest.strip_suffix(close).ok_or_else(wrong)?.split('*') {
        let factor = factor.trim().parse().map_err(|_| wrong())?;
        count = count.checked_mul(factor).ok_or_else(wrong)?;
    }
    Ok(Some((Type::named(ty.trim())?, count)))
}

/// Reads `f32[1024]`, or `f32` for one number.
pub fn array(text: &str, open: char, close: char) -> Result<(Type, usize), String> {
    match counted(text, open, close)? {
        Some(array) => Ok(array),
        None => Ok((Type::named(text)?, 1)),
    }
}

/// Splits a text at the semicolons that are not inside braces.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1).ok_or("a brace is closed and was not opened")?,
            ';' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    parts.extend((!last.is_empty()).then_some(last));
    Ok(parts)
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let digit = |c: char| c.to_digit(16).ok_or(format!("`{c}` is not a hexadecimal digit"));
    let digits = hex.chars().filter(|c| !c.is_whitespace()).map(digit);
    let digits: Vec<u32> = digits.collect::<Result<_, _>>()?;
    if !digits.len().is_multiple_of(2) {
        return Err(format!("{} hexadecimal digits are not whole bytes", digits.len()));
    }
    Ok(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

/// Returns the parameters of a kernel as text: `.u32, .b8[16]`.
pub fn shown(params: &[Param]) -> String {
    if params.is_empty() {
        return "nothing".to_owned();
    }
    let one = |param: &Param| {
        let bits = param.ty.trim_start_matches(|c: char| !c.is_ascii_digit());
        let each = bits.parse().map_or(1, |bits: usize| (bits / 8).max(1));
        match param.bytes as usize / each {
            1 => format!(".{}", param.ty),
            count => format!(".{}[{count}]", param.ty),
        }
    };
    params.iter().map(one).collect::<Vec<_>>().join(", ")
}
