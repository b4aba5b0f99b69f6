//! How the bits of a GPU's special functions can be found from its results alone.
//!
//! [`table`] says what a function's results tell of its table, [`squares`] has the squarers that
//! one may suspect behind it, [`fit`] decides whether any coefficients explain all results, and
//! [`errors`] measures how exact the functions are. The results are those of [`simt::special`],
//! which has an H200's.

pub mod errors;
pub mod fit;
pub mod squares;
pub mod table;

#[path = "../story/mod.rs"]
mod story;

/// The appendix, as the record and its own binary run it.
pub const CHAPTER: lesson::Chapter = lesson::Chapter {
    number: 0,
    slug: "special-functions",
    title: "The bits of the special functions",
    run: story::run,
};
