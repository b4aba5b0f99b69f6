//! Shared by the tutorial's chapters: narration, tables, checks, figures and the record of a run.
//!
//! A chapter is a [`Chapter`]: a number, a name and a function that narrates its story through a
//! [`Lesson`]. The same function serves the chapter's own binary ([`main`]), the tour that runs all
//! chapters, and `cargo xtask record`, which saves a run's record next to the chapter's page.
//!
//! ```no_run
//! use lesson::{self, Chapter, Kind, Lesson};
//!
//! // In the tutorial, `lesson::chapter!(run)` takes the rest from the package.
//! const CHAPTER: Chapter =
//!     Chapter { number: 1, slug: "01-sequential-loop", title: "The sequential loop", run };
//!
//! fn run(lesson: &mut Lesson) -> lesson::Result {
//!     lesson.step("sum", "A sum")?;
//!     lesson.say("One and one is computed here.");
//!     lesson.check("the sum is two", (1.0_f64 + 1.0 - 2.0).abs(), 0.0);
//!     lesson.value("sum", 1 + 1, Kind::Computed);
//!     Ok(())
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     lesson::main(&CHAPTER)
//! }
//! ```
//!
//! A run writes its figures (SVG), its tables (CSV), its transcript (`output.txt`, with an anchor
//! around each step) and [`run.json`](Record) to `target/tour/NN-name/`. [`recorded`] reads the
//! saved records of runs and of other machines.

pub mod broken;
mod cli;
pub mod clock;
pub mod files;
pub mod machine;
#[cfg(feature = "notebook")]
pub mod notebook;
pub mod output;
pub mod plot;
mod progress;
mod record;
pub mod recorded;
mod story;
mod table;

pub use cli::{Settings, main};
pub use progress::progress;
pub use record::{Check, Figure, Record, RecordedTable, Value};
pub use story::Lesson;
pub use table::Table;

/// The result of a chapter's function.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// The error that prevented a chapter from finishing; its text is a sentence.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// A chapter of the tutorial.
#[derive(Debug, Clone, Copy)]
pub struct Chapter {
    /// The chapter's number, which its page, crate, notebook and figures share. It is 0 for the
    /// appendix, whose folders have no number.
    pub number: u8,
    /// The name of the chapter's folder, such as `01-sequential-loop`.
    pub slug: &'static str,
    /// The chapter's title, as on its page.
    pub title: &'static str,
    /// The function that narrates the chapter.
    pub run: fn(&mut Lesson) -> Result,
}

/// Makes a [`Chapter`] of the calling package. The package's name must be `ch` followed by the
/// folder's name, and its description is the title.
#[macro_export]
macro_rules! chapter {
    ($run:path) => {
        $crate::Chapter::of(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_DESCRIPTION"), $run)
    };
}

impl Chapter {
    #[doc(hidden)]
    #[must_use]
    pub const fn of(
        package: &'static str,
        title: &'static str,
        run: fn(&mut Lesson) -> Result,
    ) -> Self {
        let slug = package.split_at(2).1;
        let digits = slug.as_bytes();
        let number = 10 * (digits[0] - b'0') + (digits[1] - b'0');
        Self { number, slug, title, run }
    }
}

/// The kind of a recorded value, table or figure. Computed results are the same in every run and
/// are compared with the committed record. Timed results differ from run to run and are not
/// compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The result is the same in every run.
    Computed,
    /// The result depends on the machine and on the moment.
    Timed,
}

/// Runs a chapter and writes its record to the output folder.
///
/// # Errors
///
/// Returns the chapter's own error, or an error if the output folder cannot be written.
pub fn run(chapter: &Chapter, settings: &Settings) -> Result<Record> {
    tell(chapter.number, chapter.slug, chapter.title, settings, chapter.run)
}

/// Runs a story that is a closure under a number, a folder name and a title, and writes its record
/// to the output folder.
///
/// # Errors
///
/// Returns the story's own error, or an error if the output folder cannot be written.
pub fn tell(
    number: u8,
    slug: &str,
    title: &str,
    settings: &Settings,
    story: impl FnOnce(&mut Lesson) -> Result,
) -> Result<Record> {
    let mut lesson = Lesson::begin(number, slug, title, settings)?;
    story(&mut lesson)?;
    lesson.finish()
}
