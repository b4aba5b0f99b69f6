//! Compiles the folder `puzzles` into the crate. To add a puzzle, add a folder there.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Without this feature the crate does not contain the folder.
    if env::var_os("CARGO_FEATURE_FOLDERS").is_none() {
        println!("cargo:rerun-if-changed=build.rs");
        return Ok(());
    }
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let puzzles = here.join("../../puzzles");
    println!("cargo:rerun-if-changed={}", puzzles.display());
    let mut text = String::from("&[\n");
    for folder in sorted(&puzzles)?.into_iter().filter(|path| path.is_dir()) {
        let include = |path: &Path| format!("include_str!({:?})", path.display().to_string());
        let (toml, cu) = (folder.join("puzzle.toml"), folder.join("puzzle.cu"));
        let (toml, cu) = (include(&toml), include(&cu));
        let folder = stem(&folder);
        let _ = writeln!(text, "    Files {{ folder: {folder:?}, toml: {toml}, cu: {cu} }},");
    }
    text.push_str("]\n");
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("puzzles.rs"), text)
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
