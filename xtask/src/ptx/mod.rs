//! `cargo xtask ptx`: the PTX of the kernels in `kernels/shipped.toml`, of the planted mistakes in
//! `kernels/mistakes.toml`, and of the puzzles' answers.
//!
//! Everything in `kernels/ptx` is generated: the archives, and `table.rs`, which includes them and
//! the sources in the library. So is `puzzles/ptx.zst`. The compiler is a pinned NVRTC, and the
//! tests that need none compare the lists with the archives.

mod archive;
mod compiler;
mod inspect;
mod list;

pub use archive::show;
pub use compiler::install;

use fs_err as fs;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use linrec::kernels::Program;

use crate::failure::{Failure, none_of};
use crate::{puzzles, workspace};
use archive::{Files, TABLE};
use list::List;

/// The archive of the puzzles.
const ANSWERS: &str = "puzzles/ptx.zst";

/// The compiled modules.
struct Compiled {
    /// The modules of `kernels/ptx`.
    kernels: Files,
    table: String,
    /// The modules of the puzzles.
    answers: Files,
}

/// Compiles everything on the list and all answers to puzzles, and replaces the old modules;
/// returns a sentence about them.
pub fn generate(root: &Path) -> Result<String> {
    let compiled = compile(root)?;
    archive::write_all(&folder(root), &compiled.kernels, &compiled.table)?;
    workspace::write(&root.join(ANSWERS), archive::pack(&compiled.answers)?)?;
    Ok(format!("compiled {compiled}"))
}

/// Compiles everything on the list and all answers to puzzles, and compares it with the old
/// modules; returns a sentence about them.
pub fn check(root: &Path) -> Result<String> {
    let compiled = compile(root)?;
    let folder = folder(root);
    let table = Files::from([(TABLE.to_owned(), compiled.table.clone())]);
    let mut found = Vec::new();
    for (folder, wanted, present) in [
        ("kernels/ptx", &compiled.kernels, archive::read_all(&folder)?),
        ("puzzles", &compiled.answers, archive::read(&root.join(ANSWERS))?),
        ("kernels/ptx", &table, texts(&folder, |path| path == TABLE)?),
    ] {
        found.extend(differences(Path::new(folder), wanted, &present));
    }
    none_of(&found, "the compiled kernels (`cargo xtask ptx` compiles them again)")?;
    Ok(format!("checked {compiled}"))
}

fn folder(root: &Path) -> PathBuf {
    root.join("kernels/ptx")
}

impl fmt::Display for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kilobytes =
            |files: &Files| files.values().map(String::len).sum::<usize>().div_ceil(1000);
        let Compiled { kernels, answers, .. } = self;
        write!(f, "{} modules of PTX, {} KB; ", kernels.len(), kilobytes(kernels))?;
        write!(f, "for the puzzles {}, {} KB", answers.len(), kilobytes(answers))
    }
}

/// Compiles everything.
fn compile(root: &Path) -> Result<Compiled> {
    let kernels = root.join("kernels");
    let list = List::read(&kernels)?;
    let (sources, mistakes) = (sources(&kernels)?, list::mistakes(&kernels)?);
    let nvrtc = compiler::pinned(root, &list.nvrtc)?;

    let (mut modules, mut failures) = (Files::new(), Vec::new());
    for kernel in &list.kernels {
        let read = |path: &str| sources.get(path).map(|text| text.clone().into());
        let program = match mistakes.iter().find(|mistake| mistake.module() == kernel.name) {
            Some(mistake) => mistake.program(read),
            None => Program::gather(&kernel.source, read),
        };
        let Some(program) = program else {
            bail!("{} cannot be made of what is in kernels/", kernel.source);
        };
        let program = program.with_entries(&kernel.entries);
        let compiled = nvrtc.compile(&program, list.architecture)?;
        if !compiled.log.is_empty() {
            let what = format!("the compiler says: {}", compiled.log);
            failures.push(Failure::new(&program.file, None, what));
        }
        failures
            .extend(inspect::failures(&Path::new("kernels/ptx").join(&kernel.name), &compiled.ptx));
        modules.insert(kernel.name.clone(), compiled.ptx.text().to_owned());
    }
    failures.extend(inspect::sizes(&list));
    let mut answers = Files::new();
    for puzzle in puzzles::read(root)? {
        for candidate in puzzle.candidates() {
            // A warning about the code in a hole is part of the puzzle.
            let compiled = nvrtc.compile(&puzzle.program_of(candidate), list.architecture)?;
            let path = format!("{}/{}", puzzle.folder, candidate.name);
            failures.extend(inspect::failures(&Path::new("puzzles").join(&path), &compiled.ptx));
            answers.insert(path, compiled.ptx.text().to_owned());
        }
    }
    none_of(&failures, "the compiled kernels")?;

    Ok(Compiled { table: archive::table(&sources, &modules), kernels: modules, answers })
}

/// Every source and header below `kernels`, by its path there. Windows line ends become Unix line
/// ends, so that every checkout gives the same PTX.
fn sources(kernels: &Path) -> Result<Files> {
    texts(kernels, |path| {
        !path.starts_with("ptx/") && (path.ends_with(".cu") || path.ends_with(".cuh"))
    })
}

