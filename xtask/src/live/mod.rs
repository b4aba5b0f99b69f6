//! `cargo xtask live`: what runs inside the book's pages, compiled to wasm32 from `crates/live`.
//!
//! It is kept in `crates/live/module`, so that the book is built without a compiler for it: as two modules, since a page waits
//! for every byte, and only that of the puzzles needs their judge. Beside them are the hashes of all that they were made from:
//! `cargo xtask live --check` compares these with what is there.

mod manifest;
mod scenes;

use std::env;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::{puzzles, workspace};
use manifest::Manifest;
pub use scenes::{Scene, Scenes};

/// Where the modules are, and what they were made from.
const FOLDER: &str = "crates/live/module";
const MANIFEST: &str = "sources.txt";
/// The modules, with the features that they are made with (the last one with all), and the scripts of the book that hold them.
const MODULES: [(&str, &[&str], &str); 2] = [
    ("live.wasm.gz", &["--no-default-features"], "module.js"),
    ("puzzles.wasm.gz", &[], "module-puzzles.js"),
];

/// What the script of live pages is made of.
const SCRIPTS: [&str; 6] =
    ["loader.js", "debugger.js", "yours.js", "widget.js", "puzzle.js", "begin.js"];
/// Where they are, with what the page of a reader's own kernel begins with.
pub const SCRIPTS_FOLDER: &str = "xtask/theme/live";
/// The folder of the built book that it is in, with all that it loads.
pub const BUILT: &str = "live";

/// What a page loads at most, in bytes.
const MOST_BYTES: usize = 1_000_000;

const TARGET: &str = "wasm32-unknown-unknown";

/// Compiles the modules and replaces those that are kept; returns what was done, as a sentence.
///
/// # Errors
///
/// When they do not compile, as without the standard library for wasm32, or have become too large.
pub fn generate(root: &Path) -> Result<String> {
    let built = workspace::target(root).join(TARGET).join("release");
    let (mut modules, mut done) = (Vec::new(), Vec::new());
    for (name, features, _) in MODULES {
        compile(root, features)?;
        let module = fs::read(built.join("live.wasm")).context("cargo made no live.wasm")?;
        let packed = pack(&module)?;
        ensure!(packed.len() < MOST_BYTES, "{name} has {} bytes, packed", packed.len());
        done.push(format!("{name} of {} bytes, {} packed", module.len(), packed.len()));
        modules.push((name, packed));
    }
    let manifest = Manifest::of(root, &built.join("live.d"), &modules)?;
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder)?;
    for (name, packed) in &modules {
        fs::write(folder.join(name), packed)?;
    }
    fs::write(folder.join(MANIFEST), manifest.to_string())?;
    Ok(format!("compiled {}", done.join("; ")))
}

fn compile(root: &Path, features: &[&str]) -> Result<()> {
    // Vectors of 16 bytes, which browsers have had for years; and no path of this machine in a message.
    let mut flags = vec!["-Ctarget-feature=+simd128".to_owned()];
    let home = env::var("CARGO_HOME").ok().or_else(|| Some(env::var("HOME").ok()? + "/.cargo"));
    let folders =
        [(Some(root.display().to_string()), "linrec"), (home, "cargo"), (sysroot(), "rust")];
    for (folder, name) in folders {
        flags.extend(folder.map(|folder| format!("--remap-path-prefix={folder}={name}")));
    }
    let status = workspace::cargo()
        .args(["build", "--release", "--quiet", "--package", "live", "--target", TARGET])
        .args(features)
        // Small, since a page waits for it; but for the emulator, for which a reader waits. (Level 3 is larger and no faster.)
        .args(["--config", "profile.release.package.simt.opt-level=2"])
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .envs(
            [
                ("LTO", "true"),
                ("CODEGEN_UNITS", "1"),
                ("OPT_LEVEL", "s"),
                ("PANIC", "abort"),
                ("STRIP", "true"),
            ]
            .map(|(name, value)| (format!("CARGO_PROFILE_RELEASE_{name}"), value)),
        )
        .current_dir(root)
        .status()
        .context("cargo cannot be started")?;
    if !status.success() {
        bail!(
            "the module does not compile; without a standard library for it, try `rustup target add {TARGET}`"
        );
    }
    Ok(())
}

