//! Kernels and functions before they are linked, and the variables that they name.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::slots::{Late, Shared};
use crate::isa::{Kernel, Passed};
use crate::parse::source::types::Typed;

/// The error of a source or kernel that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The line of the PTX, from 1.
    pub line: u32,
    /// The error, with the statement.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "PTX line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// The body of a kernel or of a function, before its calls are linked.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// The code. Its calls name functions by their numbers in the module.
    pub(crate) kernel: Kernel,
    /// Presets with a value that is added at linking, by index.
    pub(crate) late: Vec<(usize, Late)>,
    /// The offsets of the shared variables that are placed, by their ids.
    pub(crate) placed: HashMap<usize, u32>,
    pub(crate) dynamic_align: u32,
    /// The parameters of a function, and its results, in its frame.
    pub(crate) params: Vec<Passed>,
    pub(crate) returns: Vec<Passed>,
}

/// A function that has been declared.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    /// The function's body if it is defined here, or the reason why it is refused.
    pub(crate) unit: Option<Result<Unit, ParseError>>,
    /// The number of the function that this name is an alias of.
    pub(crate) alias: Option<usize>,
}

/// A parameter or a result of a function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Formal<'s> {
    pub(crate) name: &'s str,
    pub(crate) bytes: u32,
    pub(crate) align: u32,
    /// The register's type for `.reg`; `None` for `.param`.
    pub(crate) register: Option<Typed>,
}

/// The head of a function.
#[derive(Debug)]
pub(crate) struct Signature<'s> {
    pub(crate) name: &'s str,
    pub(crate) returns: Vec<Formal<'s>>,
    pub(crate) params: Vec<Formal<'s>>,
}

/// The most static shared memory of a kernel, which is the driver's limit.
pub(crate) const MOST_SHARED: u32 = 48 << 10;

/// The most local memory of a thread, which is the driver's limit.
pub(crate) const MOST_LOCAL: u32 = 512 << 10;

/// The state spaces of variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableSpace {
    Shared,
    Local,
    Global,
    Const,
    /// A parameter or result of a function, in local memory.
    Param,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Variable {
    pub(crate) space: VariableSpace,
    pub(crate) align: u32,
    /// The size, or `None` for dynamic shared memory. For a variable in device memory, its number.
    pub(crate) bytes: Option<u32>,
    /// A number that is unique in the module.
    pub(crate) id: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct PlacedAt {
    pub(crate) space: VariableSpace,
    pub(crate) place: Place,
}

#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// An offset in its space.
    At(u32),
    /// The beginning of dynamic shared memory.
    Dynamic,
    /// A place in shared memory that is assigned when the kernel is linked.
    Linked(Shared),
    /// The place of the variable with this number in device memory.
    Global(u32),
}
