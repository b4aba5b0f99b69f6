//! Narrates a chapter: prints its story, keeps a transcript, and records its results.
//!
//! Everything that a chapter shows passes through a [`Lesson`]. Each call prints to the terminal,
//! appends to the transcript that the book's pages include, and adds to the [`Record`] that the
//! gate compares with the committed one. A failed check does not stop the story, so that one run
//! reports all failures. The small functions are tested at the end of this file; whole stories are
//! tested by `cargo xtask record --check`.

use std::fmt::Display;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{Check, Figure, Kind, Record, RecordedTable, Result, Settings, Table, Value};
use super::{clock, files, machine, output};

/// The width of a line of narration.
const WIDTH: usize = 84;

/// A chapter's run. Its narration goes to the terminal and to the transcript, its results to the
/// [`Record`].
#[derive(Debug)]
pub struct Lesson {
    place: Place,
    folder: PathBuf,
    wait: bool,
    transcript: String,
    step: Option<&'static str>,
    steps: usize,
    start: Instant,
    record: Record,
}

/// The part of the book that a run belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Chapter(u8),
    Part(&'static str),
}

impl Place {
    /// Returns the place of a folder: `00-start-here`, or `bench`, or one of the appendix.
    pub(super) fn of(number: u8, slug: &str) -> Self {
        match number {
            0 if slug == "bench" => Place::Part("Benchmark"),
            0 if !slug.starts_with(|c: char| c.is_ascii_digit()) => Place::Part("Appendix"),
            _ => Place::Chapter(number),
        }
    }

    pub(super) fn name(self) -> String {
        match self {
            Place::Chapter(number) => format!("Chapter {number}"),
            Place::Part(name) => name.to_owned(),
        }
    }

    /// Returns the prefix of its steps' numbers.
    fn letter(self) -> String {
        match self {
            Place::Chapter(number) => number.to_string(),
            Place::Part(name) => name[..1].to_owned(),
        }
    }
}

impl Lesson {
    pub(super) fn begin(number: u8, slug: &str, title: &str, settings: &Settings) -> Result<Self> {
        let folder = settings.out.join(slug);
        fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make the folder {}: {error}", folder.display()))?;
        let full = if settings.full { " --full" } else { "" };
        let place = Place::of(number, slug);
        let chosen = match place {
            Place::Chapter(number) => format!("-- {number}"),
            Place::Part(_) => format!("-p appendix-{slug} --"),
        };
        let command = format!("cargo run --release {chosen}{full}");
        let record = Record {
            chapter: slug.to_owned(),
            number,
            title: title.to_owned(),
            engine: String::from("loop"),
            command: command.trim_end_matches(" --").to_owned(),
            machine: machine::describe(),
            date: machine::date(),
            seconds: 0.0,
            full: settings.full,
            values: Default::default(),
            checks: Vec::new(),
            figures: Vec::new(),
            tables: Vec::new(),
        };
        let mut lesson = Lesson {
            place,
            folder,
            wait: settings.step,
            transcript: String::new(),
            step: None,
            steps: 0,
            start: Instant::now(),
            record,
        };
        let heading = format!("{}. {title}", place.name());
        lesson.print(&format!(
            "\n\x1b[1m{heading}\n{}\x1b[0m\n",
            "═".repeat(heading.chars().count())
        ));
        Ok(lesson)
    }

    /// Returns `full` if the post's sizes were requested, else `laptop`.
    pub fn size<T>(&self, laptop: T, full: T) -> T {
        if self.record.full { full } else { laptop }
    }

    /// Sets the engine or engines that this chapter runs, for the tour's table.
    pub fn engine(&mut self, name: &str) {
        name.clone_into(&mut self.record.engine);
    }

    /// Sets the command that repeats this run, if it is not the chapter's own command.
    pub fn command(&mut self, command: &str) {
        command.clone_into(&mut self.record.command);
    }

    /// Begins a step with a heading, after a pause if `--step` was given. The page includes the
    /// step's output by its `key`.
    ///
    /// # Errors
    ///
    /// Returns an error if the terminal cannot be read while waiting.
    pub fn step(&mut self, key: &'static str, title: &str) -> Result {
        self.end_step();
        if self.wait && self.steps > 0 {
            let _ = write!(io::stderr(), "\n[Enter] continues ");
            io::stdin().lock().read_line(&mut String::new())?;
        }
        self.steps += 1;
        self.step = Some(key);
        self.transcript += &format!("ANCHOR: {key}\n");
        let heading = format!("{}.{} {title}", self.place.letter(), self.steps);
        self.print(&format!(
            "\n\x1b[1m{heading}\n{}\x1b[0m\n",
            "─".repeat(heading.chars().count())
        ));
        Ok(())
    }

    fn end_step(&mut self) {
        if let Some(key) = self.step.take() {
            self.transcript += &format!("ANCHOR_END: {key}\n");
        }
    }