/// The folder of the compiler, in which the sources of the standard library may be.
fn sysroot() -> Option<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// Compares what the module was made from with what is there; returns what was found, as a sentence.
///
/// # Errors
///
/// When a source has changed since, or a module is not the one that was made.
pub fn check(root: &Path) -> Result<String> {
    let folder = root.join(FOLDER);
    let text = fs::read_to_string(folder.join(MANIFEST)).context("there is no module")?;
    let manifest: Manifest = text.parse()?;
    let modules = MODULES.iter().map(|(name, ..)| Ok((*name, packed(root, name)?)));
    let changed = manifest.changed(root, &modules.collect::<Result<Vec<_>>>()?)?;
    ensure!(
        changed.is_empty(),
        "the modules of the live pages are older than {} (`cargo xtask live` makes them again)",
        changed.join(", ")
    );
    Scenes::read(root)?.check(root)?;
    Ok(format!(
        "the modules of the live pages are made from the {} sources that are there",
        manifest.len()
    ))
}

/// Writes into the built book what its live pages load: the script, the modules, and a file for each scene and each puzzle. In
/// scripts, since a page that is opened from disk may load nothing else.
///
/// # Errors
///
/// When something cannot be read or written.
pub fn write(root: &Path, output: &Path) -> Result<()> {
    let scenes = Scenes::read(root)?;
    let folder = output.join(BUILT);
    fs::create_dir_all(&folder)?;
    // In a block, and once: where all chapters are on one page, each of them names the script.
    let mut script = "\"use strict\";\nif (!window.linrecLive?.ask) {\n".to_owned();
    for name in SCRIPTS {
        let path = root.join(SCRIPTS_FOLDER).join(name);
        script += &fs::read_to_string(&path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
    }
    fs::write(folder.join("live.js"), script + "}\n")?;
    for (name, _, script) in MODULES {
        let module = base64::engine::general_purpose::STANDARD.encode(packed(root, name)?);
        let text = format!("linrecLive.arrive(\"module\", \"{module}\");\n");
        fs::write(folder.join(script), text)?;
    }
    for scene in scenes.iter() {
        let name = format!("scene-{}", scene.name);
        let text = format!("linrecLive.arrive({}, {});\n", json!(name), scene.full(root)?);
        fs::write(folder.join(name + ".js"), text)?;
    }
    for (name, puzzle) in puzzles::delivered(root)? {
        let name = format!("puzzle-{name}");
        let text = format!("linrecLive.arrive({}, {puzzle});\n", json!(name));
        fs::write(folder.join(name + ".js"), text)?;
    }
    Ok(())
}

fn pack(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes)?;
    Ok(packer.finish()?)
}

fn packed(root: &Path, name: &str) -> Result<Vec<u8>> {
    fs::read(root.join(FOLDER).join(name)).context("there is no module")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chapters::{self, Chapter};

    /// Here Python or several GPUs would have to run in the page.
    const NOTHING_LIVE: [u32; 2] = [17, 18];

    /// A reader can touch something in every other chapter.
    #[test]
    fn every_chapter_is_live() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for Chapter { number, folder, .. } in chapters::read(&root).unwrap() {
            let page = root.join("chapters").join(&folder).join("README.md");
            let page = fs::read_to_string(page).unwrap();
            let live = ["{{#live ", "{{#widget "].iter().any(|directive| page.contains(directive));
            assert_eq!(live, !NOTHING_LIVE.contains(&number), "is something live in {folder}?");
        }
    }
}
