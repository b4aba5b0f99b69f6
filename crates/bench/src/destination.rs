//! The file that every run is written to.

use std::path::{Path, PathBuf};

use lesson::files;

use crate::row::Row;

/// A file that can be written to, found out before anything is measured; it is written as a whole
/// when all is measured.
#[derive(Debug)]
pub struct Destination {
    path: PathBuf,
    overwrite: bool,
}

impl Destination {
    /// Whether a file that is there may be replaced is up to `overwrite`.
    ///
    /// # Errors
    ///
    /// If the file exists and may not be replaced, or cannot be written.
    pub fn new(path: &Path, overwrite: bool) -> lesson::Result<Destination> {
        let destination = Destination { path: path.to_owned(), overwrite };
        destination.may_be_written()?;
        files::can_be_written(path).map_err(|error| destination.failed(&error))?;
        Ok(destination)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all runs; until then, a file that is to be replaced stays as it is.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, or there is one by now that may not be replaced.
    pub fn write(&self, rows: &[Row]) -> lesson::Result {
        self.may_be_written()?;
        Ok(files::write(&self.path, Row::to_csv(rows)?).map_err(|error| self.failed(&error))?)
    }

    fn may_be_written(&self) -> Result<(), String> {
        let is_free = self.overwrite || !self.path.exists();
        is_free.then_some(()).ok_or_else(|| {
            format!("{} is there already; --overwrite replaces it", self.path.display())
        })
    }

    fn failed(&self, error: &std::io::Error) -> String {
        format!("cannot write {}: {error}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Destination;
    use crate::row::HEADER;

    #[test]
    fn what_is_replaced_stays_until_all_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        fs::write(&path, "precious").unwrap();
        let error = Destination::new(&path, false).unwrap_err().to_string();
        assert!(error.contains("is there already"), "{error}");
        let destination = Destination::new(&path, true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        destination.write(&[]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{HEADER}\n"));
    }

    #[test]
    fn nothing_is_left_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        let destination = Destination::new(&path, false).unwrap();
        // A run that ends before it has measured leaves nothing.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        fs::write(&path, "somebody else's").unwrap();
        assert!(destination.write(&[]).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "somebody else's");
        let error = Destination::new(&folder.path().join("no/such/folder.csv"), false);
        assert!(error.unwrap_err().to_string().contains("cannot write"));
    }
}
