//! The book for the tests: the project's settings and theme, with the pages in `fixture/`.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use xtask::book::{self, Book};
use xtask::workspace;

/// A workspace in a temporary folder.
pub struct Fixture {
    folder: TempDir,
}

impl Fixture {
    /// A copy of the fixture book, in which every check passes.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tools = Path::new(env!("CARGO_MANIFEST_DIR"));
        copy(&tools.join("../book.toml"), &folder.path().join("book.toml"));
        copy(&tools.join("theme"), &folder.path().join("xtask/theme"));
        for pages in ["chapters", "notebooks"] {
            copy(&tools.join("tests/fixture").join(pages), &folder.path().join(pages));
        }
        Self { folder }
    }

    /// A copy of this workspace's book, with the files that its pages include, so that a test does
    /// not replace `target/book` while someone reads there.
    pub fn of_workspace() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folder = tempfile::tempdir().expect("a temporary folder");
        for entry in fs::read_dir(root).expect("a readable folder") {
            let path = entry.expect("a readable folder").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name != "target" && !name.starts_with(".git") {
                copy(&path, &folder.path().join(name));
            }
        }
        Self { folder }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).expect("a file to write");
    }

    /// Appends `text` to the sample page, which has everything.
    pub fn append(&self, text: &str) {
        self.edit("chapters/01-sample/README.md", |page| format!("{page}\n{text}\n"));
    }

    pub fn edit(&self, path: &str, change: impl FnOnce(&str) -> String) {
        let text = fs::read_to_string(self.path(path)).expect("a file to read");
        self.write(path, &change(&text));
    }

    /// The failures that the book's check finds.
    pub fn failures(&self) -> String {
        failures(book::check(self.root()))
    }

    /// Builds the book, and fails if anything in it fails.
    pub fn build(&self) {
        assert_eq!(self.build_failures(), "");
    }

    /// The failures without the checks of the built book.
    pub fn build_failures(&self) -> String {
        failures(book::build(self.root()))
    }
}

fn failures(book: anyhow::Result<Book>) -> String {
    book.err().map_or(String::new(), |error| format!("{error:#}"))
}

fn copy(from: &Path, to: &Path) {
    workspace::copy(from, to).expect("files to copy");
}

/// The fixture book with `fault` planted fails with a message that contains all of `expected`.
#[track_caller]
pub fn found(fault: impl FnOnce(&Fixture), expected: &[&str]) {
    let book = Fixture::new();
    fault(&book);
    let failures = book.failures();
    for part in expected {
        assert!(failures.contains(part), "`{part}` is not in:\n{failures}");
    }
}