fn texts(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Files> {
    let mut files = Files::new();
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        let entry = entry?;
        if !entry.file_type().is_file() {
            continue;
        }
        let path = entry.path().strip_prefix(folder)?.to_string_lossy().replace('\\', "/");
        if wanted(&path) {
            let text = fs::read_to_string(entry.path())?;
            files.insert(path, text.replace("\r\n", "\n"));
        }
    }
    Ok(files)
}

/// The differences between two sets of files in `folder`.
fn differences(folder: &Path, wanted: &Files, present: &Files) -> Vec<Failure> {
    let all: BTreeSet<_> = wanted.keys().chain(present.keys()).collect();
    let difference = |path: &String| {
        let (line, what) = match (present.get(path), wanted.get(path)) {
            (old, new) if old == new => return None,
            (None, _) => (None, "is missing".to_owned()),
            (_, None) => (None, "is not on the list".to_owned()),
            (Some(old), Some(new)) => {
                let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
                let quoted = |text: &str| {
                    let line = text.lines().nth(same);
                    line.map_or("the file's end".to_owned(), |line| format!("`{}`", line.trim()))
                };
                (Some(same + 1), format!("{} instead of {}", quoted(old), quoted(new)))
            }
        };
        Some(Failure::new(folder.join(path), line, what))
    };
    all.into_iter().filter_map(difference).collect()
}

#[cfg(test)]
mod tests {
    use linrec::kernels::Ptx;

    use super::*;

    fn files(pairs: &[(&str, &str)]) -> Files {
        pairs.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn every_kind_of_difference_is_reported() {
        let wanted =
            files(&[("a.ptx", "1\n2\n"), ("b.ptx", "1\n2\n"), ("c.ptx", ""), ("d.ptx", "")]);
        let present = files(&[("a.ptx", "1\n3\n"), ("b.ptx", "1\n"), ("d.ptx", ""), ("e.ptx", "")]);
        let folder = Path::new("kernels/ptx");
        let reported = differences(folder, &wanted, &present);
        let reported: Vec<_> = reported.iter().map(ToString::to_string).collect();
        let expected = [
            "kernels/ptx/a.ptx:2: `3` instead of `2`",
            "kernels/ptx/b.ptx:2: the file's end instead of `2`",
            "kernels/ptx/c.ptx: is missing",
            "kernels/ptx/e.ptx: is not on the list",
        ];
        assert_eq!(reported, expected);
        assert!(differences(folder, &wanted, &wanted).is_empty());
    }

    #[test]
    fn sources_are_found_with_unix_line_ends_and_without_generated_files() {
        let root = tempfile::tempdir().unwrap();
        for path in ["a.cu", "broken/b.cu", "c.cuh", "README.md", "ptx/d.cu"] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "1\r\n2\n").unwrap();
        }
        let expected = ["a.cu", "broken/b.cu", "c.cuh"].map(|path| (path, "1\n2\n"));
        assert_eq!(sources(root.path()).unwrap(), files(&expected));
    }

    /// Without a compiler: the list, the sources and the generated files belong together.
    #[test]
    fn everything_on_the_list_is_there_and_nothing_else() {
        let kernels = workspace::root().unwrap().join("kernels");
        let list = List::read(&kernels).unwrap();
        let present = archive::read_all(&kernels.join("ptx")).unwrap();
        let table = fs::read_to_string(kernels.join("ptx").join(TABLE)).unwrap();
        assert_eq!(table, archive::table(&sources(&kernels).unwrap(), &present));
        let mut listed: Vec<_> = list.kernels.iter().map(|kernel| &kernel.name).collect();
        listed.sort();
        assert_eq!(present.keys().collect::<Vec<_>>(), listed);
        for kernel in &list.kernels {
            let ptx = Ptx::from_text(present[&kernel.name].clone());
            let entries: Vec<_> = ptx.entries().map(|(entry, _)| entry).collect();
            assert_eq!(entries, kernel.entries, "{}", kernel.name);
        }
    }

    /// Without a compiler: the archive has the answers of these descriptions, and no others.
    #[test]
    fn the_archive_has_the_answers_to_the_puzzles() {
        let root = workspace::root().unwrap();
        let present = archive::read(&root.join(ANSWERS)).unwrap();
        let mut wanted = Vec::new();
        for puzzle in puzzles::read(&root).unwrap() {
            for candidate in puzzle.candidates() {
                let path = format!("{}/{}", puzzle.folder, candidate.name);
                let text = present.get(&path).unwrap_or_else(|| panic!("{path} is missing"));
                let hash = puzzle.program_of(candidate).hash().to_string();
                assert_eq!(Ptx::from_text(text.clone()).hash(), Some(&*hash), "{path} is stale");
                wanted.push(path);
            }
        }
        wanted.sort();
        assert_eq!(present.into_keys().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn all_archives_together_are_small() {
        let root = workspace::root().unwrap();
        let mut archives = vec![root.join(ANSWERS)];
        archives.extend(fs::read_dir(folder(&root)).unwrap().map(|entry| entry.unwrap().path()));
        let bytes: u64 = archives.iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(bytes < 4_000_000, "{bytes} bytes");
    }
}
