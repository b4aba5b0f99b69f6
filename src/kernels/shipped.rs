//! The sources and the PTX that are part of this library.

use std::sync::LazyLock;

#[cfg(feature = "studies")]
use super::mistakes;
use super::{Program, Ptx, archive};

// SOURCES and ARCHIVES: without the feature `studies` not all of them. Written by
// `cargo xtask ptx`. They are statics, because a constant is copied into every part of a program
// that names it.
include!("../../kernels/ptx/table.rs");

/// Every source and header: its path under `kernels/`, and its text.
pub fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    let sources = files();
    #[cfg(feature = "studies")]
    let sources = sources.chain(mistakes::sources());
    sources
}

/// The sources that are files, without planted mistakes.
pub(super) fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    SOURCES.iter().copied()
}

/// The text of one source, by its path under `kernels/`: `linrec_ref.cu`.
pub fn source(path: &str) -> Option<&'static str> {
    sources().find_map(|(name, text)| (name == path).then_some(text))
}

/// Every PTX that is shipped: its name in `kernels/shipped.toml`, and the PTX.
///
/// ```
/// let names: Vec<_> = linrec::kernels::shipped().map(|(name, _)| name).collect();
/// assert!(names.contains(&"ref-f32"));
/// ```
pub fn shipped() -> impl Iterator<Item = (&'static str, Ptx)> {
    static MODULES: LazyLock<Vec<(&str, Ptx)>> =
        LazyLock::new(|| ARCHIVES.iter().flat_map(|archive| archive::modules(archive)).collect());
    MODULES.iter().cloned()
}

/// The shipped PTX that holds the entries of `program`, if there is one that was made from it: with
/// exactly these entries, or with others beside them, as kernels that are needed one at a time may
/// be shipped together.
pub fn shipped_as(program: &Program) -> Option<Ptx> {
    let hash = program.hash().to_string();
    let exactly = shipped().map(|(_, ptx)| ptx).find(|ptx| ptx.hash() == Some(&hash));
    // Without entries all kernels of the source are meant, and a part of them will not do.
    let is_part_of = |ptx: &Ptx| !program.entries.is_empty() && is_part_of(program, ptx);
    exactly.or_else(|| shipped().map(|(_, ptx)| ptx).find(is_part_of))
}

/// Whether `ptx` was made from this program with other entries beside its own.
fn is_part_of(program: &Program, ptx: &Ptx) -> bool {
    let has = |entry: &String| ptx.symbol(entry).is_some();
    program.entries.iter().all(has) && {
        let entries = ptx.entries().map(|(entry, _)| entry);
        ptx.hash() == Some(&*program.clone().with_entries(entries).hash().to_string())
    }
}

/// One source of the catalogue as a program, with the headers that it includes and no entries yet.
///
/// `path` is the path under `kernels/`: `linrec_ref.cu`, `broken/lost_carry.cu`. `None` if there is
/// no such source.
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
    fn a_program_brings_its_headers() {
        let program = program("linrec_ref.cu").unwrap();
        assert_eq!(program.file, "kernels/linrec_ref.cu");
        let headers: Vec<_> = program.headers.iter().map(|header| &header.file).collect();
        assert_eq!(headers, ["kernels/element.cuh"]);
    }
}
