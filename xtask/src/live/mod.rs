//! `cargo xtask live`: what runs inside the book's pages, compiled to wasm32 from `crates/live`.
//!
//! The modules are committed in `crates/live/module`, so that the book builds without a compiler
//! for wasm32. There are two, since a page waits for every byte, and only the page of the puzzles
//! needs their judge. Beside them, `licences.txt.gz` has the licences of the crates in them, and
//! `made.txt` the hashes of all three and the version of their emulator.
//!
//! A module is compiled again when the emulator has a new version, or when its answers differ from
//! the answers of the present code: the tests in a browser compare all scenes, widgets and puzzles.
//! Any other change of the emulator leaves the module alone, since each new one adds more than a
//! megabyte to the repository's history.

mod scenes;

use fs_err as fs;
use std::env;
use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use xshell::cmd;

use crate::{dependencies, puzzles, workspace};
pub use scenes::{Scene, Scenes};

/// The folder of the modules, and the file with their hashes.
const FOLDER: &str = "crates/live/module";
const MADE: &str = "made.txt";
/// The file with the licences of the crates in them.
const LICENCES: &str = "licences.txt.gz";
/// The file with the version of the emulator.
const EMULATOR: &str = "emulator/Cargo.toml";
/// The modules, their features (the last module has all), and the scripts of the book that hold
/// them.
const MODULES: [(&str, &[&str], &str); 2] = [
    ("live.wasm.gz", &["--no-default-features"], "module.js"),
    ("puzzles.wasm.gz", &[], "module-puzzles.js"),
];

/// The parts of the script of live pages.
const SCRIPTS: [&str; 6] =
    ["loader.js", "debugger.js", "yours.js", "widget.js", "puzzle.js", "begin.js"];
/// The folder of the scripts, and of the example on the page "Your own kernel".
pub const SCRIPTS_FOLDER: &str = "xtask/theme/live";
/// The folder of the built book with the script and all that it loads.
pub const BUILT: &str = "live";

/// The most bytes of a packed module.
const MOST_BYTES: usize = 1_000_000;

const TARGET: &str = "wasm32-unknown-unknown";

/// Compiles the modules and replaces the committed ones; returns a sentence about them.
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
    let licences = dependencies::licences(root, "crates/live/Cargo.toml", TARGET)?;
    modules.push((LICENCES, pack(licences.as_bytes())?));
    let made = made(root, &modules)?;
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder)?;
    for (name, packed) in &modules {
        fs::write(folder.join(name), packed)?;
    }
    fs::write(folder.join(MADE), made)?;
    Ok(format!("compiled {}", done.join("; ")))
}

fn compile(root: &Path, features: &[&str]) -> Result<()> {
    // Vectors of 16 bytes, which browsers have had for years. Messages have no path of this
    // machine.
    let mut flags = vec!["-Ctarget-feature=+simd128".to_owned()];
    let home = env::var("CARGO_HOME").ok().or_else(|| Some(env::var("HOME").ok()? + "/.cargo"));
    let (shell, cargo) = (workspace::shell(root)?, workspace::cargo());
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    // The folder of the compiler may hold the sources of the standard library.
    let sysroot = cmd!(shell, "{rustc} --print sysroot").quiet().read().ok();
    let folders =
        [(Some(root.display().to_string()), "linrec"), (home, "cargo"), (sysroot, "rust")];
    for (folder, name) in folders {
        flags.extend(folder.map(|folder| format!("--remap-path-prefix={folder}={name}")));
    }
    let mut build = cmd!(shell, "{cargo} build --release --quiet --package live --target {TARGET}")
        .args(features)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    // Optimised for size, since a page waits for the module; but the emulator for speed, since a
    // reader waits for it. (Level 3 is larger and no faster.)
    for setting in [
        "lto=true",
        "codegen-units=1",
        "opt-level='s'",
        "panic='abort'",
        "strip=true",
        "package.linrec-simt.opt-level=2",
    ] {
        build = build.args(["--config", &format!("profile.release.{setting}")]);
    }
    let advice = format!("without a standard library for it, try `rustup target add {TARGET}`");
    build.quiet().run().with_context(|| format!("the module does not compile; {advice}"))
}

/// Compares the modules with their hashes, and makes every scene; returns a sentence about them.
pub fn check(root: &Path) -> Result<String> {
    let names = MODULES.map(|(name, ..)| name).into_iter().chain([LICENCES]);
    let modules = names.map(|name| Ok((name, packed(root, name)?)));
    let made = made(root, &modules.collect::<Result<Vec<_>>>()?)?;
    let committed =
        fs::read_to_string(root.join(FOLDER).join(MADE)).context("there is no module")?;
    ensure!(
        committed.replace('\r', "") == made,
        "the modules of the live pages are not those of\n{made}(`cargo xtask live` makes them again)"
    );
    Scenes::read(root)?.check()?;
    Ok(format!("the modules of the live pages are those of\n{}", made.trim_end()))
}

/// The text of `made.txt`: a line with the hash of each module, and the emulator's version.
fn made(root: &Path, modules: &[(&str, Vec<u8>)]) -> Result<String> {
    let manifest: toml::Table = fs::read_to_string(root.join(EMULATOR))?.parse()?;
    let version = manifest["workspace"]["package"]["version"].as_str();
    let version = version.with_context(|| format!("{EMULATOR} has no version"))?;
    let lines = modules
        .iter()
        .map(|(name, bytes)| format!("{} {name}\n", hex::encode(Sha256::digest(bytes))));
    Ok(format!("{}emulator {version}\n", lines.collect::<String>()))
}

/// Writes the files that live pages load into the built book: the script, the modules, and a file
/// for each scene and each puzzle. All are scripts: a page that is opened from disk can load
/// nothing else.
pub fn write(root: &Path, output: &Path) -> Result<()> {
    let scenes = Scenes::read(root)?;
    let folder = output.join(BUILT);
    fs::create_dir_all(&folder)?;
    // In a block, and only once: a page with all chapters names the script for each of them.
    let mut script = "\"use strict\";\nif (!window.linrecLive?.ask) {\n".to_owned();
    for name in SCRIPTS {
        let path = root.join(SCRIPTS_FOLDER).join(name);
        script += &fs::read_to_string(&path)?;
    }
    fs::write(folder.join("live.js"), script + "}\n")?;
    let mut licences = String::new();
    GzDecoder::new(&*packed(root, LICENCES)?).read_to_string(&mut licences)?;
    fs::write(folder.join("licences.txt"), licences)?;
    let write = |file: &str, name: &str, value: &Value| {
        let text = format!("linrecLive.arrive({}, {value});\n", json!(name));
        fs::write(folder.join(file), text)
    };
    for (name, _, script) in MODULES {
        let module = base64::engine::general_purpose::STANDARD.encode(packed(root, name)?);
        write(script, "module", &json!(module))?;
    }
    for scene in scenes.iter() {
        let name = format!("scene-{}", scene.name);
        write(&format!("{name}.js"), &name, &scene.full()?)?;
    }
    for (name, puzzle) in puzzles::delivered(root)? {
        let name = format!("puzzle-{name}");
        write(&format!("{name}.js"), &name, &puzzle)?;
    }
    Ok(())
}

/// Packs bytes as `gzip -9` does.
pub fn pack(bytes: &[u8]) -> Result<Vec<u8>> {
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

    /// The chapters that need Python or several GPUs.
    const NOTHING_LIVE: [u32; 2] = [17, 18];

    /// Every other chapter has something live.
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
