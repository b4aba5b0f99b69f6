//! The part of the notebook format (nbformat 4.5) that our notebooks use, in one written form.
//!
//! The form is Jupyter's: keys are sorted, texts are lists of lines, and the indent is one blank.
//! So a notebook that was saved in Jupyter differs only in the places of the change. The crate
//! `nbformat` 3.0 writes our notebooks in the same bytes and would save some 70 lines, but it drops
//! an output that it cannot read, and costs 13 crates: 6 s of a processor's time in each build.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::language::Language;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notebook {
    pub cells: Vec<Cell>,
    /// The kernel and its language.
    pub metadata: Map<String, Value>,
    pub nbformat: u32,
    pub nbformat_minor: u32,
}

/// A cell of a notebook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// A word that stays the same when the cell changes.
    pub id: String,
    /// Its tags, and the notes of Jupyter.
    pub metadata: Map<String, Value>,
    pub source: Text,
    /// The type, with the fields that only cells of this type have.
    #[serde(flatten)]
    pub kind: Kind,
}

/// The type of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "cell_type", rename_all = "snake_case")]
pub enum Kind {
    Code { execution_count: Option<u32>, outputs: Vec<Output> },
    Markdown,
    Raw,
}

/// An output of a code cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "output_type", rename_all = "snake_case")]
pub enum Output {
    /// The value of the cell's last expression.
    ExecuteResult { data: Data, execution_count: Option<u32>, metadata: Value },
    /// A value that was displayed during the run.
    DisplayData { data: Data, metadata: Value },
    Stream {
        /// `stdout` or `stderr`.
        name: String,
        text: Text,
    },
    Error {
        ename: String,
        evalue: String,
        /// The lines that the reader sees, with colours.
        traceback: Vec<String>,
    },
}

/// The forms of a value, by their media types.
pub type Data = BTreeMap<String, Form>;

/// One form of a value: text (HTML, SVG, plain), or JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Form {
    Text(Text),
    Other(Value),
}

/// A text, in the file a list of its lines.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(from = "Written")]
pub struct Text(pub String);

/// The two ways in which a file may hold a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Whole(String),
    Lines(Vec<String>),
}

impl From<Written> for Text {
    fn from(written: Written) -> Self {
        Text(match written {
            Written::Whole(text) => text,
            Written::Lines(lines) => lines.concat(),
        })
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.split_inclusive('\n'))
    }
}

impl Notebook {
    /// A notebook of these cells, for the Rust kernel.
    pub fn new(cells: Vec<Cell>) -> Self {
        Notebook { cells, metadata: Language::Rust.metadata(), nbformat: 4, nbformat_minor: 5 }
    }

    /// The language of its cells of code.
    pub fn language(&self) -> Language {
        Language::of(&self.metadata)
    }

    /// Parses the text of a file. A notebook in another version of the format is refused.
    pub fn parse(text: &str) -> Result<Self> {
        let notebook: Notebook =
            serde_json::from_str(text).context("this is no notebook in the format 4.5")?;
        let version = (notebook.nbformat, notebook.nbformat_minor);
        ensure!(version == (4, 5), "the notebook's format is {version:?}, and should be (4, 5)");
        Ok(notebook)
    }

    /// Returns the file's text.
    pub fn to_text(&self) -> Result<String> {
        let mut text = Vec::new();
        let indent = serde_json::ser::PrettyFormatter::with_indent(b" ");
        let mut value = serde_json::to_value(self)?;
        value.sort_all_objects();
        value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, indent))?;
        text.push(b'\n');
        Ok(String::from_utf8(text)?)
    }
}

impl Cell {
    /// A code cell that has not been run.
    pub fn code(id: &str, source: &str) -> Self {
        let (id, source) = (id.to_owned(), Text(source.to_owned()));
        let kind = Kind::Code { execution_count: None, outputs: Vec::new() };
        Cell { id, metadata: Map::new(), source, kind }
    }

    /// Returns true for a code cell.
    pub fn is_code(&self) -> bool {
        matches!(self.kind, Kind::Code { .. })
    }

    /// The outputs of a code cell; other cells have none.
    pub fn outputs(&self) -> &[Output] {
        if let Kind::Code { outputs, .. } = &self.kind { outputs } else { &[] }
    }

    /// Returns true if the cell has this tag.
    pub fn has_tag(&self, tag: &str) -> bool {
        let tags = self.metadata.get("tags").and_then(Value::as_array);
        tags.is_some_and(|tags| tags.iter().any(|one| one == tag))
    }
}

impl Output {
    /// The forms of a value; printed text and failures have none.
    pub fn data(&self) -> Option<&Data> {
        match self {
            Output::ExecuteResult { data, .. } | Output::DisplayData { data, .. } => Some(data),
            Output::Stream { .. } | Output::Error { .. } => None,
        }
    }
}

/// The text of the form with this media type, if there is one.
pub fn form<'d>(data: &'d Data, kind: &str) -> Option<&'d str> {
    match data.get(kind)? {
        Form::Text(text) => Some(&text.0),
        Form::Other(_) => None,
    }
}
