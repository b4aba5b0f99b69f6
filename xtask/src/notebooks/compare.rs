//! Compares the committed outputs of a notebook with the outputs of a new run.

use std::path::Path;

use super::format::{Cell, Form, Notebook, Output, form};
use crate::failure::Failure;
use crate::numbers::texts_agree;

/// The tag of a cell that prints times or names the machine: its outputs are not compared.
pub const VARIES: &str = "varies";

/// The differences between the outputs of two runs of the same cells; `page` is the notebook's
/// path.
///
/// Printed and plain texts have to agree, and their numbers within 10⁻⁶. Other forms have to exist.
pub fn compare(page: &Path, committed: &Notebook, fresh: &Notebook) -> Vec<Failure> {
    let mut differences = Vec::new();
    for (at, (old, new)) in committed.cells.iter().zip(&fresh.cells).enumerate() {
        if !old.is_code() || old.has_tag(VARIES) {
            continue;
        }
        let (was, is) = (texts(old), texts(new));
        if !texts_agree(&was, &is) {
            let (was, is) = (indented(&was), indented(&is));
            differences.push(format!("cell {}: its output was\n{was}\nand is\n{is}", at + 1));
        }
        let (was, is) = (forms(old), forms(new));
        if was != is {
            let list = |forms: &[String]| match forms {
                [] => "nothing".to_owned(),
                forms => forms.join(", "),
            };
            let (was, is) = (list(&was), list(&is));
            differences.push(format!("cell {}: it showed {was}, and shows {is}", at + 1));
        }
    }
    let (was, is) = (committed.cells.len(), fresh.cells.len());
    if was != is {
        differences.push(format!("{was} cells became {is}"));
    }
    differences.into_iter().map(|what| Failure::new(page, None, what)).collect()
}

/// The printed and plain texts of a cell.
fn texts(cell: &Cell) -> String {
    let texts = cell.outputs().iter().filter_map(|output| match output {
        Output::Stream { text, .. } => Some(text.0.as_str()),
        Output::Error { evalue, .. } => Some(evalue),
        value => form(value.data()?, "text/plain"),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The media types of a cell's values, with the number of figures in HTML.
fn forms(cell: &Cell) -> Vec<String> {
    let forms = cell.outputs().iter().filter_map(Output::data).flatten();
    let described = forms.map(|(kind, form)| match form {
        Form::Text(text) if text.0.contains("<svg") => {
            format!("{kind} with {} SVG", text.0.matches("<svg").count())
        }
        _ => kind.clone(),
    });
    described.collect()
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| format!("    {line}"));
    lines.collect::<Vec<_>>().join("\n")
}
