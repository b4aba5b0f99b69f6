//! The syntax of statements in a kernel's body: the parts of an opcode, and the operands. Names are
//! resolved later, when the instruction is decoded.

use super::cursor::Cursor;
use super::lexer::Kind;
use super::types::Number;

/// The most operands of an instruction that the emulator knows.
const MOST_OPERANDS: usize = 6;
/// The most parts of an opcode; real opcodes have up to nine modifiers.
const MOST_PARTS: usize = 16;

/// A statement: `@%p1 add.s32 %r1, %r2, 3;`.
#[derive(Debug)]
pub(crate) struct Statement<'s> {
    pub(crate) guard: Option<(&'s str, bool)>,
    pub(crate) opcode: &'s str,
    pub(crate) parts: Vec<&'s str>,
    pub(crate) operands: Vec<Operand<'s>>,
}

/// A name or a literal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Atom<'s> {
    Name(&'s str),
    Number(Number),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Operand<'s> {
    Atom(Atom<'s>),
    /// `!%p1`
    Not(&'s str),
    /// `%r1|%p2`
    Pair(&'s str, &'s str),
    /// `name+8`
    Sum(&'s str, i64),
    /// `{%r1, %r2}`
    Vector(Elements<'s>),
    /// `[%rd1+8]`
    Address(Atom<'s>, i64),
    /// `[%rd1, {%f1, %f2}]` or `[%rd1, %f1]`: a texture or surface, and a place in it.
    Texel(Atom<'s>, Elements<'s>),
}

/// The elements of a vector, up to eight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Elements<'s> {
    items: [Atom<'s>; 8],
    count: usize,
}

impl<'s> Elements<'s> {
    pub(crate) fn as_slice(&self) -> &[Atom<'s>] {
        &self.items[..self.count]
    }

    pub(crate) fn one(item: Atom<'s>) -> Self {
        Elements { items: [item; 8], count: 1 }
    }
}

impl<'s> Statement<'s> {
    pub(crate) fn empty() -> Self {
        Statement { guard: None, opcode: "", parts: Vec::new(), operands: Vec::new() }
    }

    /// Reads `@!%p1` if it is next.
    pub(crate) fn read_guard(&mut self, cursor: &mut Cursor<'s>) -> Result<(), String> {
        self.guard = None;
        if cursor.accept(b'@')? {
            let negated = cursor.accept(b'!')?;
            self.guard = Some((cursor.name()?, negated));
        }
        Ok(())
    }

    /// Splits the opcode into parts, in the statement's memory.
    pub(crate) fn split(&mut self, opcode: &'s str) -> Result<(), String> {
        self.parts.clear();
        self.opcode = opcode;
        self.parts.extend(opcode.split('.').take(MOST_PARTS + 1));
        if self.parts.len() > MOST_PARTS {
            return Err(format!("no instruction has more than {MOST_PARTS} modifiers"));
        }
        Ok(())
    }

    /// Reads the operands after the opcode.
    pub(crate) fn read_operands(&mut self, cursor: &mut Cursor<'s>) -> Result<(), String> {
        self.operands.clear();
        if cursor.accept(b';')? {
            return Ok(());
        }
        loop {
            if self.operands.len() == MOST_OPERANDS {
                return Err(format!("no instruction has more than {MOST_OPERANDS} operands"));
            }
            self.operands.push(operand(cursor)?);
            if cursor.accept(b';')? {
                return Ok(());
            }
            let token = cursor.peek()?;
            if !cursor.accept(b',')? {
                return Err(format!("a semicolon is missing before {}", token.quoted()));
            }
        }
    }
}

fn operand<'s>(cursor: &mut Cursor<'s>) -> Result<Operand<'s>, String> {
    if cursor.accept(b'!')? {
        return Ok(Operand::Not(cursor.name()?));
    }
    if cursor.accept(b'{')? {
        return vector(cursor).map(Operand::Vector);
    }
    if cursor.accept(b'[')? {
        let base = atom(cursor)?;
        if cursor.accept(b',')? {
            return texel(cursor, base);
        }
        let offset = offset(cursor)?;
        cursor.expect(b']')?;
        return Ok(Operand::Address(base, offset));
    }
    let first = atom(cursor)?;
    let Atom::Name(name) = first else { return Ok(Operand::Atom(first)) };
    if cursor.accept(b'|')? {
        return Ok(Operand::Pair(name, cursor.name()?));
    }
    let offset = offset(cursor)?;
    Ok(if offset == 0 { Operand::Atom(first) } else { Operand::Sum(name, offset) })
}

/// Reads the rest of an operand after `[%rd1,`.
fn texel<'s>(cursor: &mut Cursor<'s>, object: Atom<'s>) -> Result<Operand<'s>, String> {
    let at = match cursor.accept(b'{')? {
        true => vector(cursor)?,
        false => Elements::one(atom(cursor)?),
    };
    if cursor.accept(b',')? {
        return Err("a sampler apart from its texture (`.texmode_independent`) is not supported"
            .to_string());
    }
    cursor.expect(b']')?;
    Ok(Operand::Texel(object, at))
}

fn vector<'s>(cursor: &mut Cursor<'s>) -> Result<Elements<'s>, String> {
    let mut elements = Elements { count: 0, ..Elements::one(Atom::Name("")) };
    loop {
        if elements.count == elements.items.len() {
            return Err("a vector of more than eight elements".to_string());
        }
        elements.items[elements.count] = atom(cursor)?;
        elements.count += 1;
        if cursor.accept(b'}')? {
            return Ok(elements);
        }
        cursor.expect(b',')?;
    }
}

/// Reads a name (with the dot of a special register) or a number.
pub(crate) fn atom<'s>(cursor: &mut Cursor<'s>) -> Result<Atom<'s>, String> {
    let token = cursor.peek()?;
    match token.kind {
        Kind::Word => {
            cursor.next()?;
            Ok(Atom::Name(token.text))
        }
        Kind::Number | Kind::Mark(b'-') => cursor.number().map(Atom::Number),
        _ => Err(format!("an operand was expected, not {}", token.quoted())),
    }
}

/// Reads `+8`, `+-8` or nothing.
fn offset(cursor: &mut Cursor) -> Result<i64, String> {
    if !cursor.accept(b'+')? {
        return Ok(0);
    }
    match cursor.number()? {
        Number::Integer(value) => Ok(value as i64),
        _ => Err("an offset is an integer".to_string()),
    }
}
