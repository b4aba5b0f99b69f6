//! The book: `build` writes its pages, `check` looks at what was built, and `serve` serves it.
//!
//! The pages are rewritten before mdBook reads them, from the text of the author's file, so that a
//! failure has its line there. Each kind of rewriting is a module here. Only `code` changes blocks
//! of code.

mod addresses;
mod asides;
mod build;
mod code;
mod directives;
mod exercises;
mod figures;
mod formulas;
mod links;
mod markdown;
mod notebook;
mod page;
pub mod serve;
mod site;
mod svg;
mod tables;
mod values;

pub use build::{Book, build, check};
