//! PTX as text: tokens, literals, and the syntax of one instruction.

pub(crate) mod cursor;
pub(crate) mod lexer;
pub(crate) mod statement;
pub(crate) mod types;
