//! PTX as text: tokens, literals, and one instruction as it is written.

pub(crate) mod cursor;
pub(crate) mod lexer;
pub(crate) mod statement;
pub(crate) mod types;
