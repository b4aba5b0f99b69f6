//! The list of foreign kernels: where each is, how it is launched, and what came of it.

use csv::{ReaderBuilder, WriterBuilder};
use serde::{Deserialize, Serialize};

/// A kernel of the list: a column for each field, in their order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The last part of the repository's name is the folder of its clone: `github.com/NVIDIA/cuda-samples`.
    pub repository: String,
    pub commit: String,
    pub path: String,
    /// Of the file as the commit has it, in hexadecimal digits.
    pub sha256: String,
    /// As C++ names the instance: `scale<float>`.
    pub kernel: String,
    pub grid: String,
    pub block: String,
    pub shared: String,
    /// One after the other, as `simt run --arg` takes them, with `|` between.
    pub arguments: String,
    /// Variables of the module that are written before, as `simt run --variable` takes them.
    pub variables: String,
    /// `ran`, `reported`, `refused` or `not compiled`.
    pub outcome: String,
    /// What was reported or refused.
    pub words: String,
    /// Of what was reported or refused, a word and a sentence: `mistake: …`, `meant`, `too long`, `gap`, `excluded` (what is
    /// not asked of the emulator) or `false alarm`.
    pub judgement: String,
}

const COLUMNS: [&str; 13] = [
    "repository",
    "commit",
    "path",
    "sha256",
    "kernel",
    "grid",
    "block",
    "shared",
    "arguments",
    "variables",
    "outcome",
    "words",
    "judgement",
];

impl Row {
    /// The rows of a list.
    pub fn read(text: &str) -> Result<Vec<Row>, String> {
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let head = reader.headers().map_err(|error| error.to_string())?.clone();
        if head != COLUMNS[..] {
            return Err(format!("the first line is not {}", COLUMNS.join(",")));
        }
        let row = |(number, record): (usize, csv::Result<csv::StringRecord>)| {
            let record = record.map_err(|error| format!("row {number}: {error}"))?;
            if record.len() != COLUMNS.len() {
                let (has, columns) = (record.len(), COLUMNS.len());
                return Err(format!("row {number} has {has} columns, not {columns}"));
            }
            record.deserialize(Some(&head)).map_err(|error| format!("row {number}: {error}"))
        };
        (1..).zip(reader.records()).map(row).collect()
    }

    /// The list of these rows.
    pub fn write(rows: &[Row]) -> Result<String, String> {
        let written = || -> csv::Result<Vec<u8>> {
            let mut writer = WriterBuilder::new().has_headers(false).from_writer(Vec::new());
            writer.write_record(COLUMNS)?;
            rows.iter().try_for_each(|row| writer.serialize(row))?;
            Ok(writer.into_inner().map_err(|error| error.into_error())?)
        };
        let bytes = written().map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|error| error.to_string())
    }

    /// The folder of its clone.
    pub fn folder(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or_default()
    }

    pub fn arguments(&self) -> Vec<String> {
        split(&self.arguments)
    }

    pub fn variables(&self) -> Vec<String> {
        split(&self.variables)
    }
}

fn split(list: &str) -> Vec<String> {
    list.split('|').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_whole() {
        let list = include_str!("../../foreign/kernels.csv");
        let rows = Row::read(list).unwrap();
        assert!(rows.len() >= 300);
        assert_eq!(Row::write(&rows).unwrap(), list);
        for row in &rows {
            assert_eq!((row.commit.len(), row.sha256.len()), (40, 64), "{}", row.path);
            let words = ["mistake", "meant", "too long", "gap", "excluded", "false alarm"];
            let judged =
                row.judgement.split_once(": ").is_some_and(|(word, _)| words.contains(&word));
            assert_eq!(row.outcome != "ran", judged, "{} {}", row.path, row.kernel);
        }
    }

    #[test]
    fn lists_come_back_as_they_were() {
        let row = Row {
            path: "a,b.cu".to_owned(),
            words: "reads \"x\",\nand y".to_owned(),
            arguments: "u32=1 | f32[2]=1,2 | ".to_owned(),
            ..Row::default()
        };
        let rows = [row, Row { judgement: "mistake".to_owned(), ..Row::default() }];
        assert_eq!(Row::read(&Row::write(&rows).unwrap()).unwrap(), rows);
        assert_eq!(rows[0].arguments(), ["u32=1", "f32[2]=1,2"]);
        assert!(Row::read("x,y\n").is_err());
        let torn = Row::write(&rows).unwrap() + "1,2\n";
        assert!(Row::read(&torn).unwrap_err().contains("row 3 has 2 columns"));
    }
}
