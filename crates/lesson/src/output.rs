//! What a program says on its standard output, where that may be closed or full.
//!
//! A reader who closes the pipe early (`| head`) is satisfied, and so is the program: it goes on
//! without saying anything, since what it writes to files is still wanted. Where the output is
//! full, the program goes on as well, and [`end`] tells at the end, with a failing exit code.
//! [`println!`] and [`eprintln!`] are to be imported in place of the standard library's, which
//! panic in both cases.

use std::fmt::{Arguments, Display};
use std::io::{self, IsTerminal, Write};
use std::process::{self, ExitCode, Termination};
use std::sync::OnceLock;

/// The first failure to write to the standard output; a closed pipe is none.
static FAILURE: OnceLock<io::Error> = OnceLock::new();

/// As the standard library's, but for what the module says.
#[doc(hidden)]
#[macro_export]
macro_rules! __println {
    ($($text:tt)*) => { $crate::output::print(::std::format_args!("{}\n", ::std::format_args!($($text)*))) };
}

/// As the standard library's, but where the standard error is closed or full, nothing is said.
#[doc(hidden)]
#[macro_export]
macro_rules! __eprintln {
    ($($text:tt)*) => { $crate::output::complain(::std::format_args!($($text)*)) };
}

pub use crate::{__eprintln as eprintln, __println as println};

/// Writes text to the standard output, without colours where that is no terminal.
pub fn print(text: Arguments) {
    let mut out = anstream::stdout().lock();
    let written = out.write_all(text.to_string().as_bytes());
    keep(written.and_then(|()| if io::stdout().is_terminal() { out.flush() } else { Ok(()) }));
}

/// Writes a line to the standard error, if that can be.
pub fn complain(text: Arguments) {
    let _ = anstream::stderr().write_all(format!("{text}\n").as_bytes());
}

/// The end of `main`: the exit code, which is 2 in place of 0 if something could not be said.
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

/// The end of a `main` that did one thing: its exit code ([`end`]), or 2 after a sentence that says
/// what went wrong.
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

/// The command line, as clap's `parse`: help, or what is wrong with it, ends the program.
#[must_use]
pub fn parse<C: clap::Parser>() -> C {
    C::try_parse().unwrap_or_else(|error| refuse(&error))
}

/// Says what clap has to say, help or a mistake, and ends the program.
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
