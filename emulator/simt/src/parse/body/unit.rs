//! Kernels and functions before they are linked, and the variables that they name.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::slots::{Late, Shared};
use crate::isa::{Kernel, Passed};
use crate::parse::source::types::Typed;

/// Why a source was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The line of the PTX, from 1.
    pub line: u32,
    /// What is wrong there, with the statement.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "PTX line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// The body of a kernel or of a function, before it is known what it calls.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// With calls that name functions by their numbers in the module.
    pub(crate) kernel: Kernel,
    /// Presets that something is to be added to, by index.
    pub(crate) late: Vec<(usize, Late)>,
    /// Where those shared variables lie that have a place, by their ids.
    pub(crate) placed: HashMap<usize, u32>,
    pub(crate) dynamic_align: u32,
    /// What a function takes and returns, in its frame.
    pub(crate) params: Vec<Passed>,
    pub(crate) returns: Vec<Passed>,
}

/// A function that has been declared.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    /// Of one that is defined here: what it is, or why it is refused.
    pub(crate) unit: Option<Result<Unit, ParseError>>,
    /// Of another name for a function, that function's number.
    pub(crate) alias: Option<usize>,
}

/// What a function takes or returns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Formal<'s> {
    pub(crate) name: &'s str,
    pub(crate) bytes: u32,
    pub(crate) align: u32,
    /// `.reg` and not `.param`.
    pub(crate) register: Option<Typed>,
}

/// The head of a function.
#[derive(Debug)]
pub(crate) struct Signature<'s> {
    pub(crate) name: &'s str,
    pub(crate) returns: Vec<Formal<'s>>,
    pub(crate) params: Vec<Formal<'s>>,
}

/// Static shared memory of a kernel, as the driver limits it.
pub(crate) const MOST_SHARED: u32 = 48 << 10;

/// Local memory of a thread, as the driver limits it.
pub(crate) const MOST_LOCAL: u32 = 512 << 10;

/// The state spaces of variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableSpace {
    Shared,
    Local,
    Global,
    Const,
    /// What is handed to a function, or comes from it: in local memory.
    Param,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Variable {
    pub(crate) space: VariableSpace,
    pub(crate) align: u32,
    /// `None`: it takes what the launch adds. Of one in device memory the number among those.
    pub(crate) bytes: Option<u32>,
    /// Which no other variable of the module has.
    pub(crate) id: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct PlacedAt {
    pub(crate) space: VariableSpace,
    pub(crate) place: Place,
}

#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// At an offset in its space.
    At(u32),
    /// At the beginning of dynamic shared memory.
    Dynamic,
    /// In shared memory, where the kernels that call the function have it.
    Linked(Shared),
    /// Where the variable of that number lies in device memory.
    Global(u32),
}
