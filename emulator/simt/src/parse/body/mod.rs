//! The state of the parser: of a source, and of the kernel or function that is read. It consists of
//! names, types, slots and the code so far.

pub(crate) mod context;
mod declare;
pub(crate) mod names;
mod operand;
pub(crate) mod slots;
pub(crate) mod special;
pub(crate) mod state;
pub(crate) mod unit;
