//! The notebooks as pages of the book, each below its chapter.

mod cells;
mod html;
mod outputs;
mod pairs;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use mdbook_driver::book::{Chapter, SectionNumber};

use super::addresses::{self, Addresses};
use super::page::Page;
use crate::failure::Failure;
use crate::notebooks::{self, format::Notebook};
pub use pairs::check;

/// The folder of the notebooks.
const FOLDER: &str = "notebooks";

/// The notebook of a chapter.
pub struct Source {
    /// Its file.
    file: PathBuf,
    /// The chapter's page, relative to the folder of the pages.
    pub chapter: PathBuf,
}

/// The notebooks that have a chapter among the pages; they become pages themselves.
///
/// # Errors
///
/// When the folder of the notebooks cannot be read.
pub fn of_chapters(root: &Path, chapters: &Path, pages: &mut Addresses) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for file in files(root)? {
        let chapter = chapter_of(&file);
        if pages.of(&chapters.join(&chapter)).is_some() {
            let source = Source { file, chapter };
            pages.insert(source.file.clone(), addresses::built(&source.path()));
            sources.push(source);
        }
    }
    Ok(sources)
}

/// The page that the notebook in `file` belongs to by its name: of a chapter, or one of its own, as
/// `puzzles.md` is.
fn chapter_of(file: &Path) -> PathBuf {
    let name = file.file_stem().unwrap_or_default();
    let chapter = Path::new(name).join("README.md");
    if super::number(&chapter).is_some() { chapter } else { Path::new(name).with_extension("md") }
}

/// All notebooks, in their order; none where they have no folder.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join(FOLDER);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    notebooks::files(&folder)
}

/// The notebook in `file`; or what is wrong with it.
fn read(file: &Path) -> Result<Notebook, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    Notebook::parse(&text).map_err(|error| format!("{error:#}"))
}

impl Source {
    /// Where mdBook is told that the notebook's page is written, relative to the folder of the
    /// pages.
    fn path(&self) -> PathBuf {
        match self.chapter.file_stem() {
            Some(name) if !self.chapter.ends_with("README.md") => {
                self.chapter.with_file_name(format!("{}-notebook.md", name.to_string_lossy()))
            }
            _ => self.chapter.with_file_name("notebook.md"),
        }
    }

    /// The notebook's page as mdBook gets it, and what is wrong with it. `chapter` is the page of
    /// its chapter.
    pub fn page(&self, chapter: &Page) -> (String, Vec<Failure>) {
        // The file as seen from the folder of the pages: links in it are relative to its own
        // folder.
        let path = Path::new("..").join(FOLDER).join(self.file.file_name().unwrap_or_default());
        let page = Page { path: &path, source: "", ..*chapter };
        match read(&self.file) {
            Ok(notebook) => cells::page(&page, &chapter.file(), &notebook),
            Err(what) => {
                let file = page.path_from_root(&self.file);
                (String::new(), vec![Failure::new(Path::new(&file), None, what)])
            }
        }
    }

    /// The entry of the notebook's page in the sidebar, below `chapter`.
    ///
    /// Its number says that it is below: mdBook goes by that alone. The stylesheet does not show
    /// it.
    pub fn entry(&self, chapter: &Chapter, content: String) -> Chapter {
        let mut parents = chapter.parent_names.clone();
        parents.push(chapter.name.clone());
        let mut entry = Chapter::new("The notebook", content, self.path(), parents);
        let number = super::number(&self.chapter).unwrap_or_default();
        entry.number = Some(SectionNumber::new([number, 1]));
        // There is no such file.
        entry.source_path = None;
        entry
    }
}
