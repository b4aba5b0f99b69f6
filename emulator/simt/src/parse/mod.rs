//! The PTX parser: from text to [`Kernel`](crate::Kernel)s.
//!
//! It is strict. Opcodes, modifiers, register classes, state spaces and directives are matched in
//! full, and what is not known is an error that quotes the statement: an instruction that is
//! executed as a similar one gives results that are wrong only sometimes.
//!
//! The source is read once, from front to back, in time linear in its length:
//! - `source` is the text: tokens, types, literals, and an instruction as it is written;
//! - `body` is what is known while the text is read: names, variables, slots, and the code so far;
//! - `decode` turns an instruction as it is written into an [`Op`](crate::isa::Op);
//! - `read` reads the body of a kernel or a function, and `call` its calls and switches;
//! - `head` reads parameters, for `module` and for `declarations`, which is the one reader that is
//!   not strict: it skips everything that is no kernel's head;
//! - `module` reads what stands outside of kernels, with `globals` and `function`;
//! - `link` puts a kernel together with the functions that it calls, and `reuse` lets registers
//!   that are not needed at the same time share a slot.

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
