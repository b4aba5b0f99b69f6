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
