//! Runs chapters in order and summarizes them: a table, `summary.json` and the exit code.

use std::fs;
use std::process::ExitCode;

use lesson::output::{eprintln, println};
use lesson::{Chapter, Check, Record, Settings, Table, files};
use serde::Serialize;

#[derive(Serialize)]
struct Summary {
    chapters: Vec<Entry>,
}

/// A chapter's run, complete or ended by an error.
#[derive(Serialize)]
struct Entry {
    number: u8,
    name: &'static str,
    engine: String,
    seconds: f64,
    figures: Vec<String>,
    checks: Vec<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Runs the chapters. A chapter that cannot run does not prevent the later ones from running.
///
/// The exit code is 0 if all checks passed, 1 if a check failed, and 2 if a chapter could not run.
///
/// # Errors
///
/// Returns an error if the summary cannot be written.
pub fn run(chapters: &[Chapter], settings: &Settings) -> lesson::Result<ExitCode> {
    let out = &settings.out;
    fs::create_dir_all(out)
        .map_err(|error| format!("cannot make the folder {}: {error}", out.display()))?;
    let entries = chapters.iter().map(|chapter| entry(chapter, lesson::run(chapter, settings)));
    let summary = Summary { chapters: entries.collect() };

    let path = out.join("summary.json");
    files::write(&path, serde_json::to_string_pretty(&summary)? + "\n")
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    println!("\n{}", table(&summary).to_text());
    println!("Figures, tables and records are in {}.", out.display());

    Ok(ExitCode::from(summary.exit_code()))
}

fn entry(chapter: &Chapter, outcome: lesson::Result<Record>) -> Entry {
    let (number, name) = (chapter.number, chapter.slug);
    match outcome {
        Ok(Record { engine, seconds, figures, checks, .. }) => {
            let figures = figures.into_iter().map(|figure| figure.file).collect();
            Entry { number, name, engine, seconds, figures, checks, error: None }
        }
        Err(error) => {
            let error = error.to_string();
            eprintln!("error in chapter {number}: {error}");
            let (engine, figures, checks) = (String::new(), Vec::new(), Vec::new());
            Entry { number, name, engine, seconds: 0.0, figures, checks, error: Some(error) }
        }
    }
}

fn table(summary: &Summary) -> Table {
    let mut table = Table::new(["chapter", "engine", "checks passed", "seconds", "figures"]);
    for entry in &summary.chapters {
        let passed = entry.checks.iter().filter(|check| check.pass).count();
        let checks = match &entry.error {
            None => format!("{passed} of {}", entry.checks.len()),
            Some(_) => String::from("could not run"),
        };
        table.row([
            entry.name.to_owned(),
            entry.engine.clone(),
            checks,
            format!("{:.2}", entry.seconds),
            entry.figures.len().to_string(),
        ]);
    }
    table
}

impl Summary {
    fn exit_code(&self) -> u8 {
        let failed = |entry: &Entry| entry.checks.iter().any(|check| !check.pass);
        if self.chapters.iter().any(|entry| entry.error.is_some()) {
            2
        } else {
            u8::from(self.chapters.iter().any(failed))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Summary, entry};
    use lesson::{Chapter, Lesson, Settings};

    fn settings(out: &std::path::Path) -> Settings {
        Settings { full: false, step: false, out: out.to_owned() }
    }

    fn chapter(run: fn(&mut Lesson) -> lesson::Result) -> Chapter {
        Chapter { number: 1, slug: "01-test", title: "Test", run }
    }

    fn exit_code(run: fn(&mut Lesson) -> lesson::Result) -> u8 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let chapter = chapter(run);
        let entry = entry(&chapter, lesson::run(&chapter, &settings(folder.path())));
        Summary { chapters: vec![entry] }.exit_code()
    }

    #[test]
    fn the_exit_code_tells_passed_failed_and_broken_chapters_apart() {
        assert_eq!(
            exit_code(|lesson| {
                lesson.check("one", 1.0, 1.0);
                Ok(())
            }),
            0
        );
        assert_eq!(
            exit_code(|lesson| {
                lesson.check("two", 2.0, 1.0);
                Ok(())
            }),
            1
        );
        assert_eq!(
            exit_code(|lesson| {
                lesson.check("NaN", f64::NAN, 1.0);
                Ok(())
            }),
            1
        );
        assert_eq!(exit_code(|_| Err("it broke".into())), 2);
    }
}
