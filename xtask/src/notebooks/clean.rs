//! Removes from a notebook what differs from machine to machine, or from run to run by chance.

use super::exercises::WRONG;
use super::format::{Displayed, Form, Notebook, Output, Text};

/// Numbers the cells in their order, moves printed text before displayed values, and replaces the
/// names of `folders`, each by the word with it.
pub fn clean(notebook: &mut Notebook, folders: &[(String, &str)]) {
    let mut number = 0;
    for cell in notebook.cells.iter_mut().filter(|cell| cell.is_code()) {
        number += 1;
        cell.execution_count = Some(Some(number));
        // Jupyter notes the time of the run here, and the scrolling.
        cell.metadata.retain(|key, _| key == "tags" || key == WRONG);
        let outputs = joined(cell.outputs.take().unwrap_or_default());
        let outputs = outputs.into_iter().map(|output| without(output, number, folders));
        cell.outputs = Some(outputs.collect());
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

fn without(output: Output, number: u32, folders: &[(String, &str)]) -> Output {
    let text = |Text(text): Text| {
        Text(folders.iter().fold(text, |text, (folder, name)| text.replace(folder, name)))
    };
    let displayed = |shown: Displayed| {
        let form = |form| match form {
            Form::Text(words) => Form::Text(text(words)),
            form => form,
        };
        shown.data.into_iter().map(|(kind, value)| (kind, form(value))).collect()
    };
    match output {
        Output::Stream { name, text: words } => Output::Stream { name, text: text(words) },
        Output::ExecuteResult(shown) => Output::ExecuteResult(Displayed {
            execution_count: Some(Some(number)),
            metadata: shown.metadata.clone(),
            data: displayed(shown),
        }),
        Output::DisplayData(shown) => Output::DisplayData(Displayed {
            execution_count: None,
            metadata: shown.metadata.clone(),
            data: displayed(shown),
        }),
        error => error,
    }
}
