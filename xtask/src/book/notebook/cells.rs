//! The cells of a notebook as Markdown for mdBook.

use std::ops::Range;
use std::path::Path;

use pulldown_cmark::{Event, Tag};

use super::outputs;
use crate::book::markdown::{self, Located};
use crate::book::page::{Draft, Page, number};
use crate::book::{asides, code, formulas, links};
use crate::failure::Failure;
use crate::notebooks::format::{Cell, Kind, Notebook};
use crate::notebooks::language::Language;

/// Returns the page of `notebook` and its failures. `page` has the notebook's path, and `chapter`
/// is the file of its chapter's page.
pub fn page(page: &Page, chapter: &Path, notebook: &Notebook) -> (String, Vec<Failure>) {
    let mut parts = Vec::new();
    let mut failures = Vec::new();
    for (at, cell) in notebook.cells.iter().enumerate() {
        let (part, wrong) = match cell.kind {
            Kind::Markdown => text(page, cell, (at == 0).then_some(chapter)),
            Kind::Code { .. } => code(page, cell, notebook.language()),
            // Raw cells are of no use to a reader.
            Kind::Raw => continue,
        };
        parts.push(part);
        failures.extend(wrong);
    }
    (parts.join("\n\n"), failures)
}

/// True if the paragraph below the notebook's title links to `chapter`.
pub fn links_back(page: &Page, chapter: &Path, notebook: &Notebook) -> bool {
    notebook.cells.first().is_some_and(|first| {
        let events = markdown::events(&first.source.0);
        first.kind == Kind::Markdown && introduction(page, &events, chapter).is_some()
    })
}

/// The range of the notebook's first paragraph, if it links to `chapter`. It explains the notebook
/// to a reader in JupyterLab.
fn introduction(page: &Page, events: &[Located], chapter: &Path) -> Option<Range<usize>> {
    let is_paragraph = |event: &Event| matches!(event, Event::Start(Tag::Paragraph));
    let start = events.iter().position(|(event, _)| is_paragraph(event))?;
    let range = &events[start].1;
    let end = events[start..].iter().position(|(_, piece)| piece.start >= range.end);
    let paragraph = &events[start..end.map_or(events.len(), |end| start + end)];
    links::leads_to(page, paragraph, chapter).then(|| range.clone())
}

/// A cell of Markdown. In the first one, which comes with the chapter, a paragraph for readers of
/// the book replaces the paragraph for readers of the notebook.
fn text(page: &Page, cell: &Cell, chapter: Option<&Path>) -> (String, Vec<Failure>) {
    let page = Page { source: &cell.source.0, ..*page };
    let events = markdown::events(page.source);
    let mut draft = Draft::new(&page);
    if let Some(chapter) = chapter
        && let Some(range) = introduction(&page, &events, chapter)
    {
        draft.replace(range, about(&page, chapter) + "\n\n");
    }
    code::name_all_for_highlighting(&mut draft, &events);
    formulas::convert_all(&mut draft, &events);
    links::rewrite(&mut draft, &events);
    asides::mark(&mut draft, &events);
    let (text, failures) = draft.finish();
    (text, failures.into_iter().map(|failure| in_cell(cell, failure)).collect())
}

fn about(page: &Page, chapter: &Path) -> String {
    let address = page.addresses.get(chapter).map(|built| page.address(built)).unwrap_or_default();
    let number = chapter.strip_prefix(page.chapters).ok().and_then(number);
    // Other pages are named by their subject, such as `puzzles.md`.
    let subject = chapter.file_stem().unwrap_or_default().to_string_lossy();
    let name = number.map_or(format!("the {subject}"), |number| format!("chapter {number}"));
    format!(
        "<p class=\"about\">The notebook of <a href=\"{address}\">{name}</a>, with the outputs of its last run. \
         <code>cargo lab</code> opens it in JupyterLab, where you change it and run it.</p>"
    )
}

/// A cell of code, and its outputs in a box below.
fn code(page: &Page, cell: &Cell, language: Language) -> (String, Vec<Failure>) {
    let source = cell.source.0.trim_end();
    let block = if source.is_empty() { String::new() } else { fenced(source, language) };
    let (outputs, failures) = match outputs::of_cell(cell) {
        Ok(outputs) => (outputs, Vec::new()),
        Err(what) => {
            let file = page.path_from_root(&page.file());
            let failure = Failure::new(&file, None, what);
            (String::new(), vec![in_cell(cell, failure)])
        }
    };
    (format!("<div class=\"cell\">\n\n{block}\n\n{outputs}\n\n</div>"), failures)
}

/// A block of code between fences that are longer than any in the code.
fn fenced(source: &str, language: Language) -> String {
    let longest = source.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let lines = source.lines().map(|line| {
        // In Rust mdBook hides lines that begin with `# `, as rustdoc does, and reads `##` as `#`.
        let code = line.trim_start();
        let is_read = code == "#" || code.starts_with("# ") || code.starts_with("##");
        let mark = if is_read && language == Language::Rust { "#" } else { "" };
        format!("{}{mark}{code}\n", &line[..line.len() - code.len()])
    });
    format!("{fence}{}\n{}{fence}", language.fence(), lines.collect::<String>())
}

/// The failure with the cell's name, since the author does not see the lines of a notebook's file.
fn in_cell(cell: &Cell, failure: Failure) -> Failure {
    let line = failure.line.map(|line| format!(", line {line}")).unwrap_or_default();
    let what = format!("cell {}{line}: {}", cell.id, failure.what);
    Failure { line: None, what, ..failure }
}

#[cfg(test)]
mod tests {
    use super::{Language, fenced};

    #[test]
    fn code_is_shown_as_it_is() {
        let (rust, python) = (Language::Rust, Language::Python);
        assert_eq!(fenced("let a = 1;", rust), "```rust\nlet a = 1;\n```");
        assert_eq!(fenced("# a\nb = 1", python), "```python\n# a\nb = 1\n```");
        assert_eq!(fenced("// ```` and `", rust), "`````rust\n// ```` and `\n`````");
        let source = "#[test]\n  # hidden\n#\n#include \"a\"\n## b";
        assert_eq!(
            fenced(source, rust),
            "```rust\n#[test]\n  ## hidden\n##\n#include \"a\"\n### b\n```"
        );
    }
}
