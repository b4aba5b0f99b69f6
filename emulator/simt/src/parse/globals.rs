//! Variables in device memory, `.global` and `.const`, with their initial values.
//!
//! A variable that is not supported refuses only the kernels that use it: its error is saved under
//! its name until a kernel names it. Values are collected as pieces of bytes with gaps of zeros
//! between them, so that a large array of zeros costs nothing. Addresses of other variables are
//! filled in when the variables are placed. Tested by `tests/suite/variables.rs`.

use std::sync::Arc;

use crate::isa::{Declared, Piece, Reference};
use crate::parse::body::context::Context;
use crate::parse::body::names::Named;
use crate::parse::body::unit::{Variable, VariableSpace};
use crate::parse::source::cursor::{Cursor, Parsed};
use crate::parse::source::lexer::{Kind, show};
use crate::parse::source::types::{self, Number, Typed};

/// The most constant memory of a module, which is the driver's limit.
const MOST_CONSTANT: u32 = 64 << 10;
/// The most dimensions of an array.
const MOST_DIMENSIONS: usize = 16;
/// The largest gap of zeros that is stored within a piece.
const MOST_ZEROS: u32 = 16;

/// A variable in device memory while it is parsed.
struct Reader<'c, 's> {
    context: &'c mut Context<'s>,
    typed: Typed,
    pieces: Vec<Piece>,
    addresses: Vec<Reference>,
    /// The end of the values so far.
    end: u32,
}

impl<'s> Context<'s> {
    /// Reads the rest of `.global .align 4 .u32 name[2] = {1, 2};` after the state space.
    pub(super) fn device_variables(&mut self, space: VariableSpace, external: bool) -> Parsed<()> {
        let line = self.cursor.line();
        let mut align = self.cursor.alignment()?;
        if self.cursor.accept_directive("attribute")? {
            self.cursor.skip_past(b')')?;
            align = align.or(self.cursor.alignment()?);
        }
        let (mut elements, mut written) = (1, self.type_of_variable()?);
        if let "v2" | "v4" = written {
            elements = if written == "v2" { 2 } else { 4 };
            written = self.type_of_variable()?;
        }
        loop {
            let name = self.cursor.name()?;
            let begin = self.cursor.clone();
            let read = if external {
                Err("it is `.extern`, and there is no other module".to_string())
            } else {
                self.device_variable(name, space, align, (elements, written))
            };
            match read {
                Ok(declared) => {
                    self.names.declare(name, Named::Variable(self.variables.len()))?;
                    let index = self.globals.len() as u32;
                    let align = align.unwrap_or(1);
                    let id = self.next_id();
                    self.variables.push(Variable { space, align, bytes: Some(index), id });
                    self.globals.push(declared);
                }
                Err(reason) => {
                    // Skips the other variables of the same declaration.
                    self.cursor = begin;
                    self.cursor.skip_past(b';').map_err(|_| reason.clone())?;
                    self.names.declare(name, Named::Refused(self.refused.len()))?;
                    self.refused.push(format!("`{}` of PTX line {line}: {reason}", show(name)));
                    return Ok(());
                }
            }
            if self.cursor.accept(b';')? {
                return Ok(());
            }
            self.cursor.expect(b',')?;
        }
    }

    /// Reads a type, supported or not.
    fn type_of_variable(&mut self) -> Parsed<&'s str> {
        let token = self.cursor.peek()?;
        if token.ends_directive() {
            return Err(format!("a type was expected, not {}", token.quoted()));
        }
        self.cursor.directive()
    }

    fn device_variable(
        &mut self,
        name: &str,
        space: VariableSpace,
        align: Option<u32>,
        (elements, written): (u32, &str),
    ) -> Parsed<Declared> {
        if let "texref" | "samplerref" | "surfref" = written {
            return Err(format!(
                "a variable of type `.{written}` is not supported: references ended with CUDA 12, and textures and surfaces are \
                 objects, `cudaTextureObject_t` and `cudaSurfaceObject_t`"
            ));
        }
        let typed = types::declared(written)
            .ok_or_else(|| format!("a variable of type `.{written}` is not supported"))?;
        let (mut dimensions, open) = dimensions(&mut self.cursor)?;
        let mut reader =
            Reader { context: self, typed, pieces: Vec::new(), addresses: Vec::new(), end: 0 };
        if elements > 1 {
            // A vector's value is a list in braces, too.
            dimensions.push(elements);
        }
        if open {
            // The values determine the length. Until then it is as large as possible.
            dimensions[0] = u32::MAX;
        }
        let mut inner = dimensions.get(1..).unwrap_or_default().iter();
        let row = inner.try_fold(typed.bytes(), |all, &count| all.checked_mul(count));
        let row = row.ok_or("a variable of more than 4 GB")?;
        if reader.context.cursor.accept(b'=')? {
            reader.value(&dimensions, 0, u64::from(row))?;
        } else if open {
            return Err("a variable without a value needs a size".to_string());
        }
        let bytes = match dimensions.first() {
            None => typed.bytes(),
            Some(_) if open => reader.end.next_multiple_of(row.max(1)),
            Some(&count) => row.checked_mul(count).ok_or("a variable of more than 4 GB")?,
        };
        let Reader { pieces, addresses, .. } = reader;
        let constant = space == VariableSpace::Const;
        if constant {
            let align = align.unwrap_or(typed.bytes()).max(typed.bytes() * elements);
            let end = self.constant_bytes.next_multiple_of(align).checked_add(bytes);
            self.constant_bytes = end.filter(|&end| end <= MOST_CONSTANT).ok_or_else(|| {
                format!("with it the module's constant memory has more than {MOST_CONSTANT} bytes")
            })?;
        }
        Ok(Declared { name: Arc::from(name), constant, bytes, pieces, addresses })
    }
}

