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
mod puzzles;

pub use archive::show;
pub use compiler::install;

use fs_err as fs;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use linrec::kernels::Program;

use crate::failure::{Failure, none_of};
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
    let answers = root.join(ANSWERS);
    lesson::files::write(&answers, &archive::pack(&compiled.answers)?)
        .with_context(|| format!("{} cannot be written", answers.display()))?;
    Ok(format!("compiled {compiled}"))
}

/// Compiles everything on the list and all answers to puzzles, and compares it with the old
/// modules; returns a sentence about them.
pub fn check(root: &Path) -> Result<String> {
    let compiled = compile(root)?;
    let folder = folder(root);
    let mut found =
        differences(Path::new("kernels/ptx"), &compiled.kernels, &archive::read_all(&folder)?);
    found.extend(differences(
        Path::new("puzzles"),
        &compiled.answers,
        &archive::read(&root.join(ANSWERS))?,
    ));
    let table = |text: String| Files::from([(TABLE.to_owned(), text)]);
    let present = texts(&folder, |path| path == TABLE)?;
    found.extend(differences(Path::new("kernels/ptx"), &table(compiled.table.clone()), &present));
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
            failures.push(Failure::new(Path::new(&program.file), None, what));
        }
        failures
            .extend(inspect::failures(&Path::new("kernels/ptx").join(&kernel.name), &compiled.ptx));
        modules.insert(kernel.name.clone(), compiled.ptx.text().to_owned());
    }
    failures.extend(inspect::sizes(&list));
    let puzzles = crate::puzzles::read(root)?;
    let (answers, unfit) = puzzles::compile(&puzzles, &nvrtc, list.architecture)?;
    failures.extend(unfit);
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
    let failure = |path: &str, line, what: String| Failure::new(&folder.join(path), line, what);
    let missing_or_stale = wanted.iter().filter_map(|(path, text)| {
        let Some(old) = present.get(path) else {
            return Some(failure(path, None, "is missing".to_owned()));
        };
        let line = first_difference(old, text)?;
        let (old, new) = (old.lines().nth(line), text.lines().nth(line));
        let quote = |line: Option<&str>| {
            line.map_or("the file's end".to_owned(), |line| format!("`{}`", line.trim()))
        };
        Some(failure(path, Some(line + 1), format!("{} instead of {}", quote(old), quote(new))))
    });
    let obsolete = present.keys().filter(|path| !wanted.contains_key(*path));
    let obsolete = obsolete.map(|path| failure(path, None, "is not on the list".to_owned()));
    missing_or_stale.chain(obsolete).collect()
}

/// The first line that differs, counted from 0.
fn first_difference(old: &str, new: &str) -> Option<usize> {
    if old == new {
        return None;
    }
    let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new);
    Some(same.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(pairs: &[(&str, &str)]) -> Files {
        pairs.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn every_kind_of_difference_is_reported() {
        let wanted =
            files(&[("a.ptx", "1\n2\n"), ("b.ptx", "1\n2\n"), ("c.ptx", "1\n"), ("d.ptx", "")]);
        let present =
            files(&[("a.ptx", "1\n3\n"), ("b.ptx", "1\n"), ("d.ptx", ""), ("e.ptx", "1\n")]);
        let folder = Path::new("kernels/ptx");
        let reported: Vec<_> =
            differences(folder, &wanted, &present).iter().map(ToString::to_string).collect();
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
        let sources = sources(root.path()).unwrap();
        assert_eq!(
            sources,
            files(&[("a.cu", "1\n2\n"), ("broken/b.cu", "1\n2\n"), ("c.cuh", "1\n2\n")])
        );
    }

    /// Without a compiler: the list, the sources and the generated files belong together.
    #[test]
    fn everything_on_the_list_is_there_and_nothing_else() {
        let kernels = crate::workspace::root().unwrap().join("kernels");
        let list = List::read(&kernels).unwrap();
        let present = archive::read_all(&kernels.join("ptx")).unwrap();
        let table = fs::read_to_string(kernels.join("ptx").join(TABLE)).unwrap();
        assert_eq!(table, archive::table(&sources(&kernels).unwrap(), &present));
        let mut listed: Vec<_> = list.kernels.iter().map(|kernel| &kernel.name).collect();
        listed.sort();
        assert!(
            present.keys().eq(listed.iter().copied()),
            "{:?} instead of {listed:?}",
            present.keys()
        );
        for kernel in &list.kernels {
            let ptx = linrec::kernels::Ptx::from_text(present[&kernel.name].clone());
            let entries: Vec<_> = ptx.entries().map(|(entry, _)| entry).collect();
            assert_eq!(entries, kernel.entries, "{}", kernel.name);
        }
    }

    #[test]
    fn all_archives_together_are_small() {
        let root = crate::workspace::root().unwrap();
        let mut archives = vec![root.join(ANSWERS)];
        archives.extend(fs::read_dir(folder(&root)).unwrap().map(|entry| entry.unwrap().path()));
        let bytes: u64 = archives.iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(bytes < 4_000_000, "{bytes} bytes");
    }
}
