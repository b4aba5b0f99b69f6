//! The sources and the PTX that are part of this library.

use std::sync::LazyLock;

use nvrtc::{Program, Ptx};

use super::archive;
#[cfg(feature = "studies")]
use super::mistakes::{self, Mistake};

// SOURCES and ARCHIVES, written by `cargo xtask ptx`; without the feature `studies` a part of them.
// They are statics, because a constant is copied into every part of a program that names it.
include!("../../kernels/ptx/table.rs");

/// Returns every source and header: its path under `kernels/`, and its text.
pub fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    let files = SOURCES.iter().copied();
    #[cfg(feature = "studies")]
    let files = files.chain(std::iter::once_with(planted).flatten());
    files
}

/// Returns the paths `broken/NAME.cu` and the texts of all mistakes.
#[cfg(feature = "studies")]
fn planted() -> impl Iterator<Item = (&'static str, &'static str)> {
    static PLANTED: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
        let planted = |mistake: &Mistake| {
            let (_, twin) = SOURCES.iter().find(|(path, _)| *path == mistake.twin)?;
            Some((format!("{}.cu", mistake.module()), mistake.plant(twin).ok()?))
        };
        Mistake::all().iter().filter_map(planted).collect()
    });
    PLANTED.iter().map(|(path, text)| (path.as_str(), text.as_str()))
}

/// Returns the text of one source, by its path under `kernels/`: `linrec_ref.cu`.
pub fn source(path: &str) -> Option<&'static str> {
    sources().find_map(|(name, text)| (name == path).then_some(text))
}

/// Returns all shipped PTX: its name in `kernels/shipped.toml`, and the PTX.
///
/// ```
/// let names: Vec<_> = linrec::kernels::shipped().map(|(name, _)| name).collect();
/// assert!(names.contains(&"ref-f32"));
/// ```
pub fn shipped() -> impl Iterator<Item = (&'static str, Ptx)> {
    static MODULES: LazyLock<Vec<(&str, Ptx)>> = LazyLock::new(|| {
        let modules = |archive: &&'static [u8]| archive::modules(archive).expect("a test reads it");
        ARCHIVES.iter().flat_map(modules).collect()
    });
    MODULES.iter().cloned()
}

/// Returns the shipped PTX that was made from `program`, if there is any: with exactly its entries,
/// or with more, since kernels that are loaded one at a time may be shipped together.
pub fn shipped_as(program: &Program) -> Option<Ptx> {
    let hash = program.hash().to_string();
    let exactly = shipped().map(|(_, ptx)| ptx).find(|ptx| ptx.hash() == Some(&hash));
    // A program without entries means all kernels of the source, and a part of them is not enough.
    let is_part_of = |ptx: &Ptx| !program.entries.is_empty() && is_part_of(program, ptx);
    exactly.or_else(|| shipped().map(|(_, ptx)| ptx).find(is_part_of))
}

/// Returns whether `ptx` was made from this program, with more entries than it has.
fn is_part_of(program: &Program, ptx: &Ptx) -> bool {
    let has = |entry: &String| ptx.symbol(entry).is_some();
    program.entries.iter().all(has) && {
        let entries = ptx.entries().map(|(entry, _)| entry);
        ptx.hash() == Some(&*program.clone().with_entries(entries).hash().to_string())
    }
}

/// Returns a source of the catalogue as a program, with the headers that it includes and no entries
/// yet.
///
/// `path` is the path under `kernels/`: `linrec_ref.cu`, `broken/lost_carry.cu`. Returns `None` if
/// there is no such source.
pub fn program(path: &str) -> Option<Program> {
    let read = |path: &str| source(path).map(Into::into);
    #[cfg(feature = "studies")]
    if let Some(mistake) = mistakes::at(path) {
        return mistake.program(read);
    }
    Program::gather(path, read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_its_headers() {
        let program = program("linrec_ref.cu").unwrap();
        assert_eq!(program.file, "kernels/linrec_ref.cu");
        let headers: Vec<_> = program.headers.iter().map(|header| &header.file).collect();
        assert_eq!(headers, ["kernels/element.cuh"]);
    }
}
