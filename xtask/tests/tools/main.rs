//! The tests of the project's own tools. One program: it is linked once.

mod book;
mod browser;
#[cfg(unix)]
mod bundle;
mod notebook_pages;
mod notebooks;
mod record;
mod support;
