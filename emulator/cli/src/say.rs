//! The standard output, which may be closed or full: the standard library's macros panic there.
//!
//! Who closes it early (`| head`) is satisfied, and the command goes on, as what it writes to files
//! is still wanted. Where it is full, the exit code says so at the end.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// The first failure to write; a closed pipe is none.
static FAILURE: OnceLock<io::Error> = OnceLock::new();

macro_rules! print {
    ($($text:tt)*) => { $crate::say::say(::std::format_args!($($text)*)) };
}
macro_rules! println {
    ($($text:tt)*) => { $crate::say::say(::std::format_args!("{}\n", ::std::format_args!($($text)*))) };
}
pub(crate) use {print, println};

pub fn say(text: Arguments) {
    keep(io::stdout().lock().write_fmt(text));
}

/// Why something could not be said.
pub fn failure() -> Option<&'static io::Error> {
    keep(io::stdout().flush());
    FAILURE.get()
}

fn keep(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = FAILURE.set(error);
    }
}
