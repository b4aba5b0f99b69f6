//! What is known of a source while it is read, and of the kernel or function that is read: names,
//! types, slots and the code so far.

pub(crate) mod context;
mod declare;
pub(crate) mod names;
mod operand;
pub(crate) mod slots;
pub(crate) mod special;
pub(crate) mod state;
pub(crate) mod unit;
