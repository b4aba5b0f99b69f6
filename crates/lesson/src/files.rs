//! Writes results completely or not at all.
//!
//! A new file or folder is written next to the old one and then renamed to its name. If the program
//! is stopped half-way or the disk is full, the old one remains.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a file and replaces an existing one. A pipe or a device is written to directly. If the
/// path is a link, the file that it points to is replaced.
///
/// # Errors
///
/// Fails as [`std::fs::write`] does; the old file is then unchanged.
pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
    let (path, content) = (path.as_ref(), content.as_ref());
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, content);
    }
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let unfinished = sibling(&path, &format!("{}.new", std::process::id()))?;
    let written = fs::write(&unfinished, content).and_then(|()| fs::rename(&unfinished, &path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Checks that [`write()`] can write this file without changing it: creates a file next to it and
/// removes that file again.
///
/// # Errors
///
/// Returns the error that writing would return.
pub fn can_be_written(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // Opening and closing a pipe here would signal the end of the data to its reader.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Ok(());
    }
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let unfinished = sibling(&path, &format!("{}.new", std::process::id()))?;
    fs::write(&unfinished, "").and_then(|()| fs::remove_file(&unfinished))
}

/// Creates a folder, or replaces an existing one, with the files that `fill` writes into the folder
/// it receives. The old folder remains until the new one is complete, and if `fill` fails. Only one
/// program at a time may replace a folder.
///
/// # Errors
///
/// Returns the error of `fill`, or an error if a folder cannot be created, renamed or removed.
pub fn replace_folder<E: From<io::Error>>(
    folder: &Path,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let (new, old) = (sibling(folder, "new")?, sibling(folder, "old")?);
    if !folder.exists() && old.exists() {
        // An earlier run was stopped between the two renames.
        fs::rename(&old, folder)?;
    }
    for leftover in [&new, &old] {
        remove(leftover)?;
    }
    fs::create_dir_all(&new)?;
    if let Err(error) = fill(&new) {
        remove(&new)?;
        return Err(error);
    }
    if folder.exists() {
        fs::rename(folder, &old)?;
    }
    if let Err(error) = fs::rename(&new, folder) {
        if old.exists() {
            fs::rename(&old, folder)?;
        }
        return Err(error.into());
    }
    Ok(remove(&old)?)
}

fn remove(folder: &Path) -> io::Result<()> {
    if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) }
}

/// Returns `path` with `.` and `ending` appended to its last component.
fn sibling(path: &Path, ending: &str) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        let what = format!("{} has no name", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    };
    let mut named = OsString::from(name);
    named.push(".");
    named.push(ending);
    Ok(path.with_file_name(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_and_no_temporary_file_remains() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        for text in ["old, and longer", "new"] {
            write(&path, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(folder.path()), ["a.csv"]);
    }

    #[test]
    fn trying_to_write_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        can_be_written(&path).unwrap();
        assert!(names(folder.path()).is_empty());
        write(&path, "old").unwrap();
        can_be_written(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["a.csv"]);
        assert!(can_be_written(folder.path().join("no/such/folder.csv")).is_err());
        assert!(can_be_written(folder.path()).is_err());
    }

    /// A reader that has the old file open keeps reading it, because the file is replaced and not
    /// overwritten.
    #[test]
    fn a_reader_of_the_old_file_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        write(&path, "old").unwrap();
        let mut open = fs::File::open(&path).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(io::read_to_string(&mut open).unwrap(), "old");
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        write(&path, "old").unwrap();
        // A folder blocks the temporary file.
        let unfinished = sibling(&path, &format!("{}.new", std::process::id())).unwrap();
        fs::create_dir(&unfinished).unwrap();
        assert!(write(&path, "new").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    }

    #[test]
    #[cfg(unix)]
    fn links_and_devices_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a.csv"), folder.path().join("link.csv"));
        write(&path, "old").unwrap();
        std::os::unix::fs::symlink("a.csv", &link).unwrap();
        write(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        write("/dev/null", "nothing").unwrap();
        assert_eq!(names(folder.path()), ["a.csv", "link.csv"]);
    }

    #[test]
    fn a_folder_is_replaced_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("results");
        for name in ["a.csv", "b.csv"] {
            replace_folder(&folder, |new| fs::write(new.join(name), name)).unwrap();
            assert_eq!(names(&folder), [name]);
        }
        assert_eq!(names(root.path()), ["results"]);
    }

    #[test]
    fn a_folder_that_cannot_be_filled_leaves_the_old_one() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("results");
        replace_folder(&folder, |new| fs::write(new.join("a.csv"), "a")).unwrap();
        let failed = replace_folder(&folder, |new| {
            fs::write(new.join("b.csv"), "b")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(names(&folder), ["a.csv"]);
        assert_eq!(names(root.path()), ["results"]);
    }

    /// Covers the leftovers of runs that were stopped while writing and between the two renames.
    #[test]
    fn leftovers_of_stopped_runs_are_repaired() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("results");
        for leftover in ["results.new", "results.old"] {
            fs::create_dir(root.path().join(leftover)).unwrap();
            fs::write(root.path().join(leftover).join("half.csv"), "half").unwrap();
        }
        let failed = replace_folder(&folder, |_| Err(io::Error::from(io::ErrorKind::StorageFull)));
        assert!(failed.is_err());
        assert_eq!(names(&folder), ["half.csv"], "the old folder has its name again");
        fs::create_dir(root.path().join("results.new")).unwrap();
        replace_folder(&folder, |new| fs::write(new.join("a.csv"), "a")).unwrap();
        assert_eq!(
            (names(root.path()), names(&folder)),
            (vec!["results".into()], vec!["a.csv".into()])
        );
    }
}
