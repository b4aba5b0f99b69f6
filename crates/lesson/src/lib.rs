//! What the tutorial's chapters share: narration, tables, checks, figures and the record of a run.
//!
//! A chapter is a [`Chapter`]: a number, a name and a function that tells its story through a
//! [`Lesson`]. The same function serves the chapter's own binary ([`main`]), the tour that runs all
//! of them, and `cargo xtask record`, which keeps a run's record beside the chapter's page.
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
//! A run leaves in `target/tour/NN-name/` its figures (SVG), its tables (CSV), its transcript
//! (`output.txt`, with an anchor around each step) and [`run.json`](Record). [`recorded`] reads
//! what is kept of runs and of other machines.

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

/// What a chapter's function returns.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// Whatever kept a chapter from finishing, as a sentence.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// A chapter of the tutorial.
#[derive(Debug, Clone, Copy)]
pub struct Chapter {
    /// Its number, the same for page, crate, notebook and figures; 0 in the appendix, where folders
    /// have none.
    pub number: u8,
    /// The name of its folder, such as `01-sequential-loop`.
    pub slug: &'static str,
    /// Its title, as on the page.
    pub title: &'static str,
    /// Tells its story.
    pub run: fn(&mut Lesson) -> Result,
}

/// The chapter that the calling package is: the package is called `ch` and the folder's name, and
/// its description is the title.
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

/// Whether something depends on the clock. What is computed comes out the same on every run, and is
/// compared with the committed record; what is timed does not, and is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Computed: it comes out alike on every run.
    Computed,
    /// Depends on the machine and the moment.
    Timed,
}

/// Runs a chapter and writes its record to the output folder.
///
/// # Errors
///
/// The chapter's own, or that the output folder cannot be written.
pub fn run(chapter: &Chapter, settings: &Settings) -> Result<Record> {
    tell(chapter.number, chapter.slug, chapter.title, settings, chapter.run)
}

/// Tells a story that is not a plain function, under a number, a folder's name and a title, and
/// writes its record to the output folder.
///
/// # Errors
///
/// The story's own, or that the output folder cannot be written.
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
