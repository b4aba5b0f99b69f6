//! The file that receives every run.

use std::path::{Path, PathBuf};

use lesson::files;

use crate::csv;
use crate::row::{HEADER, Row};

/// A file that will receive all runs. The check that it can be written comes before the
/// measurement, and the file is written completely after the measurement.
#[derive(Debug)]
pub struct Destination {
    path: PathBuf,
    overwrite: bool,
}

impl Destination {
    /// Checks that the file can be written. An existing file may be replaced only if `overwrite` is
    /// true.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists and may not be replaced, or cannot be written.
    pub fn new(path: &Path, overwrite: bool) -> lesson::Result<Destination> {
        let destination = Destination { path: path.to_owned(), overwrite };
        destination.may_be_written()?;
        files::can_be_written(path).map_err(|error| destination.failed(&error))?;
        Ok(destination)
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all runs. Until then, a file that will be replaced stays unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written, or if a file that may not be replaced has
    /// appeared meanwhile.
    pub fn write(&self, rows: &[Row]) -> lesson::Result {
        self.may_be_written()?;
        let text = csv::write(HEADER, rows)?;
        Ok(files::write(&self.path, text).map_err(|error| self.failed(&error))?)
    }

    fn may_be_written(&self) -> Result<(), String> {
        let is_free = self.overwrite || !self.path.exists();
        is_free.then_some(()).ok_or_else(|| {
            format!("{} already exists; --overwrite replaces it", self.path.display())
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
    fn the_old_file_stays_until_all_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        fs::write(&path, "precious").unwrap();
        let error = Destination::new(&path, false).unwrap_err().to_string();
        assert!(error.contains("already exists"), "{error}");
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
        // Nothing remains of a run that ends before it has measured.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        fs::write(&path, "somebody else's").unwrap();
        assert!(destination.write(&[]).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "somebody else's");
        let error = Destination::new(&folder.path().join("no/such/folder.csv"), false);
        assert!(error.unwrap_err().to_string().contains("cannot write"));
    }
}
