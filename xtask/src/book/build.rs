//! Builds the book: rewrites the pages, lets mdBook render them, and checks the result.

use fs_err as fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lesson::files;
use mdbook_driver::MDBook;
use mdbook_driver::book::SectionNumber;
use walkdir::WalkDir;

use super::addresses::{self, Addresses};
use super::page::{self, Draft, Page};
use super::{
    asides, code, directives, exercises, figures, formulas, links, markdown, notebook, site,
};
use crate::failure::{self, Failure};
use crate::{live, workspace};

/// A built book.
pub struct Book {
    /// The folder of the built pages.
    pub output: PathBuf,
    /// Its pages, including the pages of the notebooks.
    pub pages: Addresses,
}

/// Builds the book of the workspace at `root`.
///
/// The error lists all formulas, includes, values, tables, figures, links and notebooks that cannot
/// be resolved.
pub fn build(root: &Path) -> Result<Book> {
    let (book, failures) = build_all(root)?;
    failure::none_of(&failures, "the book")?;
    Ok(book)
}

/// Builds the book and checks the built pages. The error lists all failures.
pub fn check(root: &Path) -> Result<Book> {
    let (book, mut failures) = build_all(root)?;
    let chapters = root.join("chapters");
    failures.extend(unlisted_pages(root, &chapters, &book.pages)?);
    failures.extend(notebook::check(root, &chapters, &book.pages)?);
    failures.extend(site::check(root, &book.output, &book.pages)?);
    failure::none_of(&failures, "the book")?;
    Ok(book)
}

/// Builds the whole book even if pages fail, so that all failures are known.
fn build_all(root: &Path) -> Result<(Book, Vec<Failure>)> {
    let mut mdbook = MDBook::load(root).context("the book cannot be loaded")?;
    let source = mdbook.source_dir();
    let output = mdbook.build_dir_for("html");
    let mut pages = Addresses::default();
    for path in mdbook.book.chapters().filter_map(|chapter| chapter.source_path.as_ref()) {
        pages.insert(page::normalized(&source.join(path)), addresses::built(path));
    }
    let notebooks = notebook::of_chapters(root, &source, &mut pages)?;

    let mut failures = Vec::new();
    let mut pages_are_live = false;
    mdbook.book.for_each_chapter_mut(|chapter| {
        let Some(path) = &chapter.source_path else { return };
        let page =
            Page { root, chapters: &source, path, addresses: &pages, source: &chapter.content };
        let (content, wrong) = rewrite(&page);
        failures.extend(wrong);
        let script = content.contains(figures::LIVE).then(|| figures::script(&page));
        if let Some(notebook) = notebooks.iter().find(|one| one.chapter == *path) {
            let (content, wrong) = notebook.page(&page);
            failures.extend(wrong);
            chapter.sub_items.push(notebook.entry(chapter, content).into());
        }
        chapter.number = page::number(path).map(|number| SectionNumber::new([number]));
        chapter.content = content;
        if let Some(script) = script {
            chapter.content.insert_str(0, &script);
            pages_are_live = true;
        }
    });
    files::replace_folder(&output, |new| {
        mdbook.config.build.build_dir = new.to_owned();
        mdbook.build()?;
        remove_sources(&source, new)?;
        if pages_are_live { live::write(root, new) } else { Ok(()) }
    })
    .context("the book cannot be built")?;
    Ok((Book { output, pages }, failures))
}

/// Rewrites a page for mdBook; returns the new text and the failures.
fn rewrite(page: &Page) -> (String, Vec<Failure>) {
    let events = markdown::events(page.source);
    let mut draft = Draft::new(page);
    // Directives first: a formula in a caption belongs to its figure.
    directives::expand(&mut draft, &events);
    code::expand(&mut draft, &events);
    formulas::convert_all(&mut draft, &events);
    links::rewrite(&mut draft, &events);
    asides::mark(&mut draft, &events);
    exercises::check(&mut draft, &events);
    draft.finish()
}

/// Finds pasted code in the Markdown files under `chapters` that are not pages of the book.
fn unlisted_pages(root: &Path, chapters: &Path, addresses: &Addresses) -> Result<Vec<Failure>> {
    let mut failures = Vec::new();
    for file in workspace::files(chapters, "md", usize::MAX) {
        let path = file.strip_prefix(chapters)?;
        if path == Path::new("SUMMARY.md") || addresses.contains_key(&file) {
            continue;
        }
        let source = fs::read_to_string(&file)?;
        let page = Page { root, chapters, path, addresses, source: &source };
        let mut draft = Draft::new(&page);
        code::expand(&mut draft, &markdown::events(&source));
        failures.extend(draft.finish().1);
    }
    Ok(failures)
}

/// Removes the files that mdBook copies from the folders of the pages, apart from pictures.
fn remove_sources(source: &Path, output: &Path) -> Result<()> {
    for entry in WalkDir::new(source).contents_first(true) {
        let entry = entry.context("the pages' folder cannot be read")?;
        let copy = output.join(entry.path().strip_prefix(source)?);
        if entry.file_type().is_file() && !links::is_picture(&copy) && copy.is_file() {
            fs::remove_file(&copy)?;
        } else if entry.file_type().is_dir() {
            // A folder with pages or pictures in it is not empty, and stays.
            let _ = fs::remove_dir(&copy);
        }
    }
    Ok(())
}
