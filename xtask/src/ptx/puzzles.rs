//! Compiles every answer to the puzzles, so that a reader without a compiler can choose one.

use std::path::Path;

use anyhow::Result;
use linrec::device::nvrtc::Nvrtc;
use puzzle::Puzzle;

use super::archive::Files;
use super::inspect;
use crate::failure::Failure;

/// Compiles the answers; returns the modules by folder and name (`01-guard/solution`), and the
/// failures.
pub(super) fn compile(
    puzzles: &[Puzzle],
    nvrtc: &Nvrtc,
    architecture: u32,
) -> Result<(Files, Vec<Failure>)> {
    let (mut files, mut failures) = (Files::new(), Vec::new());
    for puzzle in puzzles {
        for candidate in puzzle.candidates() {
            // A warning about the code in a hole is part of the puzzle.
            let compiled = nvrtc.compile(&puzzle.program_of(candidate), architecture)?;
            let path = format!("{}/{}", puzzle.folder, candidate.name);
            failures.extend(inspect::failures(&Path::new("puzzles").join(&path), &compiled.ptx));
            files.insert(path, compiled.ptx.text().to_owned());
        }
    }
    Ok((files, failures))
}

#[cfg(test)]
mod tests {
    use linrec::kernels::Ptx;

    use crate::ptx::{ANSWERS, archive};
    use crate::puzzles::read;
    use crate::workspace;

    /// Without a compiler: the archive has the answers of these descriptions, and no others.
    #[test]
    fn the_archive_has_the_answers_to_the_puzzles() {
        let root = workspace::root().unwrap();
        let present = archive::read(&root.join(ANSWERS)).unwrap();
        let mut wanted = Vec::new();
        for puzzle in read(&root).unwrap() {
            for candidate in puzzle.candidates() {
                let path = format!("{}/{}", puzzle.folder, candidate.name);
                let text = present.get(&path).unwrap_or_else(|| panic!("{path} is missing"));
                let hash = puzzle.program_of(candidate).hash().to_string();
                assert_eq!(Ptx::from_text(text.clone()).hash(), Some(&*hash), "{path} is stale");
                wanted.push(path);
            }
        }
        wanted.sort();
        assert!(present.keys().eq(&wanted), "{:?} instead of {wanted:?}", present.keys());
    }
}