    /// Prints a paragraph, wrapped to the width of a page.
    pub fn say(&mut self, text: &str) {
        self.print(&format!("\n{}\n", wrap(text, WIDTH)));
    }

    /// Prints lines unchanged but indented.
    pub fn show(&mut self, text: impl Display) {
        let lines: String = text.to_string().lines().map(|line| format!("  {line}\n")).collect();
        self.print(&format!("\n{lines}"));
    }

    /// Prints a long sentence that the code itself produced, such as an error, in indented lines.
    pub fn quote(&mut self, sentence: &str) {
        self.show(wrap(sentence, WIDTH - 4));
    }

    /// Shows a table and writes it as CSV to `file`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn table(&mut self, file: &str, kind: Kind, table: &Table) -> Result {
        self.show(table.to_text());
        let csv = table.to_csv();
        self.write(file, &csv)?;
        let (timing, rows) = (kind == Kind::Timed, csv.lines().map(str::to_owned).collect());
        self.record.tables.push(RecordedTable { file: file.to_owned(), timing, rows });
        Ok(())
    }

    /// Writes a figure; [`plot`](super::plot) makes the `svg`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn figure(&mut self, file: &str, title: &str, kind: Kind, svg: &str) -> Result {
        self.write(file, svg)?;
        self.print(&format!("\n  figure  {title}: {}\n", self.folder.join(file).display()));
        let timing = kind == Kind::Timed;
        self.record.figures.push(Figure { file: file.to_owned(), title: title.to_owned(), timing });
        Ok(())
    }

    /// Checks that `value ≤ limit` and prints the outcome. A failed check does not end the chapter,
    /// but it makes the exit code 1.
    pub fn check(&mut self, name: &str, value: f64, limit: f64) -> bool {
        // This comparison makes NaN fail.
        let pass = value <= limit;
        let (mark, relation) = if pass { ("ok  ", "≤") } else { ("FAIL", ">") };
        let numbers = format!("{} {relation} {}", number(value), number(limit));
        self.print(&format!("  [{mark}] {name}: {numbers}\n"));
        let value = value.is_finite().then_some(value);
        self.record.checks.push(Check { name: name.to_owned(), value, limit, pass });
        pass
    }

    /// Records a value for the page to quote.
    pub fn value(&mut self, key: &str, text: impl Display, kind: Kind) {
        let value = Value { text: text.to_string(), timing: kind == Kind::Timed };
        self.record.values.insert(key.to_owned(), value);
    }

    pub(super) fn finish(mut self) -> Result<Record> {
        self.end_step();
        let elapsed = self.start.elapsed();
        self.record.seconds = elapsed.as_secs_f64();
        let failed = self.record.checks.iter().filter(|check| !check.pass).count();
        let verdict = match failed {
            0 => format!("all {} checks passed", self.record.checks.len()),
            _ => format!("{failed} of {} checks FAILED", self.record.checks.len()),
        };
        let (name, time) = (self.place.name(), clock::text(elapsed));
        self.print(&format!("\n{name}: {verdict} in {time}.\n"));
        self.write("output.txt", &anstream::adapter::strip_str(&self.transcript).to_string())?;
        self.write("run.json", &(serde_json::to_string_pretty(&self.record)? + "\n"))?;
        Ok(self.record)
    }

    /// Prints to the terminal and appends to the transcript.
    fn print(&mut self, text: &str) {
        self.transcript += text;
        output::print(format_args!("{text}"));
    }

    fn write(&self, file: &str, content: &str) -> Result {
        let path: PathBuf = self.folder.join(Path::new(file));
        files::write(&path, content)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(())
    }
}

/// Formats a number for a check: short, but exact if it is small and whole.
fn number(value: f64) -> String {
    let plain = value == 0.0 || (1e-3..1e6).contains(&value.abs());
    match plain {
        true if value.fract() == 0.0 => format!("{value}"),
        true => format!("{value:.4}"),
        false => format!("{value:.2e}"),
    }
}

/// Breaks a paragraph into lines of at most `width` characters.
fn wrap(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        let Some(line) = lines.last_mut() else { break };
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Place, number, wrap};

    #[test]
    fn folders_without_a_number_are_the_appendix() {
        let names = [(0, "00-start-here"), (9, "stores"), (0, "special"), (0, "bench")]
            .map(|(number, slug)| Place::of(number, slug).name());
        assert_eq!(names, ["Chapter 0", "Chapter 9", "Appendix", "Benchmark"]);
    }

    #[test]
    fn paragraphs_wrap_at_words() {
        assert_eq!(wrap("one two  three\n four", 9), "one two\nthree\nfour");
        assert_eq!(wrap("", 9), "");
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 3.0, 0.5, 1.25e-7, 2e9, f64::NAN].map(number);
        assert_eq!(texts, ["0", "3", "0.5000", "1.25e-7", "2.00e9", "NaN"]);
    }
}
