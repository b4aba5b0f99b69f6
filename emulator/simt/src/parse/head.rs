//! The head of a kernel: its parameters, which [`Declarations`](super::Declarations) reads, too,
//! and the sizes of its blocks.

use std::sync::Arc;

use crate::isa::{Kernel, Param};
use crate::parse::body::context::Context;
use crate::parse::body::names::Named;
use crate::parse::source::cursor::Cursor;
use crate::parse::source::types;

/// The most bytes of parameters, as in CUDA 12.1 and later.
const MOST_PARAM_BYTES: u32 = 32_764;

/// The types of parameters that variables cannot have, with the bytes of each. Textures take none.
const OTHERS: [(&str, u32); 5] =
    [("bf16x2", 4), ("b128", 16), ("texref", 0), ("samplerref", 0), ("surfref", 0)];

/// The parameters of a kernel.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) params: Vec<Param>,
    /// The number of bytes from the first parameter to the end of the last.
    pub(super) param_bytes: u32,
}

impl Head {
    /// Reads from the kernel's name to the end of the list of parameters, if it has one. Calls
    /// `see` with each parameter while errors are still reported at its line.
    pub(super) fn read<'s>(
        cursor: &mut Cursor<'s>,
        mut see: impl FnMut(&'s str, usize, &Param) -> Result<(), String>,
    ) -> Result<Head, String> {
        let mut head = Head::default();
        if !cursor.accept(b'(')? || cursor.accept(b')')? {
            return Ok(head);
        }
        loop {
            cursor.begin()?;
            let name = head.param(cursor)?;
            let number = head.params.len() - 1;
            see(name, number, &head.params[number])?;
            if cursor.accept(b')')? {
                return Ok(head);
            }
            cursor.expect(b',')?;
        }
    }

    /// Reads `.param .u64 .ptr .global .align 16 name` or `.param .align 8 .b8 name[24]`.
    pub(super) fn param<'s>(&mut self, cursor: &mut Cursor<'s>) -> Result<&'s str, String> {
        if !cursor.accept_directive("param")? {
            return Err("a parameter begins with `.param`".to_string());
        }
        let mut align = 1;
        while let Some(asked) = cursor.alignment()? {
            align = align.max(asked);
        }
        let written = cursor.directive()?;
        let declared = types::declared(written).map(|typed| (typed.name, typed.bytes()));
        let known = declared.or_else(|| OTHERS.into_iter().find(|&(ty, _)| ty == written));
        let (ty, element) =
            known.ok_or_else(|| format!("a parameter of type `.{written}` is not supported"))?;
        if cursor.accept_directive("ptr")? {
            for space in ["global", "shared", "local", "const", "surfref", "samplerref", "texref"] {
                if cursor.accept_directive(space)? {
                    break;
                }
            }
        }
        // The alignment of the pointer's target: a promise to the driver's compiler.
        cursor.alignment()?;
        let name = cursor.name()?;
        // Arrays of opaque types are not supported.
        let bytes =
            if element == 0 { Some(0) } else { cursor.size(element)?.filter(|&bytes| bytes > 0) };
        let bytes = bytes.ok_or("a parameter needs a size")?;
        // The alignment is at least the alignment of the type.
        let align = align.max(element);
        let offset =
            if element == 0 { self.param_bytes } else { self.param_bytes.next_multiple_of(align) };
        let end = offset.checked_add(bytes).filter(|&end| end <= MOST_PARAM_BYTES);
        self.param_bytes =
            end.ok_or_else(|| format!("parameters of more than {MOST_PARAM_BYTES} bytes"))?;
        self.params.push(Param { name: Arc::from(name), ty, bytes, align, offset });
        Ok(name)
    }
}

/// Reads the head of a kernel from after its name to before the opening brace of its body.
pub(super) fn read(name: &str, context: &mut Context) -> Result<Kernel, String> {
    let Context { cursor, names, .. } = context;
    let Head { params, param_bytes } = Head::read(cursor, |name, number, param| {
        if types::declared(param.ty).is_none() {
            return Err(format!("a parameter of type `.{}` is not supported", param.ty));
        }
        names.declare(name, Named::Param(number))
    })?;
    let mut kernel = Kernel { name: name.into(), params, param_bytes, ..Kernel::default() };
    while !context.cursor.begin()?.is(b'{') {
        match context.cursor.directive()? {
            "maxntid" => kernel.max_threads = Some(dimensions(context)?),
            "reqntid" => kernel.required_threads = Some(dimensions(context)?),
            // Hints for registers and blocks per multiprocessor do not change results.
            "minnctapersm" | "maxnctapersm" | "maxnreg" => {
                context.cursor.count(u32::MAX)?;
            }
            "noreturn" => {}
            "pragma" => context.pragma()?,
            other => return Err(format!("`.{other}` is not supported before a kernel's body")),
        }
    }
    Ok(kernel)
}

/// Reads `256`, `16, 16` or `8, 8, 4`.
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
