//! Compares the committed outputs of a notebook with the outputs of a new run.

use std::path::Path;

use super::format::{Cell, Form, Notebook, Output};
use crate::failure::Failure;
use crate::numbers::texts_agree;

/// The tag of a cell that prints times or names the machine: its outputs are not compared.
pub const VARIES: &str = "varies";

/// The differences between the outputs of two runs of the same cells; `page` is the notebook's
/// path.
///
/// Printed and plain texts have to agree, and their numbers within 10⁻⁶. Other forms have to exist.
#[must_use]
pub fn compare(page: &Path, committed: &Notebook, fresh: &Notebook) -> Vec<Failure> {
    let mut differences = Vec::new();
    for (at, (old, new)) in committed.cells.iter().zip(&fresh.cells).enumerate() {
        if !old.is_code() || old.has_tag(VARIES) {
            continue;
        }
        let mut differ = |what: String| {
            differences.push(Failure::new(page, None, format!("cell {}: {what}", at + 1)))
        };
        let (texts, fresh_texts) = (texts(old), texts(new));
        if !texts_agree(&texts, &fresh_texts) {
            differ(format!(
                "its output was\n{}\nand is\n{}",
                indented(&texts),
                indented(&fresh_texts)
            ));
        }
        let (forms, fresh_forms) = (forms(old), forms(new));
        if forms != fresh_forms {
            let list = |forms: &[String]| match forms {
                [] => "nothing".to_owned(),
                forms => forms.join(", "),
            };
            differ(format!("it showed {}, and shows {}", list(&forms), list(&fresh_forms)));
        }
    }
    if committed.cells.len() != fresh.cells.len() {
        let counts = (committed.cells.len(), fresh.cells.len());
        differences.push(Failure::new(
            page,
            None,
            format!("{} cells became {}", counts.0, counts.1),
        ));
    }
    differences
}

/// The printed and plain texts of a cell.
fn texts(cell: &Cell) -> String {
    let outputs = cell.outputs.iter().flatten();
    let texts = outputs.filter_map(|output| match output {
        Output::Stream { text, .. } => Some(text.0.as_str()),
        Output::ExecuteResult(shown) | Output::DisplayData(shown) => {
            match shown.data.get("text/plain") {
                Some(Form::Text(text)) => Some(text.0.as_str()),
                _ => None,
            }
        }
        Output::Error { evalue, .. } => Some(evalue),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The media types of a cell's values, with the number of figures in HTML.
fn forms(cell: &Cell) -> Vec<String> {
    let mut forms = Vec::new();
    for output in cell.outputs.iter().flatten() {
        if let Output::ExecuteResult(shown) | Output::DisplayData(shown) = output {
            for (kind, form) in &shown.data {
                let figures = match form {
                    Form::Text(text) => text.0.matches("<svg").count(),
                    Form::Other(_) => 0,
                };
                forms.push(match figures {
                    0 => kind.clone(),
                    n => format!("{kind} with {n} SVG"),
                });
            }
        }
    }
    forms
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| format!("    {line}"));
    lines.collect::<Vec<_>>().join("\n")
}
