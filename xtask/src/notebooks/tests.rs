//! Runs notebooks, and compares their outputs.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::clean::clean;
use super::compare::{VARIES, compare};
use super::format::{Cell, Kind, Notebook, form};
use crate::workspace;

/// A notebook of code cells.
fn notebook(sources: &[&str]) -> Notebook {
    let cells = sources.iter().enumerate().map(|(at, code)| Cell::code(&format!("c{at}"), code));
    Notebook::new(cells.collect())
}

fn printed(text: &str) -> Value {
    json!({"output_type": "stream", "name": "stdout", "text": text})
}

fn shown(kind: &str, text: &str) -> Value {
    json!({"output_type": "execute_result", "execution_count": 7, "metadata": {}, "data": {kind: text}})
}

/// A notebook of one cell with these outputs.
fn with_outputs(outputs: &[Value]) -> Notebook {
    let mut notebook = notebook(&["x"]);
    let outputs = serde_json::from_value(json!(outputs)).unwrap();
    notebook.cells[0].kind = Kind::Code { execution_count: None, outputs };
    notebook
}

#[test]
fn a_notebook_is_written_as_jupyter_does_and_read_again() {
    let mut written = with_outputs(&[printed("1\n2\n"), shown("text/plain", "3")]);
    written.cells[0].metadata.insert("tags".to_owned(), json!([VARIES]));
    let text = written.to_text().unwrap();
    let cell = r#" "cells": [
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "c0",
   "metadata": {
    "tags": [
     "varies"
    ]
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\n",
      "2\n"
     ]
    },
    {
     "data": {
      "text/plain": [
       "3"
      ]
     },
     "execution_count": 7,
     "metadata": {},
     "output_type": "execute_result"
    }
   ],
   "source": [
    "x"
   ]
  }
 ],"#;
    assert!(text.contains(cell), "{text}");
    assert!(text.ends_with("\"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n"), "{text}");
    assert_eq!(Notebook::parse(&text).unwrap(), written);
    let error = Notebook::parse(&text.replace("\"nbformat_minor\": 5", "\"nbformat_minor\": 2"));
    assert!(error.unwrap_err().to_string().contains("(4, 2)"));
}

#[test]
fn every_notebook_of_this_workspace_has_that_form() {
    for path in super::files(&workspace::root().unwrap().join("notebooks")) {
        let text = fs::read_to_string(&path).unwrap().replace('\r', "");
        let written = Notebook::parse(&text).unwrap().to_text().unwrap();
        assert!(written == text, "{} would be written in another way", path.display());
    }
}

#[test]
fn differences_from_run_to_run_are_removed() {
    let error = json!({"output_type": "stream", "name": "stderr", "text": "e"});
    let value = shown("text/plain", "/home/me/linrec/src");
    let mut notebook = with_outputs(&[value, error, printed("a"), printed("b")]);
    notebook.cells[0]
        .metadata
        .insert("execution".to_owned(), json!({"iopub.execute_input": "now"}));
    notebook.metadata.insert("widgets".to_owned(), json!({}));
    clean(&mut notebook, &[("/home/me/linrec/".to_owned(), "")]);
    let cell = &notebook.cells[0];
    assert!(cell.metadata.is_empty() && !notebook.metadata.contains_key("widgets"));
    assert_eq!(json!(cell)["execution_count"], 1);
    // One stream of each name, and then the value.
    let [printed, error, value] = cell.outputs() else { panic!("{cell:?}") };
    for (stream, name, text) in [(printed, "stdout", "ab"), (error, "stderr", "e")] {
        let expected = json!({"output_type": "stream", "name": name, "text": [text]});
        assert_eq!(json!(stream), expected);
    }
    assert_eq!(json!(value)["execution_count"], 1);
    assert_eq!(form(value.data().unwrap(), "text/plain"), Some("src"));
}

/// The differences between a cell with the outputs `old` and a cell with `new`.
fn differences(old: &[Value], new: &[Value]) -> Vec<String> {
    let differences = compare(Path::new("n.ipynb"), &with_outputs(old), &with_outputs(new));
    differences.iter().map(ToString::to_string).collect()
}

#[test]
fn texts_agree_within_the_tolerance_and_figures_are_there() {
    let html = |text: &str| vec![shown("text/html", text)];
    assert!(differences(&[printed("[0.5]")], &[printed("[0.50000001]")]).is_empty());
    assert!(differences(&html("<svg>1</svg>"), &html("<svg>2</svg>")).is_empty());
    for (old, new, what) in [
        (
            vec![printed("[0.5]")],
            vec![printed("[0.51]")],
            "its output was\n    [0.5]\nand is\n    [0.51]",
        ),
        (vec![printed("x")], vec![], "its output was"),
        (vec![shown("text/plain", "1")], vec![shown("text/plain", "2")], "its output was"),
        (html("<svg></svg>"), html("none"), "it showed text/html with 1 SVG, and shows text/html"),
        (vec![shown("image/svg+xml", "<svg/>")], vec![], "and shows nothing"),
    ] {
        let differences = differences(&old, &new).join("\n");
        assert!(differences.starts_with("n.ipynb: cell 1: "), "{differences}");
        assert!(differences.contains(what), "{differences}");
    }
}

#[test]
fn cells_that_vary_are_left_out() {
    let (mut old, new) = (with_outputs(&[printed("1 ms")]), with_outputs(&[printed("2 ms")]));
    assert_eq!(compare(Path::new("n"), &old, &new).len(), 1);
    old.cells[0].metadata.insert("tags".to_owned(), json!([VARIES]));
    assert!(compare(Path::new("n"), &old, &new).is_empty());
}
