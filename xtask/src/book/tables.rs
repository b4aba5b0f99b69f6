//! The directives `{{#table}}` and `{{#checks}}`: tables of a run, and of other machines, and the
//! checks that a chapter's run made.

use std::fs;

use csv::StringRecord;
use lesson::Check;

use super::page::Page;
use super::svg::escape;
use crate::results::{self, FOLDER, TABLES};

/// The table of `file.csv` or of `file.csv column, column`, in a box that scrolls sideways.
pub fn table(page: &Page, arguments: &str) -> Result<String, String> {
    let (file, columns) = match arguments.split_once(char::is_whitespace) {
        Some((file, columns)) => (file, columns.split(',').map(str::trim).collect()),
        None => (arguments, Vec::new()),
    };
    if file.is_empty() {
        return Err("write `{{#table file.csv}}`".to_owned());
    }
    let (header, rows) = read(page, file).map_err(|error| format!("table `{file}`: {error}"))?;
    if rows.is_empty() {
        return Err(format!("table `{file}` has no rows"));
    }
    let chosen = choose(&header, &columns).map_err(|what| format!("table `{file}` {what}"))?;
    Ok(html(&header, &rows, &chosen))
}

/// Reads the header and the rows of a table of the chapter's run, or of `machine/file.csv`.
fn read(page: &Page, file: &str) -> lesson::Result<(StringRecord, Vec<StringRecord>)> {
    let results = page.folder().join(FOLDER);
    let (path, file) = match file.rsplit_once('/') {
        Some((machine, file)) => (results.join(machine).join(TABLES), file),
        None => (results.join("run.json"), file),
    };
    let json = fs::read_to_string(&path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let text = lesson::recorded::table(&json, file)?;
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    Ok((reader.headers()?.clone(), reader.records().collect::<csv::Result<_>>()?))
}

/// The indices of the named columns, or of all columns if no name is given.
fn choose(header: &StringRecord, columns: &[&str]) -> Result<Vec<usize>, String> {
    if columns.is_empty() {
        return Ok((0..header.len()).collect());
    }
    let place = |name: &&str| {
        header.iter().position(|column| column == *name).ok_or_else(|| {
            let all = header.iter().collect::<Vec<_>>().join(", ");
            format!("has no column `{name}`; it has {all}")
        })
    };
    columns.iter().map(place).collect()
}

fn html(header: &StringRecord, rows: &[StringRecord], columns: &[usize]) -> String {
    let is_number = |text: &str| text.is_empty() || text.parse::<f64>().is_ok();
    let class = |column: usize| {
        if rows.iter().all(|row| is_number(&row[column])) { r#" class="number""# } else { "" }
    };
    let line = |tag: &str, cells: &StringRecord| -> String {
        let cells = columns
            .iter()
            .map(|&column| format!("<{tag}{}>{}</{tag}>", class(column), escape(&cells[column])));
        format!("<tr>{}</tr>", cells.collect::<String>())
    };
    let body: String = rows.iter().map(|row| line("td", row)).collect();
    format!(
        r#"<div class="table-wrapper"><table><thead>{}</thead><tbody>{body}</tbody></table></div>"#,
        line("th", header)
    )
}

/// The table of the checks, followed by the run's command, machine and date.
pub fn checks(page: &Page, arguments: &str) -> Result<String, String> {
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
        let numbers = [0.0, 65537.0, 0.6543, -12.5, 1.234e-7].map(|value| number(Some(value)));
        assert_eq!(numbers, ["0", "65537", "0.654", "−12.5", "1.23 × 10<sup>−7</sup>"]);
        assert_eq!(number(None), "–");
    }
}
