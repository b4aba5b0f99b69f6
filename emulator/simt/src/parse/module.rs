//! Modules: the directives outside of kernels, and the parser's entry points.
//!
//! The source is read once. A kernel that is refused does not refuse the others if its end can be
//! found: it is skipped, and the reason is saved. After the last directive, each kernel is linked
//! with the functions that it calls. Sizes are bounded, so that time and memory are linear in the
//! length of the source. Tested by `suite/parser.rs`, `suite/programs.rs`, `cases/refusals.ptx`,
//! `cases/calls.ptx`, and by fuzzing.

use std::sync::Arc;

use super::declarations::has_body;
use super::head;
use super::link::Linker;
use super::reuse::{note_live, reuse};
use crate::isa::{Declared, Kernel};
use crate::parse::body::context::Context;
use crate::parse::body::names::Named;
use crate::parse::body::state::Body;
use crate::parse::body::unit::{ParseError, Unit, VariableSpace};
use crate::parse::source::cursor::Cursor;
use crate::parse::source::lexer::Kind;

/// The most bytes of a source.
const MOST_BYTES: usize = 16 << 20;
const MOST_KERNELS: usize = 1 << 16;

/// The kernels of one PTX source.
#[derive(Debug, Clone)]
pub struct Module {
    kernels: Vec<Arc<Kernel>>,
    /// The kernels that cannot run, each with the reason.
    refused: Vec<(Arc<str>, ParseError)>,
    globals: Arc<[Declared]>,
    unrounded: Vec<(u32, Arc<str>)>,
}

impl Module {
    /// Parses PTX of versions 7.0 to 9.x, as NVRTC or `nvcc --ptx` writes it.
    ///
    /// Takes time and memory linear in the length of the source, and never panics.
    ///
    /// # Errors
    ///
    /// A [`ParseError`] if the source is not PTX, or has something outside of its kernels that the
    /// emulator does not know. A kernel that the emulator cannot execute exactly is not an error:
    /// the others are usable, and [`Module::refusal`] returns the reason.
    pub fn parse(source: &str) -> Result<Module, ParseError> {
        Module::decode(source, false, |unit| reuse(&mut unit.kernel))
    }

    /// Parses a module as [`Module::parse`] does, and saves the names of registers and of variables
    /// in shared memory for a [`Stepper`](crate::Stepper). No two registers share a slot, so its
    /// kernels run more slowly.
    ///
    /// # Errors
    ///
    /// As [`Module::parse`].
    pub fn parse_named(source: &str) -> Result<Module, ParseError> {
        Module::decode(source, true, |unit| note_live(&mut unit.kernel))
    }

    /// Parses a module. Calls `finish` with each kernel and function before it is linked; until
    /// then each register has a separate slot.
    pub(super) fn decode(
        source: &str,
        named: bool,
        finish: fn(&mut Unit),
    ) -> Result<Module, ParseError> {
        if source.len() > MOST_BYTES {
            let message = format!("the source has more than {MOST_BYTES} bytes");
            return Err(ParseError { line: 1, message });
        }
        let mut reader = Reader { context: Context::new(source, named), units: Vec::new(), finish };
        let read = reader.read().and_then(|()| reader.context.files());
        let files = read.map_err(|message| {
            let (line, message) = reader.context.cursor.error(message);
            ParseError { line, message }
        })?;
        let Reader { mut context, mut units, .. } = reader;
        context.use_aliases(&mut units);
        let globals: Arc<[Declared]> = context.globals.into();
        let (mut kernels, mut refused) = (Vec::new(), Vec::new());
        let mut linker = Linker::new(&context.functions, context.pointed, named);
        for (name, unit) in units {
            match unit.and_then(|unit| linker.link(unit)) {
                Ok(kernel) => {
                    let (files, globals) = (files.clone(), globals.clone());
                    kernels.push(Arc::new(Kernel { files, globals, ..kernel }));
                }
                Err(error) => refused.push((name, error)),
            }
        }
        Ok(Module { kernels, refused, globals, unrounded: context.unrounded })
    }

    /// Returns the module if all of its kernels can run.
    ///
    /// # Errors
    ///
    /// The first of [`Module::refusals`].
    pub fn complete(self) -> Result<Module, ParseError> {
        match self.refused.first() {
            None => Ok(self),
            Some((_, error)) => Err(error.clone()),
        }
    }

    /// Returns the kernel with a name, if it exists and can run.
    pub fn kernel(&self, name: &str) -> Option<&Arc<Kernel>> {
        self.kernels.iter().find(|kernel| kernel.name() == name)
    }

    /// Returns all kernels that can run, in the order of the source.
    pub fn kernels(&self) -> impl Iterator<Item = &Arc<Kernel>> {
        self.kernels.iter()
    }

    /// Returns the reason why the existing kernel with a name cannot run.
    pub fn refusal(&self, name: &str) -> Option<&ParseError> {
        self.refusals().find(|(refused, _)| *refused == name).map(|(_, error)| error)
    }

    /// Returns the kernels that cannot run, each with the reason, in the order of the source.
    pub fn refusals(&self) -> impl Iterator<Item = (&str, &ParseError)> {
        self.refused.iter().map(|(name, error)| (&**name, error))
    }

    /// Returns the variables in device memory.
    pub(crate) fn variables(&self) -> &Arc<[Declared]> {
        &self.globals
    }