/// Reads `[2][3]`, where the first dimension may be left open.
fn dimensions(cursor: &mut Cursor) -> Parsed<(Vec<u32>, bool)> {
    let (mut dimensions, mut open) = (Vec::new(), false);
    while cursor.accept(b'[')? {
        if dimensions.len() == MOST_DIMENSIONS {
            return Err(format!("an array of more than {MOST_DIMENSIONS} dimensions"));
        }
        if dimensions.is_empty() && cursor.accept(b']')? {
            (dimensions, open) = (vec![0], true);
            continue;
        }
        let is_warp = cursor.accept_word("WARP_SZ")?;
        dimensions.push(if is_warp { 32 } else { cursor.count(u32::MAX)? });
        cursor.expect(b']')?;
    }
    Ok((dimensions, open))
}

impl Reader<'_, '_> {
    /// Reads a value at an offset: a single value, or for each dimension a list in braces, which
    /// may be shorter than the dimension. Each element of the first dimension has `row` bytes.
    fn value(&mut self, dimensions: &[u32], offset: u64, row: u64) -> Parsed<()> {
        let Some((&count, inner)) = dimensions.split_first() else {
            let offset = u32::try_from(offset).map_err(|_| "a variable of more than 4 GB")?;
            return self.element(offset);
        };
        self.context.cursor.expect(b'{')?;
        if self.context.cursor.accept(b'}')? {
            return Ok(());
        }
        let next = inner.first().map_or(row, |&count| row / u64::from(count.max(1)));
        for number in 0_u64.. {
            if number == u64::from(count) {
                return Err(format!("more than the {count} values that there is room for"));
            }
            self.value(inner, offset + number * row, next)?;
            if self.context.cursor.accept(b'}')? {
                return Ok(());
            }
            self.context.cursor.expect(b',')?;
        }
        Ok(())
    }

    /// Reads `1`, `0f3F800000`, `name+8` or `generic(name)`.
    fn element(&mut self, offset: u32) -> Parsed<()> {
        let token = self.context.cursor.peek()?;
        if token.kind != Kind::Word {
            let number = self.context.cursor.number()?;
            if self.context.cursor.peek()?.is(b'(') {
                return Err("a part of an address is not supported as a value".to_string());
            }
            let bits = number.bits(self.typed).ok_or_else(|| {
                format!("the value {number:?} does not go with the type `.{}`", self.typed.name)
            })?;
            return self.put(offset, &bits.to_le_bytes()[..self.typed.bytes() as usize]);
        }
        let mut name = self.context.cursor.name()?;
        if self.context.cursor.accept(b'(')? {
            if name != "generic" {
                return Err(format!("`{}` is no operator of values", show(name)));
            }
            name = self.context.cursor.name()?;
            self.context.cursor.expect(b')')?;
        }
        let negative = self.context.cursor.peek()?.is(b'-');
        let more = match negative || self.context.cursor.accept(b'+')? {
            false => 0,
            true => match self.context.cursor.number()? {
                Number::Integer(value) => value as i64,
                _ => return Err("an offset is an integer".to_string()),
            },
        };
        if self.typed.kind == types::Kind::Float || self.typed.bytes() != 8 {
            return Err(format!("the address of `{}` is no `.{}`", show(name), self.typed.name));
        }
        let to = self.context.names.declared(name);
        let to = to.ok_or_else(|| format!("`{}` is not declared", show(name)))?;
        let to = match to {
            Named::Variable(index) => match self.context.variables[index] {
                Variable {
                    space: VariableSpace::Global | VariableSpace::Const,
                    bytes: Some(global),
                    ..
                } => global,
                _ => return Err(format!("`{}` does not lie in device memory", show(name))),
            },
            Named::Function(number) => {
                let address = self.context.address_of_function(number).wrapping_add_signed(more);
                return self.put(offset, &address.to_le_bytes());
            }
            Named::Refused(index) => return Err(self.context.refused[index].clone()),
            _ => return Err(format!("`{}` is no variable", show(name))),
        };
        self.end = self.end.max(offset.saturating_add(8));
        self.addresses.push(Reference { offset, to, more });
        Ok(())
    }

    /// Appends bytes at an offset, which is after all earlier ones. Zeros are not stored.
    fn put(&mut self, offset: u32, bytes: &[u8]) -> Parsed<()> {
        let end = offset.checked_add(bytes.len() as u32);
        self.end = self.end.max(end.ok_or("a variable of more than 4 GB")?);
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        if let Some(last) = self.pieces.last_mut() {
            let zeros = offset - last.offset - last.bytes.len() as u32;
            if zeros <= MOST_ZEROS {
                last.bytes.resize(last.bytes.len() + zeros as usize, 0);
                last.bytes.extend_from_slice(bytes);
                return Ok(());
            }
        }
        self.pieces.push(Piece { offset, bytes: bytes.to_vec() });
        Ok(())
    }
}
