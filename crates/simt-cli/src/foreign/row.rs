//! The list of foreign kernels: where each is, how it is launched, and what came of it.

use std::fmt::Write as _;

/// A kernel of the list.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// Of a report, who is right: `mistake`, `wrong launch` or `false alarm`, and why.
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
        let mut records = records(text).into_iter();
        if records.next().is_none_or(|head| head != COLUMNS) {
            return Err(format!("the first line is not {}", COLUMNS.join(",")));
        }
        let mut rows = Vec::new();
        for (number, record) in (1..).zip(records) {
            let fields = <[String; 13]>::try_from(record).map_err(|fields| {
                format!("row {number} has {} columns, not {}", fields.len(), COLUMNS.len())
            })?;
            let [
                repository,
                commit,
                path,
                sha256,
                kernel,
                grid,
                block,
                shared,
                arguments,
                variables,
                outcome,
                words,
                judgement,
            ] = fields;
            rows.push(Row {
                repository,
                commit,
                path,
                sha256,
                kernel,
                grid,
                block,
                shared,
                arguments,
                variables,
                outcome,
                words,
                judgement,
            });
        }
        Ok(rows)
    }

    /// The list of these rows.
    pub fn write(rows: &[Row]) -> String {
        let mut text = COLUMNS.join(",") + "\n";
        for row in rows {
            let fields = [
                &row.repository,
                &row.commit,
                &row.path,
                &row.sha256,
                &row.kernel,
                &row.grid,
                &row.block,
                &row.shared,
                &row.arguments,
                &row.variables,
                &row.outcome,
                &row.words,
                &row.judgement,
            ];
            let fields: Vec<_> = fields.into_iter().map(|field| quoted(field)).collect();
            let _ = writeln!(text, "{}", fields.join(","));
        }
        text
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

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// The fields of a file of comma-separated values.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field, mut inside) =
        (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if inside && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => inside = !inside,
            ',' if !inside => record.push(std::mem::take(&mut field)),
            '\r' if !inside => {}
            '\n' if !inside => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        records.push(record);
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_whole() {
        let rows = Row::read(include_str!("../../foreign/kernels.csv")).unwrap();
        assert!(rows.len() >= 300);
        for row in &rows {
            assert_eq!((row.commit.len(), row.sha256.len()), (40, 64), "{}", row.path);
            let judged = !row.judgement.is_empty();
            assert_eq!(row.outcome == "reported", judged, "{} {}", row.path, row.kernel);
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
        assert_eq!(Row::read(&Row::write(&rows)).unwrap(), rows);
        assert_eq!(rows[0].arguments(), ["u32=1", "f32[2]=1,2"]);
        assert!(Row::read("x,y\n").is_err());
        let torn = Row::write(&rows) + "1,2\n";
        assert!(Row::read(&torn).unwrap_err().contains("row 3 has 2 columns"));
    }
}
