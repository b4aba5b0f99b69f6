//! The instruction set: the parser's result, which the machine executes.

mod class;
mod instruction;
mod matrix;
mod operand;
mod operation;
mod program;

pub use class::{Access, Class};
pub(crate) use instruction::instruction_table;
pub use instruction::instructions;
pub(crate) use instruction::{Instruction, Op, Role, held};
pub(crate) use matrix::*;
pub(crate) use operand::*;
pub(crate) use operation::*;
pub(crate) use operation::{half_as_f32, half_as_f64, power};
pub(crate) use program::*;
pub use program::{Kernel, Param, SharedVariable};
