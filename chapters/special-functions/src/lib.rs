//! Finds the bits of a GPU's special functions from its results alone.
//!
//! [`table`] splits a function into segments, [`squares`] has the squarers that may be behind it,
//! [`fit`] decides whether any coefficients explain all results, and [`errors`] measures the
//! precision of the functions. The results come from [`simt::special`], which reproduces an H200's.

pub mod errors;
pub mod fit;
pub mod squares;
pub mod table;

#[path = "../story/mod.rs"]
mod story;

/// The appendix, for the record and for its own binary.
pub const CHAPTER: lesson::Chapter = lesson::Chapter {
    number: 0,
    slug: "special-functions",
    title: "The bits of the special functions",
    run: story::run,
};
