//! Excerpts of a larger record: the rows of its tables that a page shows.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// From which folder rows are taken, and into which.
#[derive(Debug)]
pub struct Excerpt {
    from: PathBuf,
    to: PathBuf,
}

impl Excerpt {
    /// The program that takes them: its arguments are the two folders.
    pub fn main(take: impl FnOnce(&Excerpt) -> io::Result<()>) -> ExitCode {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [from, to] = arguments.as_slice() else {
            eprintln!("usage: excerpt FOLDER_OF_THE_BUNDLES_OUTPUT FOLDER");
            return ExitCode::from(2);
        };
        match take(&Excerpt { from: from.into(), to: to.into() }) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(2)
            }
        }
    }

    /// Takes the header of a CSV file, and those of its rows whose cells are wanted.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or its excerpt cannot be written.
    pub fn take(&self, file: &str, wanted: impl Fn(&[&str]) -> bool) -> io::Result<()> {
        let text = fs::read_to_string(self.from.join(file))?;
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        let kept = lines.filter(|line| wanted(&line.split(',').collect::<Vec<_>>()));
        let kept: String =
            [header].into_iter().chain(kept).map(|line| format!("{line}\n")).collect();
        fs::write(self.to.join(file), kept)
    }
}
