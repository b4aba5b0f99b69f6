//! Finds folders and programs of the workspace.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use walkdir::WalkDir;
use xshell::Shell;

/// The root of the workspace: the nearest folder at or above the current one that holds
/// `book.toml`.
pub fn root() -> Result<PathBuf> {
    let here = env::current_dir().context("the current folder cannot be read")?;
    here.ancestors()
        .find(|folder| folder.join("book.toml").is_file())
        .map(Path::to_owned)
        .with_context(|| format!("no book.toml in {} or above it", here.display()))
}

/// The folder for build products: `target`, or the folder that `CARGO_TARGET_DIR` names.
pub fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |named| root.join(named))
}

/// The cargo that runs this program, or else the cargo on the `PATH`.
pub fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// A shell whose commands run in `folder`.
pub fn shell(folder: &Path) -> Result<Shell> {
    let shell = Shell::new()?;
    shell.change_dir(folder);
    Ok(shell)
}

/// The program with the first of these names on the `PATH`.
pub fn find(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<_> = env::split_paths(&path).collect();
    let mut programs = names.iter().flat_map(|name| {
        let name = format!("{name}{}", env::consts::EXE_SUFFIX);
        folders.iter().map(move |folder| folder.join(&name))
    });
    programs.find(|program| program.is_file())
}

/// The folder inside `chapters` of the chapter with the number `name` (`3`), or of the page in the
/// appendix with that name.
pub fn chapter_folder(chapters: &Path, name: &str) -> Result<PathBuf> {
    let number: Option<u32> = name.parse().ok();
    let start = number.map_or(name.to_owned(), |number| format!("{number:02}-"));
    let is_it = |folder: &str| folder == start || number.is_some() && folder.starts_with(&start);
    let mut found = entries(chapters)?;
    found.retain(|path| path.is_dir() && is_it(&name_of(path)));
    match (found.len(), number) {
        (1, _) => Ok(found.remove(0)),
        (0, Some(number)) => {
            bail!("there is no chapter {number}: no folder {number:02}-… in {}", chapters.display())
        }
        (0, None) => bail!("there is no folder {name} in {}", chapters.display()),
        _ => bail!("several folders in {} are chapter {name}", chapters.display()),
    }
}

/// The paths of all files and folders in `folder`, in the order of their names.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs_err::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// The package of the folder with this name inside `chapters`.
pub fn package_of(folder: &str) -> String {
    let numbered = folder.starts_with(|c: char| c.is_ascii_digit());
    format!("{}{folder}", if numbered { "ch" } else { "appendix-" })
}

/// The number at the start of the name of a chapter's folder or notebook: 3 of `03-matrix-form`.
pub fn number_of(name: &str) -> Option<u32> {
    name.split_once('-')?.0.parse().ok()
}

/// The last component of `path` as text, which is empty for a path without one.
pub fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The files in `folder` with this extension, down to `depth` (1: in the folder itself), in the
/// order of their names. A folder that does not exist has none.
pub fn files(folder: &Path, extension: &str, depth: usize) -> Vec<PathBuf> {
    let entries = WalkDir::new(folder).max_depth(depth).sort_by_file_name().into_iter();
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.into_path())).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == extension));
    files
}

/// Writes a file as a whole or not at all.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    lesson::files::write(path, content)
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// Copies a file, or a folder with all that is in it, to the path `to`. Missing folders above it
/// are created.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in WalkDir::new(from) {
        let entry = entry?;
        let inner = entry.path().strip_prefix(from)?;
        let target = if entry.depth() == 0 { to.to_owned() } else { to.join(inner) };
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&target)?;
        } else {
            target.parent().map_or(Ok(()), fs_err::create_dir_all)?;
            fs_err::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
