//! Every chapter has its notebook, every notebook its chapter, and they link to each other.

use std::path::Path;

use anyhow::Result;

use super::{FOLDER, cells, chapter_of, files, read};
use crate::book::addresses::Addresses;
use crate::book::page::Page;
use crate::book::{links, markdown, number};
use crate::failure::Failure;

/// What is missing.
///
/// # Errors
///
/// When the notebooks or a page cannot be read.
pub fn check(root: &Path, chapters: &Path, addresses: &Addresses) -> Result<Vec<Failure>> {
    let mut failures = Vec::new();
    let beside = Path::new("..").join(FOLDER).join("any.ipynb");
    let page = |path| Page { root, chapters, path, addresses, source: "" };
    for file in files(root)? {
        let chapter = chapters.join(chapter_of(&file));
        let fault = if addresses.of(&chapter).is_none() {
            let chapter = page(Path::new("")).path_from_root(&chapter);
            Some(format!("the book has no page {chapter}, of which this would be the notebook"))
        } else {
            fault(&file, &chapter, &page(&beside))
        };
        failures.extend(fault.map(|what| failure(root, &file, what)));
    }
    for file in addresses.files() {
        let Ok(path) = file.strip_prefix(chapters) else { continue };
        // "Start here" says how to begin, and has nothing to play with.
        if path.ends_with("README.md") && number(path).is_some_and(|number| number > 0) {
            let what = unlinked(&page(path), file)?;
            failures.extend(what.map(|what| failure(root, file, what)));
        }
    }
    Ok(failures)
}

/// What is wrong with the beginning of the notebook in `file`. One that cannot be read fails the
/// build.
fn fault(file: &Path, chapter: &Path, page: &Page) -> Option<String> {
    let notebook = read(file).ok()?;
    if cells::links_back(page, chapter, &notebook) {
        return None;
    }
    let link = page.path_from_root(chapter);
    Some(format!("the first paragraph of the first cell does not link to ../{link}"))
}

/// What is missing in the page of the chapter in `file`.
fn unlinked(page: &Page, file: &Path) -> Result<Option<String>> {
    let folder = page.folder();
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let link = format!("{FOLDER}/{name}.ipynb");
    let notebook = page.root.join(&link);
    if !notebook.is_file() {
        return Ok(Some(format!("the chapter has no notebook {link}")));
    }
    let source = std::fs::read_to_string(file)?;
    let is_linked = links::leads_to(page, &markdown::events(&source), &notebook);
    Ok((!is_linked).then(|| format!("the page does not link to its notebook, ../../{link}")))
}

fn failure(root: &Path, file: &Path, what: String) -> Failure {
    Failure::new(file.strip_prefix(root).unwrap_or(file), None, what)
}
