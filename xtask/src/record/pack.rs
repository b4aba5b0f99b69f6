//! `cargo xtask pack`: stores the tables that were measured on another machine.

use fs_err as fs;
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::results::TABLES;
use crate::{live, workspace};

/// The most bytes of a table that is not compressed.
pub const LONG: usize = 60_000;

#[derive(Default, Serialize, Deserialize)]
struct Tables {
    tables: Vec<Table>,
}

#[derive(Serialize, Deserialize)]
struct Table {
    file: String,
    rows: Vec<String>,
}

/// Moves the CSV files of a folder into its `tables.json`, in place of tables with the same names,
/// and compresses long ones. The bytes depend on the tables alone.
pub fn pack(folder: &Path) -> Result<String> {
    let paths = workspace::files(folder, "csv", 1);
    let files: BTreeMap<_, _> = paths.iter().map(|path| (workspace::name_of(path), path)).collect();
    if files.is_empty() {
        bail!("there is no CSV file in {}", folder.display());
    }
    let path = folder.join(TABLES);
    let stored: Tables = match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text)
            .with_context(|| format!("{} cannot be used", path.display()))?,
        Err(_) => Tables::default(),
    };
    let mut tables: BTreeMap<_, _> =
        stored.tables.into_iter().map(|table| (table.file, table.rows)).collect();
    for (name, file) in &files {
        let text = fs::read_to_string(file)?;
        let compressed = folder.join(format!("{name}.gz"));
        if text.len() > LONG {
            tables.remove(name);
            fs::write(&compressed, live::pack(text.as_bytes())?)?;
        } else {
            tables.insert(name.clone(), text.lines().map(str::to_owned).collect());
            if compressed.exists() {
                fs::remove_file(compressed)?;
            }
        }
    }
    let tables: Vec<_> = tables.into_iter().map(|(file, rows)| Table { file, rows }).collect();
    if !tables.is_empty() {
        // A line for each row, so that differences can be read, with little indentation.
        let mut json = Vec::new();
        let format = PrettyFormatter::with_indent(b" ");
        Tables { tables }.serialize(&mut Serializer::with_formatter(&mut json, format))?;
        json.push(b'\n');
        workspace::write(&path, json)?;
    }
    for file in files.values() {
        fs::remove_file(file)?;
    }
    Ok(format!("packed {} tables in {}", files.len(), folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lesson::recorded;

    #[test]
    fn packed_tables_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let json = || fs::read_to_string(folder.path().join(TABLES)).unwrap();
        assert!(pack(folder.path()).is_err(), "there is nothing to pack");

        let long = "length,ms\n".to_owned() + &"16,0.25\n".repeat(LONG / 8);
        for (name, text) in [("a.csv", "x,y\n\"1,5\",2\n"), ("b.csv", "x\n"), ("runs.csv", &long)] {
            write(name, text);
        }
        write("note.txt", "is left alone");
        pack(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        assert_eq!(recorded::table(&json(), "a.csv").unwrap(), "x,y\n\"1,5\",2\n");
        let gzip = folder.path().join("runs.csv.gz");
        assert_eq!(recorded::text(&fs::read(&gzip).unwrap()).unwrap(), long);

        write("b.csv", "x\n7\n");
        write("runs.csv", "length,ms\n");
        pack(folder.path()).unwrap();
        let tables =
            ["a.csv", "b.csv", "runs.csv"].map(|name| recorded::table(&json(), name).unwrap());
        assert_eq!(tables, ["x,y\n\"1,5\",2\n", "x\n7\n", "length,ms\n"]);
        assert!(!gzip.exists(), "the earlier form is removed");
    }
}
