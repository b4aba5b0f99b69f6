//! Nothing is left of the page's own notation: directives, formulas, empty blocks.

use std::sync::LazyLock;

use regex::Regex;
use scraper::Node;

use super::{BuiltPage, elements};
use crate::failure::Failure;

/// A formula that was not converted, in the text of a page.
static FORMULA: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$[^$\s][^$]*\$|\$\$|\\\(|\\\[").expect("a valid pattern"));

/// Checks one page.
pub fn check(page: &BuiltPage, failures: &mut Vec<Failure>) {
    for code in elements(&page.html, "main pre > code") {
        let text: String = code.text().collect();
        if text.trim().is_empty() {
            failures.push(page.failure("", "an empty block of code"));
        }
        report_directive(page, &text, failures);
    }
    for main in elements(&page.html, "main") {
        for node in main.descendants() {
            let Node::Text(text) = node.value() else { continue };
            let outside = node.ancestors().filter_map(|ancestor| ancestor.value().as_element());
            let is_prose = outside
                .into_iter()
                .all(|e| !matches!(e.name(), "code" | "samp" | "script" | "style"));
            if !is_prose {
                continue;
            }
            report_directive(page, text, failures);
            if let Some(formula) = FORMULA.find(text) {
                let formula = formula.as_str().trim();
                let what = format!("`{formula}` was not converted (is it inside raw HTML?)");
                failures.push(page.failure(formula, what));
            }
        }
    }
}

fn report_directive(page: &BuiltPage, text: &str, failures: &mut Vec<Failure>) {
    if let Some(at) = text.find("{{#") {
        let directive = text[at..].lines().next().unwrap_or_default();
        failures.push(page.failure(directive, format!("`{directive}` was left as it is")));
    }
}
