//! Finds directives in the source of a page, and looks up the values that they name.

use std::ops::Range;

use super::page::Page;
use crate::results::{self, FOLDER};
use crate::workspace;

/// A directive and its place in the source.
#[derive(Debug, PartialEq, Eq)]
pub struct Directive<'a> {
    /// The word after `{{#`.
    pub name: &'a str,
    /// The text after the name.
    pub arguments: &'a str,
    /// The range from the opening to the closing braces.
    pub range: Range<usize>,
}

/// The directives in `range` of `source`, without those after a backslash.
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

/// The offset of the closing braces. A caption may hold braces, and ends at the first pair that
/// ends a line.
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

/// The text of a value: `key` of the page's own chapter, or `NN key` of chapter NN. A folder's name
/// may take the place of NN.
pub fn value(page: &Page, arguments: &str) -> Result<String, String> {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let (folder, key) = match words[..] {
        [key] => (page.folder(), key),
        [chapter, key] => {
            let folder = workspace::chapter_folder(page.chapters, chapter);
            (folder.map_err(|error| format!("value `{arguments}`: {error:#}"))?, key)
        }
        _ => return Err("write `{{#value key}}` or `{{#value NN key}}`".to_owned()),
    };
    let recorded = folder.join(FOLDER);
    let run =
        results::load(&recorded).map_err(|error| format!("value `{arguments}`: {error:#}"))?;
    match run.values.get(key) {
        Some(value) => Ok(value.text.clone()),
        None => {
            Err(format!("there is no value `{key}` in {}/run.json", page.path_from_root(&recorded)))
        }
    }
}

/// Inserts the values that `latex` names.
pub fn insert_values(page: &Page, latex: &str) -> Result<String, String> {
    let mut text = latex.to_owned();
    for directive in find(latex, 0..latex.len()).into_iter().rev() {
        if directive.name != "value" {
            return Err(format!("`{{{{#{}}}}}` does not belong into a formula", directive.name));
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
