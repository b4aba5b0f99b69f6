//! Expands the directives `{{#value}}`, `{{#table}}`, `{{#figure}}`, `{{#live}}`, `{{#widget}}`,
//! `{{#yours}}`, `{{#puzzles}}` and `{{#checks}}`. [`super::code`] fills in `{{#include}}`.

use super::markdown::{self, Located};
use super::page::{Draft, Page};
use super::values::{self, Directive};
use super::{figures, tables};

/// Expands every directive of the page outside of code and formulas.
pub fn expand(draft: &mut Draft, events: &[Located]) {
    let page = draft.page;
    let code = markdown::code_ranges(events);
    for directive in values::find(page.source, 0..page.source.len()) {
        let start = directive.range.start;
        let in_code = code.iter().any(|range| range.contains(&start));
        let in_formula = events.iter().any(|(event, range)| {
            use pulldown_cmark::Event::{DisplayMath, InlineMath};
            matches!(event, InlineMath(_) | DisplayMath(_)) && range.contains(&start)
        });
        let expanded = match directive.name {
            "include" if in_code => continue,
            "include" => Err("an include belongs into a block, between fences".to_owned()),
            "value" if in_formula && !in_code => continue,
            name if in_code => Err(format!("`{{{{#{name}}}}}` is not expanded in code")),
            "value" => values::value(page, directive.arguments).map(|text| markdown::escape(&text)),
            "table" => block(page, &directive, tables::table),
            "figure" => block(page, &directive, figures::figure),
            "live" => block(page, &directive, figures::live),
            "widget" => block(page, &directive, figures::widget),
            "yours" => block(page, &directive, figures::yours),
            "puzzles" => block(page, &directive, figures::puzzles),
            "checks" => block(page, &directive, tables::checks),
            name => Err(format!("there is no directive `{{{{#{name}}}}}`")),
        };
        match expanded {
            Ok(text) => draft.replace(directive.range.clone(), text),
            Err(what) => draft.reject(directive.range.clone(), what),
        }
    }
}

/// Expands a directive to a block of HTML. Without a blank line around it, the text beside it would
/// be read as HTML.
fn block(
    page: &Page,
    directive: &Directive,
    html: impl Fn(&Page, &str) -> Result<String, String>,
) -> Result<String, String> {
    let Directive { name, range, .. } = directive;
    let (before, after) = (&page.source[..range.start], &page.source[range.end..]);
    let is_blank = |line: &str| line.trim().is_empty();
    let begins = before.is_empty() || before.ends_with('\n');
    let is_alone = begins && before.lines().next_back().is_none_or(is_blank);
    if !(is_alone && after.lines().take(2).all(is_blank)) {
        return Err(format!(
            "`{{{{#{name}}}}}` begins its line and has a blank line before and after"
        ));
    }
    html(page, directive.arguments)
}