    /// Returns the additions, subtractions and multiplications of floats without a rounding
    /// modifier, in kernels that can run, each with its line. The emulator rounds them to nearest.
    /// A driver may fuse two of them into one `fma`; then a GPU's bits differ.
    pub fn unrounded(&self) -> &[(u32, Arc<str>)] {
        &self.unrounded
    }
}

struct Reader<'s> {
    context: Context<'s>,
    /// The kernels, in the order of the source, or the reason why one is refused.
    units: Vec<(Arc<str>, Result<Unit, ParseError>)>,
    finish: fn(&mut Unit),
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), String> {
        self.context.names.open()?;
        self.head()?;
        while self.context.cursor.begin()?.kind != Kind::End {
            self.item()?;
        }
        Ok(())
    }

    /// Reads `.version 8.0 .target sm_80 .address_size 64`.
    fn head(&mut self) -> Result<(), String> {
        let cursor = &mut self.context.cursor;
        if !((7, 0)..(10, 0)).contains(&cursor.version()?) {
            return Err("the version is not one of 7.0 to 9.x".to_string());
        }
        cursor.begin()?;
        if !cursor.accept_directive("target")? {
            return Err("`.version` is followed by `.target`".to_string());
        }
        loop {
            let target = cursor.name()?;
            if !target.starts_with("sm_") && !target.starts_with("compute_") && target != "debug" {
                return Err(format!("the target `{target}` is not supported"));
            }
            if !cursor.accept(b',')? {
                break;
            }
        }
        cursor.begin()?;
        if !cursor.accept_directive("address_size")? || cursor.count(u32::MAX)? != 64 {
            return Err("`.address_size 64` is needed".to_string());
        }
        Ok(())
    }

    /// Reads a directive with all that belongs to it.
    fn item(&mut self) -> Result<(), String> {
        let cursor = &mut self.context.cursor;
        let mut linkage = None;
        loop {
            match cursor.directive()? {
                word @ ("visible" | "weak" | "extern" | "common") if linkage.is_none() => {
                    linkage = Some(word);
                }
                "entry" if linkage != Some("extern") && linkage != Some("common") => {
                    return self.kernel();
                }
                "func" => return self.context.function(self.finish),
                "shared" => {
                    let space = VariableSpace::Shared;
                    return self.context.variables(space, linkage == Some("extern"));
                }
                "global" => {
                    let space = VariableSpace::Global;
                    return self.context.device_variables(space, linkage == Some("extern"));
                }
                "const" => {
                    let space = VariableSpace::Const;
                    return self.context.device_variables(space, linkage == Some("extern"));
                }
                "file" if linkage.is_none() => return self.context.file_directive(),
                "alias" if linkage.is_none() => return self.context.alias(),
                "pragma" if linkage.is_none() => return self.context.pragma(),
                "section" if linkage.is_none() => return self.section(),
                other => return Err(format!("`.{other}` is not supported here")),
            }
        }
    }

    fn kernel(&mut self) -> Result<(), String> {
        if self.units.len() == MOST_KERNELS {
            return Err(format!("more than {MOST_KERNELS} kernels"));
        }
        let name = self.context.cursor.name()?;
        self.context.names.declare(name, Named::Kernel)?;
        let (variables, unrounded) = (self.context.variables.len(), self.context.unrounded.len());
        let begin = self.context.cursor.clone();
        let read = self.context.names.open().and_then(|()| {
            let head = head::read(name, &mut self.context)?;
            Body::kernel(head, &mut self.context)
        });
        self.context.variables.truncate(variables);
        match read {
            Ok(mut unit) => {
                (self.finish)(&mut unit);
                self.units.push((Arc::from(name), Ok(unit)));
            }
            Err(message) => {
                // The other kernels are usable only if the end of this one is found.
                let end = end_of_kernel(begin).ok_or_else(|| message.clone())?;
                let (line, message) = self.context.cursor.error(message);
                self.units.push((Arc::from(name), Err(ParseError { line, message })));
                self.context.cursor = end;
                self.context.names.close_all_but_first();
                self.context.unrounded.truncate(unrounded);
            }
        }
        Ok(())
    }

    /// Skips the rest of `.section .debug_str { … }`, which is for debuggers.
    fn section(&mut self) -> Result<(), String> {
        let cursor = &mut self.context.cursor;
        let name = cursor.directive()?;
        if !name.starts_with("debug_") {
            return Err(format!("the section `.{name}` is not supported"));
        }
        cursor.expect(b'{')?;
        cursor.skip_past(b'}')
    }
}

/// Returns the place after a kernel's body, given the place after its name.
fn end_of_kernel(mut cursor: Cursor) -> Option<Cursor> {
    let mut end = || -> Result<bool, String> {
        if cursor.accept(b'(')? {
            cursor.skip_past(b')')?;
        }
        let has_body = has_body(&mut cursor)?;
        if has_body {
            cursor.skip_braces()?;
        }
        Ok(has_body)
    };
    end().is_ok_and(|has_body| has_body).then_some(cursor)
}

impl Kernel {
    /// Returns the number of its instructions.
    pub fn instructions(&self) -> usize {
        self.code.len()
    }

    /// Returns the number of a thread's registers in the emulator: the slots for the registers of
    /// the PTX, which share slots where their live ranges permit, and one for each constant. (The
    /// driver's compiler may move instructions and finds a smaller number.)
    pub fn registers(&self) -> usize {
        self.slots.iter().sum::<u32>() as usize
    }
}
