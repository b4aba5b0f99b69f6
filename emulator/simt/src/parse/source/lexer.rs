//! Splits text into tokens, one at a time, without storing earlier ones.

/// A token of PTX, with its place in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'s> {
    pub(crate) kind: Kind,
    pub(crate) text: &'s str,
    /// The line of the source, from 1.
    pub(crate) line: u32,
    /// The offset of the text in the source, in bytes.
    pub(crate) start: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or an opcode with its modifiers: `%r1`, `%tid.x`, `$L__BB0_2`,
    /// `ld.global.L2::128B.f32`.
    Word,
    /// A name with a dot before it: `.reg`, `.b32`. The next dot begins the next directive.
    Directive,
    /// A literal without its sign; [`Number`](super::types::Number) parses it.
    Number,
    /// A string without its quotes.
    Text,
    /// A single character with a meaning in PTX.
    Mark(u8),
    /// A single character that the emulator does not know.
    Unknown,
    End,
}

impl Token<'_> {
    pub(crate) fn is(&self, mark: u8) -> bool {
        self.kind == Kind::Mark(mark)
    }

    /// Returns true if no directive outside of kernels can continue past this token.
    pub(crate) fn ends_directive(&self) -> bool {
        match self.kind {
            Kind::Mark(b'}') | Kind::End => true,
            Kind::Directive => self.text == ".entry",
            _ => false,
        }
    }

    /// Returns the token as error messages show it.
    pub(crate) fn quoted(&self) -> String {
        match self.kind {
            Kind::End => "the end of the file".to_string(),
            Kind::Text => format!("\"{}\"", shortened(self.text, 40)),
            _ => format!("`{}`", shortened(self.text, 40)),
        }
    }
}

/// Returns at most `limit` characters of a text that may be megabytes long, for a message.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Lexer<'s> {
    source: &'s str,
    position: usize,
    line: u32,
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        Lexer { source, position: 0, line: 1 }
    }

    /// Returns the next token, or [`Kind::End`] at the end of the source, even repeatedly.
    pub(crate) fn next(&mut self) -> Result<Token<'s>, String> {
        self.skip_blanks_and_comments()?;
        let (start, line) = (self.position, self.line);
        let Some(first) = self.byte(0) else {
            return Ok(Token { kind: Kind::End, text: "", line, start });
        };
        let kind = match first {
            b'"' => return self.text(),
            b'.' if self.byte(1).is_some_and(is_name) => {
                self.position += 1;
                self.name_part();
                Kind::Directive
            }
            b'0'..=b'9' => {
                self.number();
                Kind::Number
            }
            _ if is_name(first) || first == b'%' => {
                self.position += 1;
                self.name_part();
                while self.byte(0) == Some(b'.') && self.byte(1).is_some_and(is_name) {
                    self.position += 1;
                    self.name_part();
                }
                Kind::Word
            }
            b',' | b';' | b':' | b'{' | b'}' | b'[' | b']' | b'(' | b')' | b'<' | b'>' | b'|'
            | b'!' | b'@' | b'+' | b'-' | b'=' => {
                self.position += 1;
                Kind::Mark(first)
            }
            _ => {
                self.position += self.source[start..].chars().next().map_or(1, char::len_utf8);
                Kind::Unknown
            }
        };
        Ok(Token { kind, text: &self.source[start..self.position], line, start })
    }

    /// Returns the line where the next token is searched, which is the line of an error.
    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.source.as_bytes().get(self.position + ahead).copied()
    }

    fn skip_while(&mut self, holds: impl Fn(u8) -> bool) {
        while self.byte(0).is_some_and(&holds) {
            self.position += 1;
        }
    }

    /// Reads the rest of a name. `::` belongs to it (`L1::no_allocate`), a single colon does not.
    fn name_part(&mut self) {
        self.skip_while(is_name);
        while self.byte(0) == Some(b':')
            && self.byte(1) == Some(b':')
            && self.byte(2).is_some_and(is_name)
        {
            self.position += 2;
            self.skip_while(is_name);
        }
    }

    /// Reads a number: `0x1F`, `0f3F800000`, `12U` or `1.5e-3`, but not `sm_80`.
    fn number(&mut self) {
        let hexadecimal = self.byte(0) == Some(b'0')
            && self.byte(1).is_some_and(|b| matches!(b, b'x' | b'X' | b'f' | b'F' | b'd' | b'D'));
        self.skip_while(is_name);
        if hexadecimal {
            return;
        }
        if self.byte(0) == Some(b'.') {
            self.position += 1;
            self.skip_while(is_name);
        }
        let exponent = matches!(self.source.as_bytes()[self.position - 1], b'e' | b'E');
        if exponent && matches!(self.byte(0), Some(b'+' | b'-')) {
            self.position += 1;
            self.skip_while(is_name);
        }
    }

    /// Reads a string. It may contain any character but quotes; there are no escapes.
    fn text(&mut self) -> Result<Token<'s>, String> {
        let (start, line) = (self.position + 1, self.line);
        let length = self.source[start..].find('"').ok_or("a string does not end")?;
        let text = &self.source[start..start + length];
        self.count_lines(text);
        self.position = start + length + 1;
        Ok(Token { kind: Kind::Text, text, line, start })
    }

    fn count_lines(&mut self, passed: &str) {
        self.line += passed.bytes().filter(|&b| b == b'\n').count() as u32;
    }

    fn skip_blanks_and_comments(&mut self) -> Result<(), String> {
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(b'\n'), _) => {
                    self.line += 1;
                    self.position += 1;
                }
                (Some(b' ' | b'\t' | b'\r' | 0x0b | 0x0c), _) => self.position += 1,
                (Some(b'/'), Some(b'/')) => self.skip_while(|b| b != b'\n'),
                (Some(b'/'), Some(b'*')) => {
                    let rest = &self.source[self.position + 2..];
                    let length =
                        rest.find("*/").ok_or("a comment that begins with `/*` does not end")?;
                    self.count_lines(&rest[..length]);
                    self.position += 2 + length + 2;
                }
                _ => return Ok(()),
            }
        }
    }
}

/// Returns true for a character of a name. `%` may begin a name but not continue it.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

pub(crate) fn show(name: &str) -> String {
    shortened(name, 60)
}
