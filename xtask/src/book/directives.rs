//! The directives `{{#value}}`, `{{#table}}`, `{{#figure}}`, `{{#live}}`, `{{#widget}}`,
//! `{{#yours}}`, `{{#puzzles}}` and `{{#checks}}`.
//!
//! `{{#include}}` is found here and filled in by [`super::code`].

use std::ops::Range;

use super::markdown::{self, Located};
use super::page::{Draft, Page};
use super::{checks, figures, puzzles, tables};
use crate::results::{FOLDER, Run};
use crate::workspace;

/// A directive and its place in the source.
#[derive(Debug, PartialEq, Eq)]
pub struct Directive<'a> {
    /// The word behind `{{#`.
    pub name: &'a str,
    /// What follows the name.
    pub arguments: &'a str,
    /// From the opening to the closing braces.
    pub range: Range<usize>,
}

/// The directives in `range` of `source`, those with a backslash before them left out.
pub fn find(source: &str, range: Range<usize>) -> Vec<Directive<'_>> {
    const OPEN: &str = "{{#";
    let mut found = Vec::new();
    let mut from = range.start;
    while let Some(at) = source[from..range.end].find(OPEN) {
        let start = from + at;
        from = start + OPEN.len();
        if source[..start].ends_with('\\') {
            continue;
        }
        let rest = &source[from..range.end];
        let name = rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        let Some(length) = length(rest, name) else { continue };
        let arguments = rest[name.len()..length].trim();
        let end = from + length + "}}".len();
        found.push(Directive { name, arguments, range: start..end });
        from = end;
    }
    found
}

/// Where the closing braces are. A caption may hold braces of its own: it ends at the first pair
/// that ends a line.
fn length(rest: &str, name: &str) -> Option<usize> {
    if !["figure", "live", "widget"].contains(&name) {
        return rest.find("}}");
    }
    let ends_line = |at: usize| {
        let behind = rest[at + 2..].trim_start_matches([' ', '\t', '\r']);
        behind.is_empty() || behind.starts_with('\n')
    };
    rest.match_indices("}}").map(|(at, _)| at).find(|&at| ends_line(at))
}

/// Expands every directive of the page that stands outside of code and formulas.
pub fn expand(draft: &mut Draft, events: &[Located]) {
    let page = draft.page;
    let code = markdown::code_ranges(events);
    for directive in find(page.source, 0..page.source.len()) {
        let start = directive.range.start;
        let in_code = code.iter().any(|range| range.contains(&start));
        let in_formula = events.iter().any(|(event, range)| {
            use pulldown_cmark::Event::{DisplayMath, InlineMath};
            matches!(event, InlineMath(_) | DisplayMath(_)) && range.contains(&start)
        });
        let expanded = match directive.name {
            "include" if in_code => continue,
            "include" => Err("an include stands in a block between fences".to_owned()),
            "value" if in_formula && !in_code => continue,
            name if in_code => Err(format!("`{{{{#{name}}}}}` is not expanded in code")),
            "value" => value(page, directive.arguments).map(|text| markdown::escape(&text)),
            "table" => block(page, &directive, tables::table),
            "figure" => block(page, &directive, figures::figure),
            "live" => block(page, &directive, figures::live),
            "widget" => block(page, &directive, figures::widget),
            "yours" => block(page, &directive, figures::yours),
            "puzzles" => block(page, &directive, puzzles::all),
            "checks" => block(page, &directive, checks::table),
            name => Err(format!("there is no directive `{{{{#{name}}}}}`")),
        };
        match expanded {
            Ok(text) => draft.replace(directive.range.clone(), text),
            Err(what) => draft.reject(directive.range.clone(), what),
        }
    }
}

/// A directive that gives a block of HTML: what follows without a blank line would not be Markdown
/// any more.
fn block(
    page: &Page,
    directive: &Directive,
    html: impl Fn(&Page, &str) -> Result<String, String>,
) -> Result<String, String> {
    let before = page.source[..directive.range.start].lines().rev().take(2).collect::<Vec<_>>();
    let after = page.source[directive.range.end..].lines().take(2).collect::<Vec<_>>();
    let at_line_start = page.source[..directive.range.start].ends_with('\n');
    let blank = |line: Option<&&str>| line.is_none_or(|line| line.trim().is_empty());
    let alone = (directive.range.start == 0 || at_line_start)
        && blank(before.first())
        && blank(after.first())
        && blank(after.get(1));
    if !alone {
        let name = directive.name;
        return Err(format!(
            "`{{{{#{name}}}}}` begins its line and has a blank line before and after"
        ));
    }
    html(page, directive.arguments)
}

/// The text of a value: `key` of the page's own chapter, or `NN key` of chapter NN, which may be
/// the name of a folder.
fn value(page: &Page, arguments: &str) -> Result<String, String> {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let (folder, key) = match words[..] {
        [key] => (page.folder(), key),
        [chapter, key] => {
            let folder = workspace::chapter_folder(page.chapters, chapter);
            (folder.map_err(|error| format!("value `{arguments}`: {error:#}"))?, key)
        }
        _ => return Err("write `{{#value key}}` or `{{#value NN key}}`".to_owned()),
    };
    let results = folder.join(FOLDER);
    let run = Run::load(&results).map_err(|error| format!("value `{arguments}`: {error:#}"))?;
    match run.values.get(key) {
        Some(value) => Ok(value.text.clone()),
        None => {
            Err(format!("there is no value `{key}` in {}/run.json", page.path_from_root(&results)))
        }
    }
}

/// `latex` with its values put in.
pub fn insert_values(page: &Page, latex: &str) -> Result<String, String> {
    let mut text = latex.to_owned();
    for directive in find(latex, 0..latex.len()).into_iter().rev() {
        if directive.name != "value" {
            return Err(format!("`{{{{#{}}}}}` cannot stand in a formula", directive.name));
        }
        text.replace_range(directive.range, &value(page, directive.arguments)?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_found_with_their_places() {
        let source = r"a {{#value key}} \{{#value no}} {{#table t.csv a, b}}";
        let found = find(source, 0..source.len());
        let names: Vec<_> = found.iter().map(|d| (d.name, d.arguments)).collect();
        assert_eq!(names, [("value", "key"), ("table", "t.csv a, b")]);
        assert_eq!(&source[found[0].range.clone()], "{{#value key}}");
    }

    #[test]
    fn a_caption_may_hold_braces() {
        let source = "{{#figure a.svg Here $x_{a_{b}}$ is\ntwo lines.}}\n\nmore }}\n";
        let found = find(source, 0..source.len());
        assert_eq!(found[0].arguments, "a.svg Here $x_{a_{b}}$ is\ntwo lines.");
    }
}
