//! The tests of this package that need no inside of it. One program: it is linked once.

#[cfg(unix)]
mod bundle;
mod candidates;
