//! Fills blocks of code from the source files of the crates, by anchors.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

use linrec::kernels;
use regex::Regex;

use super::markdown::{self, CodeBlock, Located};
use super::page::{Draft, Page};
use super::values::{self, Directive};
use crate::pattern;

/// The languages whose code is compiled in this project, and so is never pasted.
const COMPILED: [&str; 6] = ["rust", "cuda", "cu", "cpp", "c++", "c"];

static ANCHOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"ANCHOR:\s*([\w-]+)"));
static ANCHOR_END: LazyLock<Regex> = LazyLock::new(|| pattern(r"ANCHOR_END:\s*([\w-]+)"));
/// The heading of a step in the output of a chapter's run, which is underlined.
static STEP: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\d+\.\d+ (.+)$"));

/// Fills every block of the page.
pub fn expand(draft: &mut Draft, events: &[Located]) {
    let source = draft.page.source;
    for block in markdown::code_blocks(events) {
        let compiled = COMPILED.contains(&block.language.as_str());
        if compiled && is_pasted(&source[block.range.clone()]) {
            draft.fail(
                block.range.start,
                format!("pasted {} code; write `{{{{#include file:anchor}}}}`", block.language),
            );
        }
        for directive in values::find(source, block.range.clone()) {
            if directive.name == "include" {
                include(draft, &directive, compiled);
            }
        }
    }
    name_all_for_highlighting(draft, events);
}

/// Sets the language of every block to one that the book's highlighter knows.
pub fn name_all_for_highlighting(draft: &mut Draft, events: &[Located]) {
    for CodeBlock { language, range } in markdown::code_blocks(events) {
        let known = match language.as_str() {
            "cuda" | "cu" => "cpp",
            "ptx" => "text",
            _ => continue,
        };
        if let Some(at) = draft.page.source[range.clone()].find(&language) {
            let start = range.start + at;
            draft.replace(start..start + language.len(), known);
        }
    }
}

/// True if a block holds more than includes.
fn is_pasted(block: &str) -> bool {
    let mut inside: Vec<&str> = block.lines().skip(1).collect();
    inside.pop();
    let is_include = |line: &&str| {
        let line = line.trim_start_matches(['>', ' ']).trim_end();
        line.is_empty() || (line.starts_with("{{#include ") && line.ends_with("}}"))
    };
    inside.is_empty() || !inside.iter().all(is_include)
}

fn include(draft: &mut Draft, directive: &Directive, compiled: bool) {
    match included(draft.page, directive, compiled) {
        Ok(text) => draft.replace(directive.range.clone(), text),
        Err(what) => draft.reject(directive.range.clone(), what),
    }
}

/// The text that replaces the directive in the block.
fn included(page: &Page, directive: &Directive, compiled: bool) -> Result<String, String> {
    let argument = directive.arguments;
    let prefix = line_prefix(page.source, &directive.range)?;
    let (file, anchor) = match argument.split_once(':') {
        Some((_, anchor)) if anchor.starts_with(|c: char| c.is_ascii_digit() || c == ':') => {
            return Err(format!("include `{argument}` counts lines; name an anchor"));
        }
        Some((file, anchor)) => (file, Some(anchor)),
        None if compiled => return Err(format!("include `{argument}` names no anchor")),
        None => (argument, None),
    };
    let path = page.resolve(file);
    let text = fs::read_to_string(&path).or_else(|error| {
        // A planted mistake is not a file: the library makes its text.
        let made = path.strip_prefix(page.root.join("kernels")).ok().and_then(Path::to_str);
        let made = made.and_then(kernels::source).filter(|_| file.contains("kernels/broken/"));
        made.map(str::to_owned).ok_or_else(|| format!("include `{argument}`: {error}"))
    })?;
    let text = match anchor {
        Some(anchor) => {
            let mut lines =
                anchored(&text, anchor).map_err(|what| format!("include `{argument}`: {what}"))?;
            without_number(&mut lines);
            lines
        }
        None => text.lines().filter(|line| !is_marker(line)).map(str::to_owned).collect(),
    };
    if text.iter().all(|line| line.trim().is_empty()) {
        return Err(format!("include `{argument}` is empty"));
    }
    Ok(dedented(&text).join(&format!("\n{prefix}")))
}

