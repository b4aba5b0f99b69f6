//! Compiles the library and the chapters, which all notebooks need, before one is opened.

use fs_err as fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use lesson::output::println;
use walkdir::WalkDir;
use xshell::cmd;

use super::environment::{Lab, STAMP};
use crate::chapters::{self, Chapter};
use crate::notebooks::execute;
use crate::notebooks::format::{Cell, Notebook};
use crate::workspace;

/// The first lines of every notebook.
const LIBRARY: &str = ":dep linrec = { path = \"..\" }\n:dep lesson = { path = \"../crates/lesson\", features = [\"notebook\"] }\n";

/// The source folders and files of the library and the chapters.
const SOURCES: [&str; 8] = [
    "Cargo.toml",
    "Cargo.lock",
    "crates",
    "emulator/nvrtc",
    "emulator/simt",
    "src",
    "kernels",
    "chapters",
];

/// Fetches the workspace's dependencies and lets the kernel compile the library and the chapters,
/// unless nothing has changed since the last time.
pub(super) fn build(lab: &Lab, evcxr: &Path) -> Result<()> {
    let stamp = lab.folder.join(STAMP);
    let chapters = chapters(&lab.root)?;
    let sources = fingerprint(&lab.root);
    let shell = workspace::shell(&lab.root)?;
    let compiler = cmd!(shell, "rustc -Vv").quiet().read().context("rustc cannot be started")?;
    let built_with = format!("{}\n{compiler}\n{chapters}\n{sources:016x}\n", evcxr.display());
    if fs::read_to_string(&stamp).ok().as_deref() == Some(&*built_with) {
        return Ok(());
    }
    println!("fetching the dependencies");
    // For all systems: without the network, cargo reads even the crates that it does not compile.
    let cargo = workspace::cargo();
    let fetched = cmd!(shell, "{cargo} fetch --quiet --locked").quiet().run();
    fetched.context("the dependencies could not be fetched; crates.io must be reachable")?;
    println!(
        "compiling the library, then the chapters, for the notebooks (3 minutes on two cores)"
    );
    let start = Instant::now();
    let cells =
        [("library", format!("{LIBRARY}lesson::notebook::VERSION")), ("chapters", chapters)];
    let cells = cells.map(|(name, code)| Cell::code(name, &code));
    // No file of this name is read. The code's relative paths begin in its folder.
    let path = lab.root.join("notebooks/base.ipynb");
    let run = execute::run(lab.command("python"), &path, &Notebook::new(cells.into()))?;
    if let Some(error) = run.error {
        bail!("this could not be compiled for the notebooks:\n{}", error.message);
    }
    println!("  {:.0} s in all", start.elapsed().as_secs_f64());
    forget_others(&lab.folder.join("kept"))?;
    workspace::write(&stamp, built_with)
}

/// The cell that depends on all chapters.
fn chapters(root: &Path) -> Result<String> {
    let dependency = |chapter: &Chapter| {
        format!(":dep ch{0} = {{ path = \"../chapters/{0}\" }}\n", chapter.folder)
    };
    let all = chapters::read(root)?;
    Ok(all.iter().map(dependency).collect::<String>() + "lesson::notebook::VERSION")
}

/// A hash of the names, sizes and times of all source files.
fn fingerprint(root: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    for folder in SOURCES {
        for entry in WalkDir::new(root.join(folder)).sort_by_file_name().into_iter().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() {
                (entry.path(), metadata.len(), metadata.modified().ok()).hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}

/// Deletes the saved folders of notebooks that are not open. They begin anew with a copy of the new
/// base.
fn forget_others(saved: &Path) -> Result<()> {
    for folder in workspace::entries(saved)? {
        let lock = fs::File::open(folder.join("lock"));
        let is_open = lock.as_ref().is_ok_and(|lock| lock.try_lock().is_err());
        if workspace::name_of(&folder) != "base" && folder.is_dir() && !is_open {
            drop(lock);
            fs::remove_dir_all(&folder)?;
        }
    }
    Ok(())
}
