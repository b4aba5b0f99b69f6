//! The directive `{{#checks}}`: the table of the checks that a chapter's run made.

use lesson::Check;

use super::page::Page;
use super::svg::escape;
use crate::results::{self, FOLDER};

/// The table of the checks, followed by the run's command, machine and date.
pub fn table(page: &Page, arguments: &str) -> Result<String, String> {
    if !arguments.is_empty() {
        return Err("`{{#checks}}` takes no arguments".to_owned());
    }
    let run = results::load(&page.folder().join(FOLDER)).map_err(|error| format!("{error:#}"))?;
    if run.checks.is_empty() {
        return Err("the recorded run made no checks".to_owned());
    }
    let cell = |class: &str, text: &str| format!(r#"<td class="{class}">{text}</td>"#);
    let row = |check: &Check| {
        let verdict = if check.pass { "holds" } else { "fails" };
        let cells = [
            cell("name", &escape(&check.name)),
            cell("number", &number(check.value)),
            cell("number", &number(Some(check.limit))),
            cell(verdict, verdict),
        ];
        format!("<tr>{}</tr>", cells.concat())
    };
    let rows: String = run.checks.iter().map(row).collect();
    Ok(format!(
        concat!(
            r#"<div class="table-wrapper checks"><table><thead><tr><th>Check</th>"#,
            r#"<th class="number">Value</th><th class="number">Limit</th><th></th></tr></thead>"#,
            r#"<tbody>{}</tbody></table></div><p class="recorded">Recorded on {} by "#,
            r#"<code>{}</code>, engine <code>{}</code>, on {}.</p>"#
        ),
        rows,
        escape(&run.date),
        escape(&run.command),
        escape(&run.engine),
        escape(&run.machine)
    ))
}

/// A number in at most four digits, with a power of ten if it is very large or small.
fn number(value: Option<f64>) -> String {
    let Some(value) = value else { return "–".to_owned() };
    let size = value.abs();
    if value == value.trunc() && size < 1e6 {
        return format!("{value}").replace('-', "−");
    }
    if (1e-3..1e6).contains(&size) {
        let before = size.log10().floor().max(0.0) as usize;
        let text = format!("{value:.*}", 3_usize.saturating_sub(before));
        let text = if text.contains('.') { text.trim_end_matches(['0', '.']) } else { &text };
        return text.replace('-', "−");
    }
    let text = format!("{value:.2e}").replace('-', "−");
    match text.split_once('e') {
        Some((digits, power)) => format!("{digits} × 10<sup>{power}</sup>"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(Some(0.0)), "0");
        assert_eq!(number(Some(65537.0)), "65537");
        assert_eq!(number(Some(0.6543)), "0.654");
        assert_eq!(number(Some(-12.5)), "−12.5");
        assert_eq!(number(Some(1.234e-7)), "1.23 × 10<sup>−7</sup>");
        assert_eq!(number(None), "–");
    }
}
