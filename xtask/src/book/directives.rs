//! Expands the directives `{{#value}}`, `{{#table}}`, `{{#figure}}`, `{{#live}}`, `{{#widget}}`,
//! `{{#yours}}`, `{{#puzzles}}` and `{{#checks}}`. [`super::code`] fills in `{{#include}}`.

use super::markdown::{self, Located};
use super::page::{Draft, Page};
use super::values::{self, Directive};
use super::{checks, figures, puzzles, tables};

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

/// Expands a directive to a block of HTML. Without a blank line around it, the text beside it would
/// be read as HTML.
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
