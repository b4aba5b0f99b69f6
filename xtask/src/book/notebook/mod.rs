//! The notebooks as pages of the book, each below its chapter.
//!
//! A page is made of the notebook's file alone, so that the book builds without Python: nbconvert
//! would need the lab, and knows nothing of the book's links, formulas and checks.

mod cells;
mod outputs;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use mdbook_driver::book::{Chapter, SectionNumber};

use super::addresses::{self, Addresses};
use super::page::{Page, number};
use super::{links, markdown};
use crate::failure::Failure;
use crate::notebooks::{self, format::Notebook};

const FOLDER: &str = "notebooks";

pub struct Source {
    file: PathBuf,
    /// The chapter's page, relative to the folder of the pages.
    pub chapter: PathBuf,
}

/// Finds the notebooks whose chapter is among the pages, and adds them to the pages.
pub fn of_chapters(root: &Path, chapters: &Path, pages: &mut Addresses) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for file in notebooks::files(&root.join(FOLDER)) {
        let chapter = chapter_of(&file);
        if pages.contains_key(&chapters.join(&chapter)) {
            let source = Source { file, chapter };
            pages.insert(source.file.clone(), addresses::built(&source.path()));
            sources.push(source);
        }
    }
    Ok(sources)
}

/// The page of the notebook in `file`, by its name: the page of a chapter, or another page such as
/// `puzzles.md`.
fn chapter_of(file: &Path) -> PathBuf {
    let name = file.file_stem().unwrap_or_default();
    let chapter = Path::new(name).join("README.md");
    if number(&chapter).is_some() { chapter } else { Path::new(name).with_extension("md") }
}

/// Reads the notebook in `file`; the error has no path.
fn read(file: &Path) -> Result<Notebook, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    Notebook::parse(&text).map_err(|error| format!("{error:#}"))
}

/// Checks that each chapter has a notebook and each notebook a chapter, and that they link to each
/// other.
pub fn check(root: &Path, chapters: &Path, addresses: &Addresses) -> Result<Vec<Failure>> {
    let mut failures = Vec::new();
    let in_folder = Path::new("..").join(FOLDER).join("any.ipynb");
    let page = |path| Page { root, chapters, path, addresses, source: "" };
    for file in notebooks::files(&root.join(FOLDER)) {
        let chapter = chapters.join(chapter_of(&file));
        let fault = if !addresses.contains_key(&chapter) {
            let chapter = page(Path::new("")).path_from_root(&chapter);
            Some(format!("the book has no page {chapter}, of which this would be the notebook"))
        } else {
            fault(&file, &chapter, &page(&in_folder))
        };
        failures.extend(fault.map(|what| failure(root, &file, what)));
    }
    for file in addresses.keys() {
        let Ok(path) = file.strip_prefix(chapters) else { continue };
        // "Start here" has no notebook.
        if path.ends_with("README.md") && number(path).is_some_and(|number| number > 0) {
            let what = unlinked(&page(path), file)?;
            failures.extend(what.map(|what| failure(root, file, what)));
        }
    }
    Ok(failures)
}

/// A fault in the first paragraph of the notebook in `file`. A notebook that cannot be read fails
/// the build.
fn fault(file: &Path, chapter: &Path, page: &Page) -> Option<String> {
    let notebook = read(file).ok()?;
    if cells::links_back(page, chapter, &notebook) {
        return None;
    }
    let link = page.path_from_root(chapter);
    Some(format!("the first paragraph of the first cell does not link to ../{link}"))
}

/// A fault of the chapter's page in `file`: no notebook, or no link to it.
fn unlinked(page: &Page, file: &Path) -> Result<Option<String>> {
    let folder = page.folder();
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let link = format!("{FOLDER}/{name}.ipynb");
    let notebook = page.root.join(&link);
    if !notebook.is_file() {
        return Ok(Some(format!("the chapter has no notebook {link}")));
    }
    let source = fs::read_to_string(file)?;
    let is_linked = links::leads_to(page, &markdown::events(&source), &notebook);
    Ok((!is_linked).then(|| format!("the page does not link to its notebook, ../../{link}")))
}

fn failure(root: &Path, file: &Path, what: String) -> Failure {
    Failure::new(file.strip_prefix(root).unwrap_or(file), None, what)
}

impl Source {
    /// The source file of the notebook's page for mdBook, relative to the folder of the pages.
    fn path(&self) -> PathBuf {
        match self.chapter.file_stem() {
            Some(name) if !self.chapter.ends_with("README.md") => {
                self.chapter.with_file_name(format!("{}-notebook.md", name.to_string_lossy()))
            }
            _ => self.chapter.with_file_name("notebook.md"),
        }
    }

    /// Returns the notebook's page for mdBook, and the failures. `chapter` is the page of its
    /// chapter.
    pub fn page(&self, chapter: &Page) -> (String, Vec<Failure>) {
        // The path from the folder of the pages: links in the notebook are relative to its folder.
        let path = Path::new("..").join(FOLDER).join(self.file.file_name().unwrap_or_default());
        let page = Page { path: &path, source: "", ..*chapter };
        match read(&self.file) {
            Ok(notebook) => cells::page(&page, &chapter.file(), &notebook),
            Err(what) => {
                let file = page.path_from_root(&self.file);
                (String::new(), vec![Failure::new(&file, None, what)])
            }
        }
    }

    /// The entry of the notebook's page in the sidebar, below `chapter`.
    ///
    /// mdBook indents an entry by its number alone. The stylesheet hides that number.
    pub fn entry(&self, chapter: &Chapter, content: String) -> Chapter {
        let mut parents = chapter.parent_names.clone();
        parents.push(chapter.name.clone());
        let mut entry = Chapter::new("The notebook", content, self.path(), parents);
        let number = number(&self.chapter).unwrap_or_default();
        entry.number = Some(SectionNumber::new([number, 1]));
        // mdBook finds no file of this name.
        entry.source_path = None;
        entry
    }
}
