//! Reads saved records of runs and of other machines: tables in a JSON file, and compressed tables.
//!
//! A chapter's `results/run.json` contains the tables of its run. A `tables.json` contains tables
//! of a GPU, for example; long tables are next to it, compressed by gzip. `cargo xtask pack` makes
//! these files from CSV files.

use std::io::Read;

use flate2::read::GzDecoder;
use serde::Deserialize;

use super::Result;

#[derive(Deserialize)]
struct Tables {
    tables: Vec<Table>,
}

#[derive(Deserialize)]
struct Table {
    file: String,
    rows: Vec<String>,
}

/// Returns the table `file` of a record in JSON as CSV.
///
/// # Errors
///
/// Returns an error if `json` is not a record with tables, or has no table of this name.
pub fn table(json: &str, file: &str) -> Result<String> {
    let Tables { tables } = serde_json::from_str(json)?;
    match tables.into_iter().find(|table| table.file == file) {
        Some(table) => Ok(table.rows.join("\n") + "\n"),
        None => Err(format!("there is no table `{file}` in the record").into()),
    }
}

/// Decompresses text that was compressed by gzip.
///
/// # Errors
///
/// Returns an error if the bytes are not compressed text.
pub fn text(gzip: &[u8]) -> Result<String> {
    let mut text = String::new();
    GzDecoder::new(gzip).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{table, text};

    #[test]
    fn tables_are_found_by_name() {
        let json = r#"{"tables": [{"file": "a.csv", "timing": true, "rows": ["x,y", "1,\"2\""]}], "full": false}"#;
        assert_eq!(table(json, "a.csv").unwrap(), "x,y\n1,\"2\"\n");
        let error = |json, file| table(json, file).unwrap_err().to_string();
        assert!(error(json, "b.csv").contains("no table `b.csv`"));
        assert!(error("{}", "a.csv").contains("missing field `tables`"));
    }

    #[test]
    fn bytes_that_are_not_gzip_are_an_error() {
        assert!(text(b"length,ms\n").is_err());
    }
}
