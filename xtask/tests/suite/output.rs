//! Where the standard output of `cargo xtask` is closed or full.

use std::process::{Command, Stdio};

use crate::support::Fixture;

/// Builds the book with this in place of the standard output: the exit code, and what is said to
/// the standard error.
fn built(book: &Fixture, stdout: Stdio) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("book").current_dir(book.root()).stdout(stdout).stderr(Stdio::piped());
    let output = command.spawn().and_then(|child| child.wait_with_output()).expect("a program");
    assert!(book.path("target/book/index.html").is_file());
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_reader_who_goes_away_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let (code, error) = built(&Fixture::new(), writer.into());
    assert_eq!((code, error.contains("panicked")), (Some(0), false), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn an_output_without_room_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the device");
    let (code, error) = built(&Fixture::new(), full.into());
    assert_eq!((code, error.contains("panicked")), (Some(2), false), "{error}");
    assert!(error.contains("the standard output cannot be written: No space"), "{error}");
}
