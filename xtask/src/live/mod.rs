//! `cargo xtask live`: what runs inside the book's pages, compiled to wasm32 from `crates/live`.
//!
//! They are kept in `crates/live/module`, so that the book is built without a compiler for wasm32:
//! as two modules, since a page waits for every byte, and only that of the puzzles needs their
//! judge. Beside them, `made.txt` has their hashes and the version of the emulator in them.
//!
//! A module is made again when the emulator has a new version, or when its answers differ from
//! those of the code that is there: the tests in a browser compare all scenes, widgets and puzzles.
//! Any other change of the emulator leaves it as it is, since each new module adds more than a
//! megabyte to the repository's history.

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
use sha2::{Digest, Sha256};

use crate::{puzzles, workspace};
pub use scenes::{Scene, Scenes};

/// Where the modules are, and what is known of them.
const FOLDER: &str = "crates/live/module";
const MADE: &str = "made.txt";
/// What has the version of the emulator.
const EMULATOR: &str = "emulator/Cargo.toml";
/// The modules, with the features that they are made with (the last one with all), and the scripts
/// of the book that hold them.
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
    // Vectors of 16 bytes, which browsers have had for years; and no path of this machine in a
    // message.
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
        // Small, since a page waits for it; but for the emulator, for which a reader waits. (Level
        // 3 is larger and no faster.)
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

/// Compares the modules with what is known of them, and makes every scene; returns what was found,
/// as a sentence.
///
/// # Errors
///
/// When a module is not the one that was made, the emulator has a new version, or a scene cannot be
/// made.
pub fn check(root: &Path) -> Result<String> {
    let modules = MODULES.iter().map(|(name, ..)| Ok((*name, packed(root, name)?)));
    let made = made(root, &modules.collect::<Result<Vec<_>>>()?)?;
    let kept = fs::read_to_string(root.join(FOLDER).join(MADE)).context("there is no module")?;
    ensure!(
        kept.replace('\r', "") == made,
        "the modules of the live pages are not those of\n{made}(`cargo xtask live` makes them again)"
    );
    Scenes::read(root)?.check()?;
    Ok(format!("the modules of the live pages are those of\n{}", made.trim_end()))
}

/// What is known of the modules: a line for each with its hash, and the emulator's version.
fn made(root: &Path, modules: &[(&str, Vec<u8>)]) -> Result<String> {
    let manifest: toml::Table = fs::read_to_string(root.join(EMULATOR))
        .with_context(|| format!("{EMULATOR} cannot be read"))?
        .parse()?;
    let version = manifest["workspace"]["package"]["version"].as_str();
    let version = version.with_context(|| format!("{EMULATOR} has no version"))?;
    let hash = |bytes: &[u8]| -> String {
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let lines = modules.iter().map(|(name, bytes)| format!("{} {name}\n", hash(bytes)));
    Ok(format!("{}emulator {version}\n", lines.collect::<String>()))
}

/// Writes into the built book what its live pages load: the script, the modules, and a file for
/// each scene and each puzzle. In scripts, since a page that is opened from disk may load nothing
/// else.
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
        let text = format!("linrecLive.arrive({}, {});\n", json!(name), scene.full()?);
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
