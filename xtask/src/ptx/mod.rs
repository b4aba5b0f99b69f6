//! `cargo xtask ptx`: the kernels' PTX, compiled as `kernels/shipped.toml` says, and that of the puzzles' answers.
//!
//! Everything in `kernels/ptx` is generated: one file per entry of the list, and `table.rs`, by which
//! the library has them and the sources in it. So is the folder `ptx` of each puzzle.

mod compiler;
mod inspect;
mod list;
mod puzzles;
mod table;

pub use compiler::install;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use linrec::kernels::Program;
use puzzle::Puzzle;

use crate::failure::{Failure, none_of};
pub(crate) use list::List;

/// The files of `kernels/ptx` by their path in it, with slashes, and their text.
type Files = BTreeMap<String, String>;

/// All that is compiled.
struct Compiled {
    /// What `kernels/ptx` is to hold.
    kernels: Files,
    puzzles: Vec<Puzzle>,
    /// What `puzzles` is to hold.
    answers: Files,
}

/// Compiles everything on the list and all answers to puzzles, and replaces what was compiled before; returns what was
/// done, as a sentence.
///
/// # Errors
///
/// When NVRTC cannot be had, when a kernel does not compile or its PTX is not fit to be shipped.
pub fn generate(root: &Path) -> Result<String> {
    let compiled = compile(root)?;
    replace(&folder(root), &compiled.kernels)?;
    puzzles::write(root, &compiled.puzzles, &compiled.answers)?;
    Ok(format!("compiled {compiled}"))
}

/// Compiles everything on the list and all answers to puzzles, and compares it with what was compiled before; returns
/// what was found, as a sentence.
///
/// # Errors
///
/// As for [`generate`], and when a file differs, is missing or should not be there.
pub fn check(root: &Path) -> Result<String> {
    let compiled = compile(root)?;
    let mut found =
        differences(Path::new("kernels/ptx"), &compiled.kernels, &present(&folder(root))?);
    let answers = puzzles::present(root)?;
    found.extend(differences(Path::new("puzzles"), &compiled.answers, &answers));
    none_of(&found, "what is compiled (`cargo xtask ptx` mends it)")?;
    Ok(format!("checked {compiled}"))
}

fn folder(root: &Path) -> PathBuf {
    root.join("kernels/ptx")
}

/// Replaces all that is in a folder by these files.
fn replace(folder: &Path, files: &Files) -> Result<()> {
    lesson::files::replace_folder(folder, |new| {
        for (path, text) in files {
            let path = new.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&path, text)
                .with_context(|| format!("{} cannot be written", path.display()))?;
        }
        Ok::<_, anyhow::Error>(())
    })
    .with_context(|| format!("{} cannot be replaced", folder.display()))
}

impl fmt::Display for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kilobytes =
            |files: &Files| files.values().map(String::len).sum::<usize>().div_ceil(1000);
        let Compiled { kernels, answers, .. } = self;
        // One of the files is the table.
        write!(f, "{} PTX files, {} KB; ", kernels.len() - 1, kilobytes(kernels))?;
        write!(f, "for the puzzles {}, {} KB", answers.len(), kilobytes(answers))
    }
}

/// Compiles everything.
fn compile(root: &Path) -> Result<Compiled> {
    let kernels = root.join("kernels");
    let list = List::read(&kernels.join("shipped.toml"))?;
    let sources = sources(&kernels)?;
    let nvrtc = compiler::pinned(root, &list.nvrtc)?;

    let mut files = Files::new();
    let mut failures = Vec::new();
    for kernel in &list.kernels {
        let read = |path: &str| sources.get(path).map(|text| text.clone().into());
        let Some(program) = Program::gather(&kernel.source, read) else {
            bail!("kernels/shipped.toml names {}, which is not in kernels/", kernel.source);
        };
        let program = program.with_entries(&kernel.entries);
        let compiled = nvrtc.compile(&program, list.architecture)?;
        if !compiled.log.is_empty() {
            let what = format!("the compiler says: {}", compiled.log);
            failures.push(Failure::new(Path::new(&program.file), None, what));
        }
        let path = format!("{}.ptx", kernel.name);
        failures.extend(inspect::failures(&Path::new("kernels/ptx").join(&path), &compiled.ptx));
        files.insert(path, compiled.ptx.text().to_owned());
    }
    failures.extend(inspect::sizes(&list, &files));
    let puzzles = crate::puzzles::read(root)?;
    let (answers, unfit) = puzzles::compile(&puzzles, &nvrtc, list.architecture)?;
    failures.extend(unfit);
    none_of(&failures, "the compiled kernels")?;

    files.insert("table.rs".to_owned(), table::write(&sources, &files));
    Ok(Compiled { kernels: files, puzzles, answers })
}

