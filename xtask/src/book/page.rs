//! A page of the book, and its draft: the changes to its source.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use super::addresses::{self, Addresses};
use crate::failure::Failure;
use crate::workspace;

/// A page as its author wrote it, or a cell of a notebook.
pub struct Page<'a> {
    pub root: &'a Path,
    /// The folder of the pages.
    pub chapters: &'a Path,
    /// The page's file, relative to `chapters`.
    pub path: &'a Path,
    /// The addresses of all pages of the book.
    pub addresses: &'a Addresses,
    pub source: &'a str,
}

impl Page<'_> {
    pub fn file(&self) -> PathBuf {
        normalized(&self.chapters.join(self.path))
    }

    pub fn folder(&self) -> PathBuf {
        normalized(&self.chapters.join(self.path).join(".."))
    }

    /// The address of `built`, which is relative to the folder of the book, as the page writes it.
    pub fn address(&self, built: &Path) -> String {
        let file = self.file();
        addresses::relative(self.addresses.get(&file).map_or(Path::new(""), |page| page), built)
    }

    /// The file that `relative` names, as seen from the page.
    pub fn resolve(&self, relative: &str) -> PathBuf {
        normalized(&self.folder().join(relative))
    }

    /// `path` as seen from the root of the workspace, with slashes.
    pub fn path_from_root(&self, path: &Path) -> String {
        let path = path.strip_prefix(self.root).unwrap_or(path);
        path.to_string_lossy().replace('\\', "/")
    }

    /// The line of the byte `offset`, counted from 1.
    fn line(&self, offset: usize) -> usize {
        self.source[..offset].matches('\n').count() + 1
    }
}

/// `path` without `.` and `..`. The file need not exist.
pub fn normalized(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if result.file_name().is_some() => {
                result.pop();
            }
            other => result.push(other),
        }
    }
    result
}

/// The chapter's number that the sidebar shows: the number of the folder, so that one number means
/// one thing. `None` for other pages, even for a second page in such a folder.
pub fn number(page: &Path) -> Option<u32> {
    workspace::number_of(page.parent().filter(|_| page.ends_with("README.md"))?.to_str()?)
}

/// A page with the changes collected so far, each with its range of the source.
pub struct Draft<'a> {
    pub page: &'a Page<'a>,
    edits: Vec<(Range<usize>, String)>,
    failures: Vec<Failure>,
}

impl<'a> Draft<'a> {
    pub fn new(page: &'a Page<'a>) -> Self {
        Self { page, edits: Vec::new(), failures: Vec::new() }
    }

    pub fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.edits.push((range, text.into()));
    }

    /// True if an earlier change replaces all of `range`.
    pub fn is_replaced(&self, range: &Range<usize>) -> bool {
        self.edits.iter().any(|(done, _)| done.start <= range.start && range.end <= done.end)
    }

    /// Notes a failure at the byte `offset` of the source.
    pub fn fail(&mut self, offset: usize, what: impl Into<String>) {
        let file = self.page.path_from_root(&self.page.file());
        let line = Some(self.page.line(offset));
        // Paths from the root of the workspace, as the author knows them.
        let root = format!("{}{}", self.page.root.display(), std::path::MAIN_SEPARATOR);
        let what = what.into().replace(&root, "");
        self.failures.push(Failure::new(&file, line, what));
    }

    /// Notes a failure in `range`, and replaces it by a mark, so that the checks of the built page
    /// do not find it again.
    pub fn reject(&mut self, range: Range<usize>, what: impl Into<String>) {
        self.fail(range.start, what);
        self.replace(range, "⚠");
    }

    /// Returns the changed page, and the failures in the order of their lines.
    pub fn finish(mut self) -> (String, Vec<Failure>) {
        self.edits.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        self.failures.sort_by_key(|failure| failure.line);
        self.failures.dedup();
        let mut text = String::with_capacity(self.page.source.len());
        let mut done = 0;
        for (range, replacement) in &self.edits {
            // A change inside a larger one is dropped.
            if range.start < done {
                continue;
            }
            text.push_str(&self.page.source[done..range.start]);
            text.push_str(replacement);
            done = range.end;
        }
        text.push_str(&self.page.source[done..]);
        (text, self.failures)
    }
}
