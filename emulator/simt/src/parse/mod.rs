//! The PTX parser: from text to [`Kernel`](crate::Kernel)s.
//!
//! The parser is strict. It matches opcodes, modifiers, register classes, state spaces and
//! directives in full. Anything unknown is an error that quotes the statement, because an
//! instruction that is executed as a similar one gives results that are only sometimes wrong.
//!
//! The source is read once, from front to back, in time linear in its length:
//! - `source` reads the text: tokens, types, literals, and the parts of an instruction;
//! - `body` holds the state of a body: names, variables, slots, and the code so far;
//! - `decode` turns the parts of an instruction into an [`Op`](crate::isa::Op);
//! - `read` reads the body of a kernel or a function, and `call` its calls and switches;
//! - `head` reads parameters for `module` and for `declarations`. The latter is the only reader
//!   that is not strict: it skips everything outside of kernels' heads;
//! - `module` reads what is outside of kernels, with `globals` and `function`;
//! - `link` joins a kernel with the functions that it calls, and `reuse` lets registers that are
//!   not needed at the same time share a slot.

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
