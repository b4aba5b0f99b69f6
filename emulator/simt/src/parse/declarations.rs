//! The kernels of a source and what they take, without what they do.

use std::collections::HashSet;
use std::sync::Arc;

use super::head::Head;
use crate::isa::Param;
use crate::parse::body::unit::ParseError;
use crate::parse::source::cursor::Cursor;
use crate::parse::source::lexer::Kind;

/// Sources of more bytes are refused.
const MOST_BYTES: usize = 1 << 30;

/// The kernels that a PTX source declares, each with its parameters.
///
/// They are read of any valid PTX, whatever its instructions are: what
/// [`Module::parse`](super::Module::parse) does not emulate is passed over here. Where it accepts a
/// source, both find the same.
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

/// A kernel as it is declared: its name and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    name: Arc<str>,
    params: Vec<Param>,
    param_bytes: u32,
}

impl Declarations {
    /// Reads the declarations of a PTX source of version 1.4 or later.
    ///
    /// The time is linear in the length of the source; it never panics.
    ///
    /// # Errors
    ///
    /// If the source is no PTX, or older: of older PTX the parameters are not in a list. No body is
    /// looked into, so that a source with wrong instructions is none of the errors.
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

    /// The kernels that have a body here, in the order of the source.
    pub fn entries(&self) -> &[Declaration] {
        &self.entries
    }

    /// The kernel of that name.
    pub fn entry(&self, name: &str) -> Option<&Declaration> {
        self.entries.iter().find(|entry| entry.name() == name)
    }
}

impl Declaration {
    /// The kernel's name, as the PTX has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it takes, in order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Bytes from the first parameter to the end of the last.
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
            // Of a function, a variable's value, or a section for debuggers.
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

/// Takes what stands between a kernel's parameters and its body (`.maxntid 128, 1, 1`), up to the
/// brace that opens the body; or with the semicolon that stands in place of one.
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
            // The one directive here that ends with a semicolon itself.
            Kind::Mark(b';') => in_pragma = false,
            Kind::Directive => in_pragma = token.text == ".pragma",
            Kind::Number | Kind::Text | Kind::Word | Kind::Mark(b',') => {}
            _ => return Err(format!("a kernel's body was expected, not {}", token.quoted())),
        }
        cursor.next()?;
    }
}
