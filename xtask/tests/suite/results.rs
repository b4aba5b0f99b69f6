//! The recorded results of the chapters are small, and something reads each of them.

use std::fs;
use std::path::Path;

use walkdir::WalkDir;

use crate::support::Fixture;
use xtask::record::pack::LONG;
use xtask::workspace;

/// The tables with the machine, the driver and the clocks of a measurement.
const ORIGIN: [&str; 2] = ["origin.csv", "clocks.csv"];

/// The endings of pages, sources and notebooks.
const ENDINGS: [&str; 3] = ["md", "rs", "ipynb"];

/// The files and tables in `chapters/*/results` that nothing reads, and the files that are too
/// long.
fn faults(root: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    let everywhere = ["README.md", "chapters", "crates", "notebooks", "src"];
    let everywhere = everywhere.map(|place| texts(&root.join(place), &ENDINGS)).concat();
    let chapters = root.join("chapters");
    for chapter in workspace::entries(&chapters).unwrap() {
        // A story names the figures that it draws, but only a page shows them.
        let (own, pages) = (texts(&chapter, &ENDINGS), texts(&chapter, &ENDINGS[..1]));
        let entries = WalkDir::new(chapter.join("results")).sort_by_file_name().into_iter();
        for entry in entries.flatten().filter(|entry| entry.file_type().is_file()) {
            let path = entry.path();
            let shown = path.strip_prefix(root).unwrap().display();
            let name = entry.file_name().to_str().unwrap();
            let is_drawn_or_packed = [".svg", ".gz"].iter().any(|ending| name.ends_with(ending));
            if !is_drawn_or_packed && entry.metadata().unwrap().len() > LONG as u64 {
                faults.push(format!("{shown} is long, and not compressed"));
            }
            let from_elsewhere = path.strip_prefix(&chapters).unwrap().to_str().unwrap();
            let from_elsewhere = from_elsewhere.replace('\\', "/");
            match name {
                "run.json" | "output.txt" => {}
                "tables.json" => {
                    let json = fs::read_to_string(path).unwrap();
                    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
                    for table in json["tables"].as_array().unwrap() {
                        let table = table["file"].as_str().unwrap();
                        if !ORIGIN.contains(&table) && !is_read(table, &own) {
                            faults.push(format!("nothing reads {table} in {shown}"));
                        }
                    }
                }
                _ if everywhere.contains(&from_elsewhere) => {}
                _ if is_read(name, if name.ends_with(".svg") { &pages } else { &own }) => {}
                _ => faults.push(format!("nothing reads {shown}")),
            }
        }
    }
    faults
}

/// The files with these endings in a folder, without examples, which write records.
fn texts(folder: &Path, endings: &[&str]) -> String {
    let left_out = ["results", "examples", "target"];
    let files = WalkDir::new(folder)
        .into_iter()
        .filter_entry(|entry| !left_out.contains(&entry.file_name().to_str().unwrap_or("")))
        .filter_map(Result::ok);
    files
        .filter(|file| file.path().extension().is_some_and(|e| endings.iter().any(|one| e == *one)))
        .map(|file| fs::read_to_string(file.path()).unwrap())
        .collect()
}

/// True if a text names a file, other than as a table of the chapter's run.
fn is_read(name: &str, text: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let is_longer =
            before.ends_with(|c: char| c.is_alphanumeric() || c == '-') || after.starts_with(".gz");
        let before = before.trim_end_matches('"').trim_end();
        !is_longer && !before.ends_with(".table(") && !before.ends_with("{{#table")
    })
}

#[test]
fn all_recorded_results_are_read_and_small() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let faults = faults(&root);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn dead_and_long_files_are_found() {
    let book = Fixture::new();
    for folder in ["crates", "src"] {
        fs::create_dir(book.path(folder)).unwrap();
    }
    book.write("README.md", "");
    assert_eq!(faults(book.root()), Vec::<String>::new());
    let results = "chapters/01-sample/results";
    fs::create_dir(book.path(&format!("{results}/gpu"))).unwrap();
    book.write(&format!("{results}/dead.svg"), "");
    book.write("chapters/01-sample/src/story.rs", "lesson.figure(\"dead.svg\")");
    let table = |file: &str| format!(r#"{{"file": "{file}", "rows": []}}"#);
    let tables = ["origin.csv", "cost.csv", "bits.csv"].map(table).join(",");
    book.write(&format!("{results}/gpu/tables.json"), &format!(r#"{{"tables": [{tables}]}}"#));
    book.write(&format!("{results}/gpu/runs.csv.gz"), "");
    book.write(&format!("{results}/gpu/long.csv"), &"1\n".repeat(LONG));
    book.append("{{#table gpu/bits.csv}} `runs.csv` `gpu/long.csv`");
    assert_eq!(
        faults(book.root()),
        [
            format!("nothing reads {results}/dead.svg"),
            format!("{results}/gpu/long.csv is long, and not compressed"),
            format!("nothing reads {results}/gpu/runs.csv.gz"),
            format!("nothing reads cost.csv in {results}/gpu/tables.json"),
        ]
    );
}
