//! Checking the built book: what a reader's browser would meet.

mod leftovers;
mod references;
mod remote;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use scraper::{Html, Selector};
use walkdir::WalkDir;

use super::addresses::Addresses;
use crate::failure::Failure;

/// A built page.
struct BuiltPage {
    /// Its file, relative to the folder of the book.
    path: PathBuf,
    /// The page, parsed as a browser does.
    html: Html,
    /// All ids in it.
    ids: BTreeSet<String>,
    /// The file it was built from, relative to the root of the workspace, and its text; nothing for
    /// pages of mdBook's own.
    source: Option<(PathBuf, String)>,
}

/// The built book.
struct Site {
    folder: PathBuf,
    pages: Vec<BuiltPage>,
}

/// Everything that is wrong in the book at `folder`, whose pages were built from the files in
/// `addresses`.
pub fn check(root: &Path, folder: &Path, addresses: &Addresses) -> Result<Vec<Failure>> {
    let site = Site::load(root, folder, addresses)?;
    let mut failures = Vec::new();
    for page in &site.pages {
        references::check(&site, page, &mut failures);
        leftovers::check(page, &mut failures);
        remote::check_page(page, &mut failures);
    }
    remote::check_files(&site, &mut failures)?;
    Ok(failures)
}

impl Site {
    fn load(root: &Path, folder: &Path, addresses: &Addresses) -> Result<Self> {
        let mut pages = Vec::new();
        for file in files(folder, "html") {
            let text = read(&file)?;
            let path = file.strip_prefix(folder)?.to_owned();
            let html = Html::parse_document(&text);
            let ids = elements(&html, "[id]")
                .filter_map(|element| element.value().id())
                .map(str::to_owned)
                .collect();
            let source = addresses.source(&path).and_then(|file| source(root, file));
            pages.push(BuiltPage { path, html, ids, source });
        }
        Ok(Self { folder: folder.to_owned(), pages })
    }

    /// The built page at `path`, relative to the folder of the book.
    fn page(&self, path: &Path) -> Option<&BuiltPage> {
        self.pages.iter().find(|page| page.path == path)
    }
}

impl BuiltPage {
    /// A failure in this page: in its source where there is one, at the line that holds `sought`.
    fn failure(&self, sought: &str, what: impl Into<String>) -> Failure {
        let Some((file, text)) = &self.source else {
            return Failure::new(&self.path, None, what);
        };
        let line = (!sought.is_empty())
            .then(|| text.lines().position(|line| line.contains(sought)))
            .flatten();
        Failure::new(file, line.map(|line| line + 1), what)
    }
}

/// The path of `file` from the root of the workspace, and its text.
fn source(root: &Path, file: &Path) -> Option<(PathBuf, String)> {
    Some((file.strip_prefix(root).ok()?.to_owned(), fs::read_to_string(file).ok()?))
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .filter_map(|entry| Some(entry.ok()?.into_path()))
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))
}

/// The elements of `html` that match `selector`.
fn elements<'a>(
    html: &'a Html,
    selector: &str,
) -> impl Iterator<Item = scraper::ElementRef<'a>> + use<'a> {
    let selector = Selector::parse(selector).expect("a valid selector");
    html.select(&selector).collect::<Vec<_>>().into_iter()
}