/// Every source and header below `kernels`, by its path there. Line ends are those of Unix, so that
/// the PTX is the same from a Windows checkout.
fn sources(kernels: &Path) -> Result<Files> {
    texts(kernels, |path| {
        !path.starts_with("ptx/") && (path.ends_with(".cu") || path.ends_with(".cuh"))
    })
}

fn present(folder: &Path) -> Result<Files> {
    if !folder.is_dir() {
        return Ok(Files::new());
    }
    texts(folder, |_| true)
}

fn texts(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Files> {
    let mut files = Files::new();
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        let entry = entry.with_context(|| format!("{} cannot be read", folder.display()))?;
        if !entry.file_type().is_file() {
            continue;
        }
        let path = entry.path().strip_prefix(folder)?.to_string_lossy().replace('\\', "/");
        if wanted(&path) {
            let text = fs::read_to_string(entry.path())
                .with_context(|| format!("{} cannot be read", entry.path().display()))?;
            files.insert(path, text.replace("\r\n", "\n"));
        }
    }
    Ok(files)
}

/// How two sets of files in `folder` differ.
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
    fn every_kind_of_difference_is_told() {
        let wanted =
            files(&[("a.ptx", "1\n2\n"), ("b.ptx", "1\n2\n"), ("c.ptx", "1\n"), ("d.ptx", "")]);
        let present =
            files(&[("a.ptx", "1\n3\n"), ("b.ptx", "1\n"), ("d.ptx", ""), ("e.ptx", "1\n")]);
        let folder = Path::new("kernels/ptx");
        let told: Vec<_> =
            differences(folder, &wanted, &present).iter().map(ToString::to_string).collect();
        let expected = [
            "kernels/ptx/a.ptx:2: `3` instead of `2`",
            "kernels/ptx/b.ptx:2: the file's end instead of `2`",
            "kernels/ptx/c.ptx: is missing",
            "kernels/ptx/e.ptx: is not on the list",
        ];
        assert_eq!(told, expected);
        assert!(differences(folder, &wanted, &wanted).is_empty());
    }

    #[test]
    fn what_is_generated_takes_the_place_of_all_that_was() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("ptx");
        for generated in
            [[("a.ptx", "1\n"), ("old/b.ptx", "2\n")], [("a.ptx", "3\n"), ("c/b.ptx", "")]]
        {
            replace(&folder, &files(&generated)).unwrap();
            assert_eq!(present(&folder).unwrap(), files(&generated));
        }
        assert!(!folder.join("old").exists());
    }

    #[test]
    fn sources_are_found_with_unix_line_ends_and_without_what_is_generated() {
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

    /// Without a compiler: the list, the sources and what was generated belong together.
    #[test]
    fn everything_on_the_list_is_there_and_nothing_else() {
        let kernels = crate::workspace::root().unwrap().join("kernels");
        let list = List::read(&kernels.join("shipped.toml")).unwrap();
        let mut present = present(&kernels.join("ptx")).unwrap();
        let table = present.remove("table.rs");
        assert_eq!(table, Some(table::write(&sources(&kernels).unwrap(), &present)));
        let mut listed: Vec<_> =
            list.kernels.iter().map(|kernel| format!("{}.ptx", kernel.name)).collect();
        listed.sort();
        assert!(present.keys().eq(&listed), "{:?} instead of {listed:?}", present.keys());
        for kernel in &list.kernels {
            let ptx =
                linrec::kernels::Ptx::from_text(present[&format!("{}.ptx", kernel.name)].clone());
            let entries: Vec<_> = ptx.entries().map(|(entry, _)| entry).collect();
            assert_eq!(entries, kernel.entries, "{}", kernel.name);
        }
    }
}
