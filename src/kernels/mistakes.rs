//! Planted mistakes: kernels that are wrong in one place, made from correct ones.
//!
//! `kernels/mistakes.toml` lists them as edits. A mistake has the source of its twin without the
//! comment at the top and without the marks of anchors; its place is marked as the anchor
//! `mistake`.

use std::borrow::Cow;
use std::sync::LazyLock;

use nvrtc::Program;
use serde::Deserialize;

/// One planted mistake. The file documents the fields.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistake {
    /// The name: `lost_carry`.
    pub name: String,
    /// The path under `kernels/` of the correct kernel.
    pub twin: String,
    /// The kernels that are compiled from it, as C++ writes them.
    pub entries: Vec<String>,
    /// The check that finds it.
    pub found_by: Finder,
    /// Sentences about the mistake.
    pub why: String,
    /// Lines of the twin directly above `find`, if `find` alone occurs more than once.
    #[serde(default)]
    pub behind: String,
    /// Lines of the twin that are replaced; may be empty.
    pub find: String,
    /// The lines that replace them.
    pub replace: String,
}

/// The check that finds a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finder {
    /// The emulator, which watches the launch.
    Emulator,
    /// The contract, which compares numbers.
    Contract,
}

impl Mistake {
    /// Returns all mistakes, in the order of the file.
    ///
    /// # Panics
    ///
    /// If the file cannot be read. It is part of this library, and a test reads it.
    pub fn all() -> &'static [Mistake] {
        static ALL: LazyLock<Vec<Mistake>> = LazyLock::new(|| {
            Mistake::read(include_str!("../../kernels/mistakes.toml"))
                .unwrap_or_else(|error| panic!("{error}"))
        });
        &ALL
    }

    /// Reads the mistakes of a file like `kernels/mistakes.toml`.
    ///
    /// # Errors
    ///
    /// A sentence about what is wrong with the file.
    pub fn read(text: &str) -> Result<Vec<Mistake>, String> {
        #[derive(Deserialize)]
        struct Table {
            mistake: Vec<Mistake>,
        }
        let table = toml::from_str::<Table>(text);
        Ok(table.map_err(|error| format!("kernels/mistakes.toml: {error}"))?.mistake)
    }

    /// Returns the name of its PTX, and of its source without the ending: `broken/lost_carry`.
    pub fn module(&self) -> String {
        format!("broken/{}", self.name)
    }

    /// Returns the source with the mistake in it.
    ///
    /// # Errors
    ///
    /// If `find` does not occur exactly once in the twin's source `twin`.
    pub fn plant(&self, twin: &str) -> Result<String, String> {
        let lines = twin.lines().skip_while(|line| line.starts_with("//"));
        let lines = lines.filter(|line| !line.trim().starts_with("// ANCHOR"));
        let body: String = lines.flat_map(|line| [line, "\n"]).collect();
        let place = format!("\n{}{}", self.behind, self.find);
        let mut places = body.match_indices(&place);
        let (Some((at, _)), None) = (places.next(), places.next()) else {
            return Err(format!("{}: `find` is not exactly once in {}", self.name, self.twin));
        };
        let (before, after) = body.split_at(at + 1 + self.behind.len());
        let after = &after[self.find.len()..];
        let mut text = String::new();
        for (number, line) in self.why.lines().enumerate() {
            let words = match number {
                0 => format!("// {} with one mistake: {line}", self.twin),
                _ if line.is_empty() => "//".to_owned(),
                _ => format!("// {line}"),
            };
            text += &format!("{words}\n");
        }
        // An empty line after the sentences becomes one between the comment and the code.
        if text.ends_with("\n//\n") {
            text.truncate(text.len() - 3);
            text.push('\n');
        }
        let indent =
            &self.replace[..self.replace.len() - self.replace.trim_start_matches(' ').len()];
        text += before;
        text += &format!(
            "{indent}// ANCHOR: mistake\n{}{indent}// ANCHOR_END: mistake\n",
            self.replace
        );
        Ok(text + after)
    }

    /// Returns the mistake as a program, with the headers of its twin and no entries yet; `read`
    /// returns the text of a source at a path under `kernels/`. Returns `None` if there is no twin,
    /// or the edit does not fit it.
    pub fn program(&self, read: impl Fn(&str) -> Option<Cow<'static, str>>) -> Option<Program> {
        let planted = self.plant(&read(&self.twin)?).ok()?;
        // Headers are named as in the twin: NVRTC takes a header with two names for two headers.
        let source =
            |path: &str| if path == self.twin { Some(planted.clone().into()) } else { read(path) };
        let program = Program::gather(&self.twin, source)?;
        Some(Program { file: format!("kernels/{}.cu", self.module()), ..program })
    }
}

/// Returns the mistake whose source is at `path`.
pub(super) fn at(path: &str) -> Option<&'static Mistake> {
    Mistake::all().iter().find(|mistake| path.strip_suffix(".cu") == Some(&mistake.module()))
}
