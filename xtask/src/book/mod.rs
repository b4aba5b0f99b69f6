//! Building the book: the pages' own directives first, then mdBook.
//!
//! The pages are rewritten before mdBook sees them, from the very text of the author's file, so
//! that a failure has its right line. Each kind of rewriting is a module here; none touches code
//! blocks but `code`, which fills them.

mod addresses;
mod asides;
mod checks;
mod code;
mod directives;
mod exercises;
mod figures;
mod font;
mod formulas;
mod links;
mod markdown;
mod notebook;
mod page;
mod puzzles;
pub mod serve;
mod site;
mod svg;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lesson::files;
use mdbook_driver::MDBook;
use mdbook_driver::book::SectionNumber;
use walkdir::WalkDir;

use crate::failure::{self, Failure};
use crate::live;
use addresses::Addresses;
use page::{Draft, Page};

/// A book that was built.
pub struct Book {
    /// The folder of the built pages.
    pub output: PathBuf,
    /// Its pages, those of the notebooks too.
    pub pages: Addresses,
}

/// Builds the book of the workspace at `root`.
///
/// # Errors
///
/// When a formula, include, value, table, figure, link or notebook cannot be resolved; all of them
/// are listed.
pub fn build(root: &Path) -> Result<Book> {
    let (book, failures) = build_all(root)?;
    failure::none_of(&failures, "the book")?;
    Ok(book)
}

/// Builds the book and checks what was built.
///
/// # Errors
///
/// As [`build`], and when a check fails; all failures are listed.
pub fn check(root: &Path) -> Result<Book> {
    let (book, mut failures) = build_all(root)?;
    let chapters = root.join("chapters");
    failures.extend(unlisted_pages(root, &chapters, &book.pages)?);
    failures.extend(notebook::check(root, &chapters, &book.pages)?);
    failures.extend(site::check(root, &book.output, &book.pages)?);
    failure::none_of(&failures, "the book")?;
    Ok(book)
}

/// Builds the whole book even where pages fail, so that all failures are known.
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
        chapter.number = number(path).map(|number| SectionNumber::new([number]));
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

/// The number in the sidebar: the folder's own, so that one number means one thing; none for other
/// pages, not even a second one in such a folder.
fn number(page: &Path) -> Option<u32> {
    let folder = page.parent().filter(|_| page.ends_with("README.md"))?.to_str()?;
    let (number, _) = folder.split_once('-')?;
    number.parse().ok()
}

/// The page as mdBook gets it, and what is wrong with it.
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

/// Pasted code in Markdown files under `chapters` that are not pages of the book.
fn unlisted_pages(root: &Path, chapters: &Path, addresses: &Addresses) -> Result<Vec<Failure>> {
    let mut failures = Vec::new();
    for file in markdown_files(chapters) {
        let path = file.strip_prefix(chapters)?;
        if path == Path::new("SUMMARY.md") || addresses.of(&file).is_some() {
            continue;
        }
        let source = fs::read_to_string(&file)
            .with_context(|| format!("{} cannot be read", file.display()))?;
        let page = Page { root, chapters, path, addresses, source: &source };
        let mut draft = Draft::new(&page);
        code::expand(&mut draft, &markdown::events(&source));
        failures.extend(draft.finish().1);
    }
    Ok(failures)
}

fn markdown_files(chapters: &Path) -> impl Iterator<Item = PathBuf> {
    WalkDir::new(chapters)
        .sort_by_file_name()
        .into_iter()
        .filter_map(|entry| Some(entry.ok()?.into_path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
}

/// mdBook copies every file beside the pages; the book keeps the pictures among them.
fn remove_sources(source: &Path, output: &Path) -> Result<()> {
    for entry in WalkDir::new(source).contents_first(true) {
        let entry = entry.context("the pages' folder cannot be read")?;
        let copy = output.join(entry.path().strip_prefix(source)?);
        if entry.file_type().is_file() && !links::is_picture(&copy) && copy.is_file() {
            fs::remove_file(&copy)
                .with_context(|| format!("{} cannot be removed", copy.display()))?;
        } else if entry.file_type().is_dir() {
            // Refused where pages or pictures are left, which is right.
            let _ = fs::remove_dir(&copy);
        }
    }
    Ok(())
}
