//! The PTX parser: from text to [`Kernel`](program::Kernel)s.
//!
//! It is strict. Opcodes, modifiers, register classes, state spaces and directives are matched in
//! full, and what is not known is an error that quotes the statement: an instruction that is
//! executed as a similar one gives results that are wrong only sometimes.
//!
//! The source is read once, from front to back, in time linear in its length:
//! - [`lexer`] makes tokens, [`cursor`] looks at them, [`number`] reads literals;
//! - [`head`] reads a kernel's parameters, for [`module`] and for [`declarations`], which is the
//!   one reader that is not strict: it passes over all that is no kernel's head;
//! - [`module`] reads what stands outside of kernels, [`entry`] the rest of a kernel's head,
//!   [`body`] its body, [`declare`] the variables of both, [`globals`] those in device memory, all
//!   in one [`context`];
//! - [`names`] knows what a name stands for in which block, [`slots`] hands out registers;
//! - [`statement`] reads an instruction as syntax, [`operand`] finds out what its operands are
//!   ([`special`] registers, say), and [`decode`] turns it into an [`Op`](program::Op);
//! - [`function`] reads functions, [`call`] their calls, and [`link`] puts a kernel together with
//!   what it calls;
//! - [`reuse`] lets registers that are not needed at the same time share a slot; [`visit`] knows
//!   which an operation names.

mod body;
mod call;
mod declarations;
mod decode;
mod function;
mod globals;
mod head;
mod link;
mod module;
mod read;
mod reuse;
mod source;
#[cfg(test)]
mod tests;

pub use body::unit::ParseError;
pub use declarations::{Declaration, Declarations};
pub use module::Module;
