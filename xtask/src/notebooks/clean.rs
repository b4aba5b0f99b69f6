//! Removes from a notebook what differs from machine to machine, or from run to run by chance.

use super::exercises::WRONG;
use super::format::{Form, Kind, Notebook, Output, Text};

/// Numbers the cells in their order, moves printed text before displayed values, and replaces the
/// names of `folders`, each by the word with it.
pub fn clean(notebook: &mut Notebook, folders: &[(String, &str)]) {
    let mut number = 0;
    for cell in &mut notebook.cells {
        let Kind::Code { execution_count, outputs } = &mut cell.kind else { continue };
        number += 1;
        *execution_count = Some(number);
        // Jupyter notes the time of the run here, and the scrolling.
        cell.metadata.retain(|key, _| key == "tags" || key == WRONG);
        join(outputs);
        outputs.iter_mut().for_each(|output| replace(output, number, folders));
    }
    notebook.metadata = notebook.language().metadata();
}

/// Joins the streams of each name, and puts them first: their order is a matter of chance.
fn join(outputs: &mut Vec<Output>) {
    // The standard output is first, and values are last.
    let place = |output: &Output| match output {
        Output::Stream { name, .. } => usize::from(name != "stdout"),
        _ => 2,
    };
    outputs.sort_by_key(place);
    outputs.dedup_by(|next, last| match (next, last) {
        (Output::Stream { name, text }, Output::Stream { name: same, text: all }) => {
            let is_same = name == same;
            if is_same {
                all.0.push_str(&text.0);
            }
            is_same
        }
        _ => false,
    });
}

/// Replaces the names of folders in an output, and the number of its cell.
fn replace(output: &mut Output, number: u32, folders: &[(String, &str)]) {
    let replace = |Text(text): &mut Text| {
        for (folder, name) in folders {
            *text = text.replace(folder, name);
        }
    };
    match output {
        Output::Stream { text, .. } => replace(text),
        Output::ExecuteResult { data, .. } | Output::DisplayData { data, .. } => {
            for form in data.values_mut() {
                if let Form::Text(text) = form {
                    replace(text);
                }
            }
        }
        Output::Error { .. } => {}
    }
    if let Output::ExecuteResult { execution_count: count @ Some(_), .. } = output {
        *count = Some(number);
    }
}