/// The text before the include in its line, which every included line gets: the indentation of a
/// list, or the marks of a quotation.
fn line_prefix<'a>(source: &'a str, range: &Range<usize>) -> Result<&'a str, String> {
    let start = source[..range.start].rfind('\n').map_or(0, |newline| newline + 1);
    let prefix = &source[start..range.start];
    let rest = source[range.end..].lines().next().unwrap_or_default();
    if prefix.trim_matches(['>', ' ']).is_empty() && rest.trim().is_empty() {
        Ok(prefix)
    } else {
        Err("an include has a line to itself".to_owned())
    }
}

/// The lines between the marks of `anchor`, without the marks of other anchors.
fn anchored(text: &str, anchor: &str) -> Result<Vec<String>, String> {
    let names = |regex: &Regex, line: &str| {
        regex.captures(line).is_some_and(|captures| &captures[1] == anchor)
    };
    let starts = text.lines().filter(|line| names(&ANCHOR, line)).count();
    match starts {
        0 => return Err(format!("no `ANCHOR: {anchor}` in the file")),
        1 => {}
        _ => return Err(format!("`ANCHOR: {anchor}` is {starts} times in the file")),
    }
    let lines: Vec<_> = text.lines().skip_while(|line| !names(&ANCHOR, line)).skip(1).collect();
    let end = lines.iter().position(|line| names(&ANCHOR_END, line));
    let end = end.ok_or_else(|| format!("no `ANCHOR_END: {anchor}` after its start"))?;
    let inside = lines[..end].iter().filter(|line| !is_marker(line));
    Ok(inside.map(|line| (*line).to_owned()).collect())
}

/// Removes the number from the heading of a run's step: a page shows some of the steps, in another
/// order.
fn without_number(lines: &mut [String]) {
    let Some(at) = lines.iter().position(|line| !line.trim().is_empty()) else { return };
    let [heading, underline, ..] = &mut lines[at..] else { return };
    let Some(title) = STEP.captures(heading).map(|captures| captures[1].to_owned()) else { return };
    if !underline.is_empty() && underline.chars().all(|c| c == '─') {
        *underline = "─".repeat(title.chars().count());
        *heading = title;
    }
}

fn is_marker(line: &str) -> bool {
    ANCHOR.is_match(line) || ANCHOR_END.is_match(line)
}

/// The lines without their common indentation, and without blank lines around them.
fn dedented(lines: &[String]) -> Vec<&str> {
    let filled = |line: &&String| !line.trim().is_empty();
    let indentation = |line: &String| line.len() - line.trim_start_matches(' ').len();
    let shared = lines.iter().filter(filled).map(indentation).min().unwrap_or(0);
    let first = lines.iter().position(|line| filled(&line)).unwrap_or(0);
    let last = lines.iter().rposition(|line| filled(&line)).map_or(0, |last| last + 1);
    lines[first..last].iter().map(|line| line.get(shared..).unwrap_or("")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_a_run_has_no_number_on_a_page() {
        let shown = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            without_number(&mut lines);
            lines.join("\n")
        };
        assert_eq!(shown("\n1.11 Bits\n─────────\n\n1.5 ms\n"), "\nBits\n────\n\n1.5 ms");
        for other in ["", "1.5 ms", "1.5 ms\n", "1.11 Bits\n1.12 More", "Bits\n────"] {
            assert_eq!(shown(other), other.trim_end());
        }
    }

    #[test]
    fn an_anchor_must_be_there_and_end() {
        let file = "// ANCHOR: outer\n// ANCHOR_END: outer\n// ANCHOR: open\n";
        assert_eq!(anchored(file, "outer"), Ok(Vec::new()));
        assert!(anchored(file, "open").unwrap_err().contains("no `ANCHOR_END: open`"));
        // `out` is the beginning of another name, not the name.
        assert!(anchored(file, "out").unwrap_err().contains("no `ANCHOR: out`"));
    }

    #[test]
    fn only_includes_are_not_pasted() {
        assert!(!is_pasted("```rust\n{{#include a.rs:b}}\n\n{{#include a.rs:c}}\n```"));
        assert!(!is_pasted("> ```rust\n> {{#include a.rs:b}}\n> ```"));
        assert!(is_pasted("```rust\nlet a = 1;\n```"));
        assert!(is_pasted("```rust\n{{#include a.rs:b}}\nlet a = 1;\n```"));
        assert!(is_pasted("```rust\n```"));
    }
}
