//! The directive `{{#table}}`: tables of a run, and of other machines.

use std::fs;

use super::page::Page;
use super::svg::escape;
use crate::results::{FOLDER, TABLES};

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
fn read(page: &Page, file: &str) -> lesson::Result<(Vec<String>, Vec<Vec<String>>)> {
    let results = page.folder().join(FOLDER);
    let (path, file) = match file.rsplit_once('/') {
        Some((machine, file)) => (results.join(machine).join(TABLES), file),
        None => (results.join("run.json"), file),
    };
    let json = fs::read_to_string(&path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let text = lesson::recorded::table(&json, file)?;
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers()?.iter().map(str::to_owned).collect();
    let rows = reader
        .records()
        .map(|record| Ok(record?.iter().map(str::to_owned).collect()))
        .collect::<csv::Result<_>>()?;
    Ok((header, rows))
}

/// The indices of the named columns, or of all columns if no name is given.
fn choose(header: &[String], columns: &[&str]) -> Result<Vec<usize>, String> {
    if columns.is_empty() {
        return Ok((0..header.len()).collect());
    }
    let place = |name: &&str| {
        header
            .iter()
            .position(|column| column == name)
            .ok_or_else(|| format!("has no column `{name}`; it has {}", header.join(", ")))
    };
    columns.iter().map(place).collect()
}

fn html(header: &[String], rows: &[Vec<String>], columns: &[usize]) -> String {
    let is_number = |text: &String| text.is_empty() || text.parse::<f64>().is_ok();
    let class = |column: usize| {
        if rows.iter().all(|row| is_number(&row[column])) { r#" class="number""# } else { "" }
    };
    let line = |tag: &str, cells: &[String]| -> String {
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
