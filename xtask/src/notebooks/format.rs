//! The part of the notebook format (nbformat 4.5) that our notebooks use, in one written form.
//!
//! The form is Jupyter's: keys are sorted, texts are lists of lines, and the indent is one blank.
//! So a notebook that was saved in Jupyter differs only in the places of the change. The crate
//! `nbformat` would be longer to use: it has a field for each known key and media type, and sorts
//! none. It also brings the messages of kernels.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::language::Language;

/// A notebook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notebook {
    /// The cells, in their order.
    pub cells: Vec<Cell>,
    /// The kernel and its language.
    pub metadata: BTreeMap<String, Value>,
    /// A part of the format's version: 4 of 4.5.
    pub nbformat: u32,
    /// A part of the format's version: 5 of 4.5.
    pub nbformat_minor: u32,
}

/// A cell of a notebook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// `code`, `markdown` or `raw`.
    pub cell_type: String,
    /// The number of a code cell in the last run.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub execution_count: Option<Option<u32>>,
    /// A word that stays the same when the cell changes.
    pub id: String,
    /// Its tags, and the notes of Jupyter.
    pub metadata: BTreeMap<String, Value>,
    /// The outputs of a code cell in the last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Vec<Output>>,
    /// The text.
    pub source: Text,
}

/// An output of a code cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "output_type", rename_all = "snake_case")]
pub enum Output {
    /// The value of the cell's last expression.
    ExecuteResult(Displayed),
    /// A value that was displayed during the run.
    DisplayData(Displayed),
    /// Printed text.
    Stream {
        /// `stdout` or `stderr`.
        name: String,
        /// The text.
        text: Text,
    },
    /// A failure.
    Error {
        /// Its kind.
        ename: String,
        /// Its message.
        evalue: String,
        /// The lines that the reader sees, with colours.
        traceback: Vec<String>,
    },
}

/// A value in one or more forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Displayed {
    /// The forms, by their media type.
    pub data: BTreeMap<String, Form>,
    /// The cell's number.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub execution_count: Option<Option<u32>>,
    /// Further metadata.
    pub metadata: BTreeMap<String, Value>,
}

/// One form of a value: text (HTML, SVG, plain), or JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Form {
    /// A text.
    Text(Text),
    /// Anything else.
    Other(Value),
}

/// A text, in the file a list of its lines.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Text(pub String);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut lines = serializer.serialize_seq(None)?;
        for line in self.0.split_inclusive('\n') {
            lines.serialize_element(line)?;
        }
        lines.end()
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Whole(String),
            Lines(Vec<String>),
        }
        Ok(Text(match Either::deserialize(deserializer)? {
            Either::Whole(text) => text,
            Either::Lines(lines) => lines.concat(),
        }))
    }
}

/// A field that exists, perhaps with `null`.
fn given<'de, D, T>(deserializer: D) -> std::result::Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

impl Notebook {
    /// A notebook of these cells, for the Rust kernel.
    #[must_use]
    pub fn new(cells: Vec<Cell>) -> Self {
        Notebook { cells, metadata: Language::Rust.metadata(), nbformat: 4, nbformat_minor: 5 }
    }

    /// The language of its cells of code.
    #[must_use]
    pub fn language(&self) -> Language {
        Language::of(&self.metadata)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    ///
    /// If the text is no notebook, or has another version.
    pub fn parse(text: &str) -> Result<Self> {
        let notebook: Notebook =
            serde_json::from_str(text).context("this is no notebook in the format 4.5")?;
        let version = (notebook.nbformat, notebook.nbformat_minor);
        ensure!(version == (4, 5), "the notebook's format is {version:?}, and should be (4, 5)");
        Ok(notebook)
    }

    /// The file's text.
    ///
    /// # Errors
    ///
    /// If the notebook cannot be written as JSON.
    pub fn to_text(&self) -> Result<String> {
        let mut text = Vec::new();
        let indent = serde_json::ser::PrettyFormatter::with_indent(b" ");
        let value = sorted(serde_json::to_value(self)?);
        value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, indent))?;
        text.push(b'\n');
        Ok(String::from_utf8(text)?)
    }
}

/// A value with the keys of all its objects in order.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(entries) => {
            let entries: BTreeMap<_, _> =
                entries.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(values) => values.into_iter().map(sorted).collect(),
        value => value,
    }
}

impl Cell {
    /// A code cell that has not been run.
    #[must_use]
    pub fn code(id: &str, source: &str) -> Self {
        Cell {
            cell_type: "code".to_owned(),
            execution_count: Some(None),
            id: id.to_owned(),
            metadata: BTreeMap::new(),
            outputs: Some(Vec::new()),
            source: Text(source.to_owned()),
        }
    }

    /// True for a code cell.
    #[must_use]
    pub fn is_code(&self) -> bool {
        self.cell_type == "code"
    }

    /// True if it has this tag.
    #[must_use]
    pub fn has_tag(&self, tag: &str) -> bool {
        let tags = self.metadata.get("tags").and_then(Value::as_array);
        tags.is_some_and(|tags| tags.iter().any(|one| one == tag))
    }
}
