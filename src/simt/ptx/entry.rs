//! The head of a kernel: its name, parameters and the sizes of its blocks.

use std::sync::Arc;

use super::context::Context;
use super::names::Named;
use super::program::Param;
use super::types;

/// The most bytes that parameters may take, of CUDA 12.1 and later.
const MOST_PARAM_BYTES: u32 = 32_764;

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    pub(super) params: Vec<Param>,
    pub(super) param_bytes: u32,
    pub(super) max_threads: Option<[u32; 3]>,
    pub(super) required_threads: Option<[u32; 3]>,
}

impl Entry {
    /// Reads from behind the name up to the brace that opens the body, which is left.
    pub(super) fn read(name: &str, context: &mut Context) -> Result<Entry, String> {
        let mut entry = Entry {
            name: Arc::from(name),
            params: Vec::new(),
            param_bytes: 0,
            max_threads: None,
            required_threads: None,
        };
        if context.cursor.accept(b'(')? && !context.cursor.accept(b')')? {
            loop {
                context.cursor.begin()?;
                entry.param(context)?;
                if context.cursor.accept(b')')? {
                    break;
                }
                context.cursor.expect(b',')?;
            }
        }
        while !context.cursor.begin()?.is(b'{') {
            entry.directive(context)?;
        }
        Ok(entry)
    }

    /// `.param .u64 .ptr .global .align 16 name` or `.param .align 8 .b8 name[24]`
    fn param(&mut self, context: &mut Context) -> Result<(), String> {
        if !context.cursor.accept_directive("param")? {
            return Err("a parameter begins with `.param`".to_string());
        }
        let align = context.alignment()?;
        let written = context.cursor.directive()?;
        let typed = types::declared(written)
            .ok_or_else(|| format!("a parameter of type `.{written}` is not supported"))?;
        if context.cursor.accept_directive("ptr")? {
            // What it points to: a promise to the driver's compiler.
            for space in ["global", "shared", "local", "const"] {
                if context.cursor.accept_directive(space)? {
                    break;
                }
            }
            context.alignment()?;
        }
        let name = context.cursor.name()?;
        let bytes = context.size(typed.bytes())?.ok_or("a parameter needs a size")?;
        let offset = self.param_bytes.next_multiple_of(align.unwrap_or(typed.bytes()));
        let end = offset.checked_add(bytes).filter(|&end| end <= MOST_PARAM_BYTES);
        self.param_bytes =
            end.ok_or_else(|| format!("parameters of more than {MOST_PARAM_BYTES} bytes"))?;
        context.names.declare(name, Named::Param(self.params.len()))?;
        self.params.push(Param { name: Arc::from(name), bytes, offset });
        Ok(())
    }

    /// What stands between the parameters and the body.
    fn directive(&mut self, context: &mut Context) -> Result<(), String> {
        match context.cursor.directive()? {
            "maxntid" => self.max_threads = Some(dimensions(context)?),
            "reqntid" => self.required_threads = Some(dimensions(context)?),
            // How many registers and blocks at a time: no result depends on it.
            "minnctapersm" | "maxnctapersm" | "maxnreg" => {
                context.cursor.count(u32::MAX)?;
            }
            "noreturn" => {}
            "pragma" => context.pragma()?,
            other => return Err(format!("`.{other}` is not supported before a kernel's body")),
        }
        Ok(())
    }
}

/// `256`, `16, 16` or `8, 8, 4`
fn dimensions(context: &mut Context) -> Result<[u32; 3], String> {
    let mut dimensions = [1; 3];
    for (axis, dimension) in dimensions.iter_mut().enumerate() {
        if axis == 0 || context.cursor.accept(b',')? {
            *dimension = context.cursor.count(1 << 20)?;
        } else {
            break;
        }
    }
    if dimensions.contains(&0) {
        return Err("a block cannot have 0 threads".to_string());
    }
    Ok(dimensions)
}
