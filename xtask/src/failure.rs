//! Failures: faults of a page or a file, with the place where its author can mend it.

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};

/// A fault and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The page or file, relative to the root of the workspace or of the built book.
    pub page: String,
    /// The line, counted from 1, if it is known.
    pub line: Option<usize>,
    /// The fault in words.
    pub what: String,
}

impl Failure {
    /// A failure in `page`, at `line` if that is known.
    pub fn new(page: impl AsRef<Path>, line: Option<usize>, what: impl Into<String>) -> Self {
        // Slashes on every system: the message reads like the links in the page.
        let page = page.as_ref().to_string_lossy().replace('\\', "/");
        Self { page, line, what: what.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.page, self.what),
            None => write!(f, "{}: {}", self.page, self.what),
        }
    }
}

/// Checks that there are no failures.
pub fn none_of(failures: &[Failure], subject: &str) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = failures.iter().map(|failure| format!("  {failure}")).collect();
    let count = match failures.len() {
        1 => "1 failure".to_owned(),
        n => format!("{n} failures"),
    };
    bail!("{count} in {subject}:\n{}", lines.join("\n"))
}
