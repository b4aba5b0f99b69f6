//! The declarations of a source: its kernels and their parameters, without the bodies.

use std::collections::HashSet;
use std::sync::Arc;

use super::head::Head;
use crate::isa::Param;
use crate::parse::body::unit::ParseError;
use crate::parse::source::cursor::Cursor;
use crate::parse::source::lexer::Kind;

/// The most bytes of a source.
const MOST_BYTES: usize = 1 << 30;

/// The kernels that a PTX source declares, with their parameters.
///
/// Reads any valid PTX, whatever its instructions are: instructions that
/// [`Module::parse`](super::Module::parse) refuses are skipped here. For a source that it accepts,
/// both find the same kernels and parameters.
///
/// ```
/// let ptx = "
///     .version 8.6
///     .target sm_100a
///     .address_size 64
///     .func helper(.param .b64 any) { ret; }
///     .visible .entry copy(.param .u64 .ptr .global to, .param .align 64 .b8 map [128])
///     .reqntid 128
///     { tcgen05.wait::ld.sync.aligned; ret; } // not emulated
/// ";
/// let declarations = simt::Declarations::parse(ptx)?;
/// let [copy] = declarations.entries() else { panic!("one kernel") };
/// assert_eq!(copy.name(), "copy");
/// let sizes: Vec<_> = copy.params().iter().map(|param| (param.offset, param.bytes)).collect();
/// assert_eq!(sizes, [(0, 8), (64, 128)]);
/// # Ok::<(), simt::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declarations {
    entries: Vec<Declaration>,
}

/// The declaration of a kernel: its name and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    name: Arc<str>,
    params: Vec<Param>,
    param_bytes: u32,
}

impl Declarations {
    /// Reads the declarations of a PTX source of version 1.4 or later.
    ///
    /// Takes time linear in the length of the source, and never panics.
    ///
    /// # Errors
    ///
    /// A [`ParseError`] if the source is not PTX, or is older than version 1.4, where parameters
    /// are not in a list. Bodies are skipped, so wrong instructions are not an error.
    pub fn parse(source: &str) -> Result<Declarations, ParseError> {
        if source.len() > MOST_BYTES {
            let message = format!("the source has more than {MOST_BYTES} bytes");
            return Err(ParseError { line: 1, message });
        }
        let mut cursor = Cursor::new(source);
        let entries = read(&mut cursor).map_err(|message| {
            let (line, message) = cursor.error(message);
            ParseError { line, message }
        })?;
        Ok(Declarations { entries })
    }

    /// Returns the kernels with a body, in the order of the source.
    pub fn entries(&self) -> &[Declaration] {
        &self.entries
    }

    /// Returns the kernel with a name.
    pub fn entry(&self, name: &str) -> Option<&Declaration> {
        self.entries.iter().find(|entry| entry.name() == name)
    }
}

impl Declaration {
    /// Returns the kernel's name in the PTX.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Returns the number of bytes from the first parameter to the end of the last.
    pub fn param_bytes(&self) -> u32 {
        self.param_bytes
    }
}

fn read(cursor: &mut Cursor) -> Result<Vec<Declaration>, String> {
    if cursor.version()? < (1, 4) {
        return Err(
            "PTX before version 1.4 declares parameters in a kernel's body, where they are not \
                    looked for"
                .to_string(),
        );
    }
    let (mut entries, mut names) = (Vec::new(), HashSet::new());
    loop {
        let token = cursor.begin_any()?;
        match token.kind {
            Kind::End => return Ok(entries),
            // The body of a function, the value of a variable, or a section for debuggers.
            Kind::Mark(b'{') => cursor.skip_braces()?,
            Kind::Mark(b'}') => return Err("nothing is open that `}` closes".to_string()),
            Kind::Directive if token.text == ".entry" => {
                cursor.next()?;
                let name = cursor.name()?;
                let Head { params, param_bytes } = Head::read(cursor, |_, _, _| Ok(()))?;
                if !has_body(cursor)? {
                    continue;
                }
                cursor.skip_braces()?;
                if !names.insert(name) {
                    return Err("a kernel of this name is there already".to_string());
                }
                entries.push(Declaration { name: Arc::from(name), params, param_bytes });
            }
            _ => {
                cursor.next_any()?;
            }
        }
    }
}

/// Skips what is between a kernel's parameters and its body (`.maxntid 128, 1, 1`). Returns true
/// before the opening brace of a body, or false after the semicolon that replaces it.
pub(super) fn has_body(cursor: &mut Cursor) -> Result<bool, String> {
    let mut in_pragma = false;
    loop {
        let token = cursor.peek()?;
        match token.kind {
            Kind::Mark(b'{') => return Ok(true),
            Kind::Mark(b';') if !in_pragma => {
                cursor.next()?;
                return Ok(false);
            }
            // `.pragma` is the only directive here that ends with its own semicolon.
            Kind::Mark(b';') => in_pragma = false,
            Kind::Directive => in_pragma = token.text == ".pragma",
            Kind::Number | Kind::Text | Kind::Word | Kind::Mark(b',') => {}
            _ => return Err(format!("a kernel's body was expected, not {}", token.quoted())),
        }
        cursor.next()?;
    }
}
