//! The head of a kernel: its name, parameters and the sizes of its blocks.

use std::sync::Arc;

use super::head::Head;
use crate::isa::Param;
use crate::parse::body::context::Context;
use crate::parse::body::names::Named;
use crate::parse::source::types;

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    pub(super) params: Vec<Param>,
    pub(super) param_bytes: u32,
    pub(super) max_threads: Option<[u32; 3]>,
    pub(super) required_threads: Option<[u32; 3]>,
}

impl Entry {
    /// As far as a function has one.
    pub(super) fn of_function(name: &str) -> Entry {
        let (max_threads, required_threads) = (None, None);
        Entry {
            name: name.into(),
            params: Vec::new(),
            param_bytes: 0,
            max_threads,
            required_threads,
        }
    }

    /// Reads from behind the name up to the brace that opens the body, which is left.
    pub(super) fn read(name: &str, context: &mut Context) -> Result<Entry, String> {
        let Context { cursor, names, .. } = context;
        let Head { params, param_bytes } = Head::read(cursor, |name, number, param| {
            if types::declared(param.ty).is_none() {
                return Err(format!("a parameter of type `.{}` is not supported", param.ty));
            }
            names.declare(name, Named::Param(number))
        })?;
        let name = Arc::from(name);
        let (max_threads, required_threads) = (None, None);
        let mut entry = Entry { name, params, param_bytes, max_threads, required_threads };
        while !context.cursor.begin()?.is(b'{') {
            entry.directive(context)?;
        }
        Ok(entry)
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
