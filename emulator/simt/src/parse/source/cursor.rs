//! The reader's position in the source, with the small steps of the grammar: peek, accept, expect.

use super::lexer::{Kind, Lexer, Token, shortened};
use super::types::Number;

/// A part of the source that has been read, or the message of an error at the cursor's place.
pub(crate) type Parsed<T> = Result<T, String>;

#[derive(Debug, Clone)]
pub(crate) struct Cursor<'s> {
    source: &'s str,
    lexer: Lexer<'s>,
    ahead: Option<Token<'s>>,
    /// The place that an error is reported at: a line, and where the statement in it begins.
    blamed: (u32, Option<usize>),
}

impl<'s> Cursor<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        Cursor { source, lexer: Lexer::new(source), ahead: None, blamed: (1, None) }
    }

    /// Returns the next token without consuming it.
    pub(crate) fn peek(&mut self) -> Result<Token<'s>, String> {
        let token = self.peek_any()?;
        if token.kind == Kind::Unknown {
            self.blamed = (token.line, None);
            let character = token.text.chars().next().unwrap_or_default();
            return Err(format!("the character {character:?} has no meaning here"));
        }
        Ok(token)
    }

    /// Returns the next token like `peek`, but accepts unknown characters, too.
    fn peek_any(&mut self) -> Result<Token<'s>, String> {
        if let Some(token) = self.ahead {
            return Ok(token);
        }
        let token = self.lexer.next().inspect_err(|_| self.blamed = (self.lexer.line(), None))?;
        self.ahead = Some(token);
        Ok(token)
    }

    /// Consumes the next token.
    pub(crate) fn next(&mut self) -> Result<Token<'s>, String> {
        let token = self.peek()?;
        self.ahead = None;
        Ok(token)
    }

    /// Returns the next token, which begins a statement. Errors are reported at it from now on.
    pub(crate) fn begin(&mut self) -> Result<Token<'s>, String> {
        let token = self.peek()?;
        self.blamed = (token.line, Some(token.start));
        Ok(token)
    }

    /// Consumes the next token, even an unknown one.
    pub(crate) fn next_any(&mut self) -> Result<Token<'s>, String> {
        let token = self.peek_any()?;
        self.ahead = None;
        Ok(token)
    }

    /// Returns the next token like `begin`, even an unknown one.
    pub(crate) fn begin_any(&mut self) -> Result<Token<'s>, String> {
        let token = self.peek_any()?;
        self.blamed = (token.line, Some(token.start));
        Ok(token)
    }

    /// Returns the line that errors are reported at.
    pub(crate) fn line(&self) -> u32 {
        self.blamed.0
    }

    /// Reports errors at an earlier line.
    pub(crate) fn blame(&mut self, line: u32) {
        self.blamed = (line, None);
    }

    /// Returns the line of an error, and the message with the statement that it concerns.
    pub(crate) fn error(&self, message: String) -> (u32, String) {
        let (line, start) = self.blamed;
        let statement = start.map(|start| self.statement_from(start)).unwrap_or_default();
        if statement.is_empty() {
            return (line, message);
        }
        (line, format!("`{statement}`: {message}"))
    }

    /// Consumes a mark if it is next. Returns true if it was.
    pub(crate) fn accept(&mut self, mark: u8) -> Result<bool, String> {
        let found = self.peek()?.is(mark);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    pub(crate) fn expect(&mut self, mark: u8) -> Result<(), String> {
        let token = self.next()?;
        if token.is(mark) {
            return Ok(());
        }
        Err(format!("`{}` was expected, not {}", mark as char, token.quoted()))
    }

    /// Reads a name without dots.
    pub(crate) fn name(&mut self) -> Result<&'s str, String> {
        let token = self.next()?;
        if token.kind == Kind::Word && !token.text.contains('.') {
            return Ok(token.text);
        }
        Err(format!("a name was expected, not {}", token.quoted()))
    }

    /// Reads a name with a dot before it, and returns it without the dot: `b32` for `.b32`.
    pub(crate) fn directive(&mut self) -> Result<&'s str, String> {
        let token = self.next()?;
        match token.kind {
            Kind::Directive => Ok(&token.text[1..]),
            _ => Err(format!("a directive was expected, not {}", token.quoted())),
        }
    }

    /// Consumes a directive if it is next. Returns true if it was.
    pub(crate) fn accept_directive(&mut self, name: &str) -> Result<bool, String> {
        let token = self.peek()?;
        let found = token.kind == Kind::Directive && &token.text[1..] == name;
        if found {
            self.next()?;
        }
        Ok(found)
    }

    /// Consumes a word if it is next. Returns true if it was.
    pub(crate) fn accept_word(&mut self, word: &str) -> Result<bool, String> {
        let token = self.peek()?;
        let found = token.kind == Kind::Word && token.text == word;
        if found {
            self.next()?;
        }
        Ok(found)
    }

    pub(crate) fn text(&mut self) -> Result<&'s str, String> {
        let token = self.next()?;
        match token.kind {
            Kind::Text => Ok(token.text),
            _ => Err(format!("a string was expected, not {}", token.quoted())),
        }
    }

    /// Reads a number with its sign.
    pub(crate) fn number(&mut self) -> Result<Number, String> {
        let negative = self.accept(b'-')?;
        let token = self.next()?;
        let number = (token.kind == Kind::Number).then(|| Number::parse(token.text, negative));
        match number {
            Some(Some(number)) => Ok(number),
            Some(None) => Err(format!("{} is not a number", token.quoted())),
            None => Err(format!("a number was expected, not {}", token.quoted())),
        }
    }

    /// Reads an integer without a sign, at most `limit`.
    pub(crate) fn count(&mut self, limit: u32) -> Result<u32, String> {
        let token = self.peek()?;
        match self.number()? {
            Number::Integer(value) if value <= limit.into() => Ok(value as u32),
            _ => Err(format!("a number up to {limit} was expected, not {}", token.quoted())),
        }
    }

    /// Reads `.version 8.0`, with which PTX begins.
    pub(crate) fn version(&mut self) -> Result<(u32, u32), String> {
        self.begin()?;
        if !self.accept_directive("version")? {
            return Err("PTX begins with `.version`".to_string());
        }
        let token = self.next()?;
        let number = |text: &str| text.parse().ok();
        let parts = token.text.split_once('.').filter(|_| token.kind == Kind::Number);
        parts
            .and_then(|(major, minor)| number(major).zip(number(minor)))
            .ok_or_else(|| format!("a version was expected, not {}", token.quoted()))
    }

    /// Consumes tokens through a mark, but not past the end of a block or a kernel. Braces must
    /// match, other brackets need not.
    pub(crate) fn skip_past(&mut self, mark: u8) -> Result<(), String> {
        loop {
            let token = self.peek()?;
            match token.kind {
                Kind::Mark(found) if found == mark => return self.next().map(drop),
                Kind::Mark(b'{') => self.skip_braces()?,
                _ if token.ends_directive() => {
                    return Err(format!("`{}` is missing", mark as char));
                }
                _ => drop(self.next()?),
            }
        }
    }

    /// Consumes a block from its opening brace through its closing brace, whatever is in it.
    pub(crate) fn skip_braces(&mut self) -> Result<(), String> {
        self.expect(b'{')?;
        let mut open = 1_usize;
        while open > 0 {
            match self.next_any()?.kind {
                Kind::Mark(b'{') => open += 1,
                Kind::Mark(b'}') => open -= 1,
                Kind::End => return Err("a closing brace is missing".to_string()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the source from a place to the next semicolon or line end, for a message.
    fn statement_from(&self, start: usize) -> String {
        const LIMIT: usize = 100;
        let rest = &self.source[start..];
        let end = rest.bytes().take(4 * LIMIT).position(|b| matches!(b, b';' | b'\n'));
        let statement = match end {
            Some(end) if rest.as_bytes()[end] == b';' => &rest[..=end],
            Some(end) => &rest[..end],
            None => rest,
        };
        let words =
            statement.split_whitespace().take(LIMIT).fold(String::new(), |mut text, word| {
                if text.len() < 4 * LIMIT {
                    text.extend([if text.is_empty() { "" } else { " " }, &shortened(word, LIMIT)]);
                }
                text
            });
        shortened(&words, LIMIT)
    }
}
