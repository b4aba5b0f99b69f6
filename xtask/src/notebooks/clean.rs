//! Removes from a notebook what differs from machine to machine, or from run to run by chance.

use super::exercises::WRONG;
use super::format::{Form, Notebook, Output, Text};

/// Numbers the cells in their order, moves printed text before displayed values, and replaces the
/// names of `folders`, each by the word with it.
pub fn clean(notebook: &mut Notebook, folders: &[(String, &str)]) {
    let mut number = 0;
    for cell in notebook.cells.iter_mut().filter(|cell| cell.is_code()) {
        number += 1;
        cell.execution_count = Some(Some(number));
        // Jupyter notes the time of the run here, and the scrolling.
        cell.metadata.retain(|key, _| key == "tags" || key == WRONG);
        let mut outputs = joined(cell.outputs.take().unwrap_or_default());
        outputs.iter_mut().for_each(|output| replace(output, number, folders));
        cell.outputs = Some(outputs);
    }
    notebook.metadata = notebook.language().metadata();
}

/// Joins the streams of each name, and puts them first: their order is a matter of chance.
fn joined(outputs: Vec<Output>) -> Vec<Output> {
    let mut streams: Vec<(String, String)> = Vec::new();
    let mut rest = Vec::new();
    for output in outputs {
        match output {
            Output::Stream { name, text } => match streams.iter_mut().find(|one| one.0 == name) {
                Some(one) => one.1.push_str(&text.0),
                None => streams.push((name, text.0)),
            },
            output => rest.push(output),
        }
    }
    // In reverse order of their names: the standard output first.
    streams.sort_by(|a, b| b.0.cmp(&a.0));
    let streams = streams.into_iter().map(|(name, text)| Output::Stream { name, text: Text(text) });
    streams.chain(rest).collect()
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
        Output::ExecuteResult(shown) | Output::DisplayData(shown) => {
            if let Some(count) = &mut shown.execution_count {
                *count = Some(number);
            }
            let texts = shown.data.values_mut().filter_map(|form| match form {
                Form::Text(text) => Some(text),
                Form::Other(_) => None,
            });
            texts.for_each(replace);
        }
        Output::Error { .. } => {}
    }
}
