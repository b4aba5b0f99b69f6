//! The tests of the project's own tools. One program: it is linked once.

mod book;
mod browser;
mod notebook_pages;
mod record;
mod results;
mod serve;
mod support;
