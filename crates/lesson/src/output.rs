//! Prints to the standard output even if it is closed or full.
//!
//! A reader who closes the pipe early (`| head`) has read enough. The program goes on silently,
//! because the files that it writes are still wanted. If the output cannot be written for another
//! reason (a full disk), the program goes on as well, and [`end`] reports the failure with a
//! failing exit code. Import [`println!`] and [`eprintln!`] from here instead of the standard
//! library's macros, which panic in both cases.

use std::fmt::{Arguments, Display};
use std::io::{self, IsTerminal, Write};
use std::process::{self, ExitCode, Termination};
use std::sync::OnceLock;

/// The first failure to write to the standard output; a closed pipe does not count as a failure.
static FAILURE: OnceLock<io::Error> = OnceLock::new();

/// Like the standard library's macro, but handles a closed or full output as the module describes.
#[doc(hidden)]
#[macro_export]
macro_rules! __println {
    ($($text:tt)*) => { $crate::output::print(::std::format_args!("{}\n", ::std::format_args!($($text)*))) };
}

/// Like the standard library's macro, but prints nothing if the standard error is closed or full.
#[doc(hidden)]
#[macro_export]
macro_rules! __eprintln {
    ($($text:tt)*) => { $crate::output::complain(::std::format_args!($($text)*)) };
}

pub use crate::{__eprintln as eprintln, __println as println};

/// Writes text to the standard output, without colours unless it is a terminal.
pub fn print(text: Arguments) {
    let mut out = anstream::stdout().lock();
    let written = out.write_all(text.to_string().as_bytes());
    keep(written.and_then(|()| if io::stdout().is_terminal() { out.flush() } else { Ok(()) }));
}

/// Writes a line to the standard error, if possible.
pub fn complain(text: Arguments) {
    let _ = anstream::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Ends `main`: returns the exit code, or 2 in place of 0 if some output could not be written.
#[must_use]
pub fn end(code: ExitCode) -> ExitCode {
    keep(io::stdout().flush());
    match FAILURE.get() {
        Some(error) => {
            eprintln!("error: the standard output cannot be written: {error}");
            if code == ExitCode::SUCCESS { ExitCode::from(2) } else { code }
        }
        None => code,
    }
}

/// Ends a `main` that did one thing: returns its exit code by [`end`], or prints the error and
/// returns 2.
#[must_use]
pub fn finish(outcome: Result<impl Termination, impl Display>) -> ExitCode {
    end(match outcome {
        Ok(done) => done.report(),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    })
}

/// Parses the command line as clap's `parse` does. Prints help, or the mistake in the command line,
/// and exits.
#[must_use]
pub fn parse<C: clap::Parser>() -> C {
    C::try_parse().unwrap_or_else(|error| refuse(&error))
}

/// Prints clap's message, help or a mistake, and exits.
pub(crate) fn refuse(error: &clap::Error) -> ! {
    let mut code = error.exit_code();
    if error.use_stderr() {
        let _ = error.print();
    } else {
        keep(error.print().and_then(|()| io::stdout().flush()));
        if let Some(error) = FAILURE.get() {
            eprintln!("error: the standard output cannot be written: {error}");
            code = 2;
        }
    }
    process::exit(code)
}

fn keep(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = FAILURE.set(error);
    }
}
