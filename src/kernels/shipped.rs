//! The sources and the PTX that are part of this library.

use super::{Program, Ptx};

// SOURCES and MODULES: pairs of a name and a text. Written by `cargo xtask ptx`. Statics, as whoever names a constant has it
// again: a program of many parts held all texts several times.
include!("../../kernels/ptx/table.rs");

/// Every source and header: its path under `kernels/`, and its text.
pub fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    SOURCES.iter().copied()
}

/// The text of one source, by its path under `kernels/`: `linrec_ref.cu`.
pub fn source(path: &str) -> Option<&'static str> {
    SOURCES.iter().find_map(|&(name, text)| (name == path).then_some(text))
}

/// Every PTX that is shipped: its path under `kernels/ptx/` without the ending, and the PTX.
///
/// ```
/// let names: Vec<_> = linrec::kernels::shipped().map(|(name, _)| name).collect();
/// assert!(names.contains(&"ref-f32"));
/// ```
pub fn shipped() -> impl Iterator<Item = (&'static str, Ptx)> {
    MODULES.iter().map(|&(name, text)| (name, Ptx::from_text(text)))
}

/// One source of the catalogue as a program, with the headers that it includes and no entries yet.
///
/// `path` is the path under `kernels/`: `linrec_ref.cu`, `broken/lost_carry.cu`. `None` if there is no
/// such file.
pub fn program(path: &str) -> Option<Program> {
    Program::gather(path, |path| source(path).map(Into::into))
}

/// A shipped PTX that holds a program's entries, if there is one that was made from this program: with exactly
/// these entries, or with others beside them, as kernels that are needed one at a time may be shipped together.
pub fn shipped_as(program: &Program) -> Option<Ptx> {
    let hash = program.hash().to_string();
    let exactly = shipped().map(|(_, ptx)| ptx).find(|ptx| ptx.hash() == Some(&hash));
    exactly.or_else(|| {
        // Without entries all kernels of the source are meant, and a part of them will not do.
        shipped()
            .map(|(_, ptx)| ptx)
            .find(|ptx| !program.entries.is_empty() && is_part_of(program, ptx))
    })
}

/// Whether `ptx` was made from this program with other entries beside its own.
fn is_part_of(program: &Program, ptx: &Ptx) -> bool {
    let has = |entry: &String| ptx.symbol(entry).is_some();
    program.entries.iter().all(has) && {
        let entries = ptx.entries().map(|(entry, _)| entry);
        ptx.hash() == Some(&*program.clone().with_entries(entries).hash().to_string())
    }
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
