//! The addresses of the pages in the built book.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// The source files of the pages, and the pages built from them.
#[derive(Debug, Default)]
pub struct Addresses {
    /// The built page, relative to the folder of the book, of each file.
    built: BTreeMap<PathBuf, PathBuf>,
}

impl Addresses {
    /// Adds the page `built`, relative to the folder of the book, as the page built from `file`.
    pub fn insert(&mut self, file: PathBuf, built: PathBuf) {
        self.built.insert(file, built);
    }

    /// The number of pages.
    #[must_use]
    pub fn count(&self) -> usize {
        self.built.len()
    }

    /// The page built from `file`.
    #[must_use]
    pub fn of(&self, file: &Path) -> Option<&Path> {
        self.built.get(file).map(PathBuf::as_path)
    }

    /// The source file of the page `built`.
    #[must_use]
    pub fn source(&self, built: &Path) -> Option<&Path> {
        self.built.iter().find(|(_, page)| *page == built).map(|(file, _)| file.as_path())
    }

    /// The source files of all pages.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.built.keys().map(PathBuf::as_path)
    }
}

/// The page that mdBook builds from the Markdown file `page`: a `README.md` is its folder's index.
pub fn built(page: &Path) -> PathBuf {
    match page.file_name() {
        Some(name) if name == "README.md" => page.with_file_name("index.html"),
        _ => page.with_extension("html"),
    }
}

/// The address of `to` in a link of the page `from`. Both are relative to the folder of the book.
pub fn relative(from: &Path, to: &Path) -> String {
    let folder: Vec<Component> =
        from.parent().map(|folder| folder.components().collect()).unwrap_or_default();
    let target: Vec<Component> = to.components().collect();
    let shared = folder.iter().zip(&target).take_while(|(a, b)| a == b).count();
    let up = folder[shared..].iter().map(|_| "..".to_owned());
    let down = target[shared..].iter().map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_goes_up_only_as_far_as_it_must() {
        let link = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(link("index.html", "01-a/index.html"), "01-a/index.html");
        assert_eq!(link("01-a/index.html", "01-a/notebook.html"), "notebook.html");
        assert_eq!(link("01-a/notebook.html", "02-b/index.html"), "../02-b/index.html");
        assert_eq!(link("01-a/b/c.html", "index.html"), "../../index.html");
    }
}
