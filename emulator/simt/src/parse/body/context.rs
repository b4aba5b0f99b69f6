//! The state that the readers of a module and of its kernels share.

use std::collections::HashMap;
use std::sync::Arc;

use super::names::Names;
use super::unit::{Function, Variable};
use crate::isa::{self, Declared};
use crate::parse::source::cursor::Cursor;

/// The state of a source while it is read.
#[derive(Debug)]
pub(crate) struct Context<'s> {
    pub(crate) cursor: Cursor<'s>,
    pub(crate) names: Names<'s>,
    pub(crate) variables: Vec<Variable>,
    /// The variables in device memory, also those of kernels that have been read.
    pub(crate) globals: Vec<Declared>,
    /// Bytes of constant memory.
    pub(crate) constant_bytes: u32,
    pub(crate) functions: Vec<Function>,
    /// The functions whose addresses are taken, by number.
    pub(crate) pointed: Vec<u32>,
    /// The number of variables that have been declared.
    ids: usize,
    /// The errors of variables that are not supported.
    pub(crate) refused: Vec<String>,
    pub(crate) unrounded: Vec<(u32, Arc<str>)>,
    /// True if kernels save the names of their registers and variables.
    pub(crate) named: bool,
    opcodes: HashMap<&'s str, Arc<str>>,
    /// For each `.file` number in a `.loc`: its index in the result, and the first such line.
    used_files: HashMap<u32, (u16, u32)>,
    file_names: HashMap<u32, &'s str>,
}

impl<'s> Context<'s> {
    pub(crate) fn new(source: &'s str, named: bool) -> Self {
        Context {
            cursor: Cursor::new(source),
            names: Names::default(),
            variables: Vec::new(),
            globals: Vec::new(),
            constant_bytes: 0,
            functions: Vec::new(),
            pointed: Vec::new(),
            ids: 0,
            refused: Vec::new(),
            unrounded: Vec::new(),
            named,
            opcodes: HashMap::new(),
            used_files: HashMap::new(),
            file_names: HashMap::new(),
        }
    }

    /// Returns a unique number for a variable.
    pub(crate) fn next_id(&mut self) -> usize {
        self.ids += 1;
        self.ids
    }

    /// Returns the address of a function, and records that it may be called through it.
    pub(crate) fn address_of_function(&mut self, number: usize) -> u64 {
        let number = number as u32;
        if self.pointed.last() != Some(&number) {
            self.pointed.push(number);
        }
        isa::Function::address(number)
    }

    /// Returns the text of an opcode, shared by all instructions with this opcode.
    pub(crate) fn opcode(&mut self, text: &'s str) -> Arc<str> {
        self.opcodes.entry(text).or_insert_with(|| Arc::from(text)).clone()
    }

    /// Returns the index for the file with this number; its name may come later.
    pub(crate) fn file(&mut self, number: u32, line: u32) -> Result<u16, String> {
        let next = u16::try_from(self.used_files.len()).map_err(|_| "too many files")?;
        Ok(self.used_files.entry(number).or_insert((next, line)).0)
    }

    /// Reads the rest of `.file 1 "a.cu"`, optionally with a time and a size.
    pub(crate) fn file_directive(&mut self) -> Result<(), String> {
        let number = self.cursor.count(u32::MAX)?;
        let name = self.cursor.text()?;
        while self.cursor.accept(b',')? {
            self.cursor.number()?;
        }
        match self.file_names.insert(number, name) {
            Some(earlier) if earlier != name => Err(format!("file {number} has two names")),
            _ => Ok(()),
        }
    }

    /// Returns the names of the files that are used, by index.
    pub(crate) fn files(&mut self) -> Result<Arc<[Arc<str>]>, String> {
        let mut names = vec![Arc::from(""); self.used_files.len()];
        for (number, &(index, line)) in &self.used_files {
            let Some(&name) = self.file_names.get(number) else {
                self.cursor.blame(line);
                return Err(format!("`.loc` names file {number}, and no `.file` does"));
            };
            names[usize::from(index)] = Arc::from(name);
        }
        Ok(names.into())
    }
}
