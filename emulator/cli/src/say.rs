//! Printing to a standard output that may be closed or full, where the standard library's macros
//! panic.
//!
//! If a reader closes it early (`| head`), the command goes on, because the files that it writes
//! are still wanted. If it is full, the exit code reports this at the end.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// The first failure to write, apart from a closed pipe.
static FAILURE: OnceLock<io::Error> = OnceLock::new();

macro_rules! print {
    ($($text:tt)*) => { $crate::say::say(::std::format_args!($($text)*)) };
}
macro_rules! println {
    ($($text:tt)*) => { $crate::say::say(::std::format_args!("{}\n", ::std::format_args!($($text)*))) };
}
pub(crate) use {print, println};

/// Prints a text.
pub fn say(text: Arguments) {
    save_failure(io::stdout().lock().write_fmt(text));
}

/// Returns why a text could not be printed.
pub fn failure() -> Option<&'static io::Error> {
    save_failure(io::stdout().flush());
    FAILURE.get()
}

fn save_failure(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = FAILURE.set(error);
    }
}
