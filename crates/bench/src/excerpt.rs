//! Makes excerpts of a larger record: the rows of its tables that a page shows.

use std::path::PathBuf;
use std::process::ExitCode;

use lesson::output::{self, eprintln};

use crate::csv::{self, Table};
use crate::{read, write};

/// The folder that rows are taken from, and the folder that receives them.
#[derive(Debug)]
pub struct Excerpt {
    from: PathBuf,
    to: PathBuf,
}

impl Excerpt {
    /// Runs an excerpt program; its arguments are the two folders.
    pub fn main(take: impl FnOnce(&Excerpt) -> lesson::Result) -> ExitCode {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [from, to] = arguments.as_slice() else {
            eprintln!("usage: excerpt FOLDER_OF_THE_BUNDLES_OUTPUT FOLDER");
            return ExitCode::from(2);
        };
        output::finish(take(&Excerpt { from: from.into(), to: to.into() }))
    }

    /// Copies the header of a CSV file and the rows whose cells are `wanted`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or its excerpt cannot be written.
    pub fn take(&self, file: &str, wanted: impl Fn(&[&str]) -> bool) -> lesson::Result {
        let table = Table::read(&read(&self.from.join(file))?)?;
        let kept = table.rows().map(|row| row.cells()).filter(|cells| wanted(cells));
        let lines: lesson::Result<Vec<String>> =
            [table.header()].into_iter().chain(kept).map(csv::row).collect();
        write(&self.to.join(file), &(lines?.join("\n") + "\n"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Excerpt;

    #[test]
    fn wanted_rows_are_copied_unchanged() {
        let [from, to] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let text = "name,what,number\na,\"b, c\",1.50\nd,,2\na,e,3\n";
        fs::write(from.path().join("a.csv"), text).unwrap();
        let excerpt = Excerpt { from: from.path().into(), to: to.path().into() };
        excerpt.take("a.csv", |cells| cells[0] == "a").unwrap();
        let taken = fs::read_to_string(to.path().join("a.csv")).unwrap();
        assert_eq!(taken, "name,what,number\na,\"b, c\",1.50\na,e,3\n");
        let error = excerpt.take("b.csv", |_| true).unwrap_err().to_string();
        assert!(error.contains("b.csv"), "{error}");
    }
}
