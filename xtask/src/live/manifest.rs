//! What the modules were made from: each source with its hash, and the packages of others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Error, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::workspace;

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The hashes of the modules themselves, packed, by their names.
    modules: BTreeMap<String, String>,
    /// Hashes by the path from the root.
    sources: BTreeMap<String, String>,
    /// `serde 1.0.228`
    packages: BTreeSet<String>,
}

/// The files that cargo has listed, and the manifests of their packages, all below the root.
fn sources(root: &Path, listed: &Path) -> Result<BTreeSet<PathBuf>> {
    let text = fs::read_to_string(listed).context("cargo does not say what it compiled")?;
    let (_, list) = text.split_once(": ").context("cargo does not say what it compiled")?;
    // A blank in a name has a backslash before it.
    let files = list.trim().replace("\\ ", "\0");
    let files = files.split(' ').map(|file| PathBuf::from(file.replace('\0', " ")));
    let mut paths = BTreeSet::new();
    for file in files {
        let Ok(path) = file.strip_prefix(root) else { bail!("{} is not ours", file.display()) };
        let path = resolved(path);
        let package =
            path.ancestors().find(|folder| root.join(folder).join("Cargo.toml").is_file());
        paths.extend(package.map(|folder| folder.join("Cargo.toml")));
        paths.insert(path);
    }
    // What the root says changes with every package.
    paths.remove(Path::new("Cargo.toml"));
    Ok(paths)
}

/// The path without `..`, which cargo leaves in what a source includes.
fn resolved(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            resolved.pop();
        } else {
            resolved.push(part);
        }
    }
    resolved
}

impl Manifest {
    /// That of modules that have just been made; `listed` is what cargo says of the sources.
    pub fn of(root: &Path, listed: &Path, modules: &[(&str, Vec<u8>)]) -> Result<Manifest> {
        let sources = sources(root, listed)?.into_iter().map(|path| {
            let name = path.to_string_lossy().replace('\\', "/");
            Ok((name, hash_of(&root.join(path))?))
        });
        Ok(Manifest {
            modules: modules.iter().map(|(name, bytes)| (name.to_string(), hash(bytes))).collect(),
            sources: sources.collect::<Result<_>>()?,
            packages: packages(root)?,
        })
    }

    /// How many sources there are.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// What is not as it was.
    pub fn changed(&self, root: &Path, modules: &[(&str, Vec<u8>)]) -> Result<Vec<String>> {
        let mut changed = Vec::new();
        for (name, bytes) in modules {
            if self.modules.get(*name) != Some(&hash(bytes)) {
                changed.push(name.to_string());
            }
        }
        for (path, before) in &self.sources {
            if hash_of(&root.join(path)).ok().as_ref() != Some(before) {
                changed.push(path.clone());
            }
        }
        let lock = fs::read_to_string(root.join("Cargo.lock")).context("there is no Cargo.lock")?;
        for package in &self.packages {
            let (name, version) = package.split_once(' ').unwrap_or((package, ""));
            if !lock
                .replace('\r', "")
                .contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n"))
            {
                changed.push(package.clone());
            }
        }
        Ok(changed)
    }
}

/// The packages of others that are compiled into it.
fn packages(root: &Path) -> Result<BTreeSet<String>> {
    let output = workspace::cargo()
        .args(["tree", "--package", "live", "--target", super::TARGET])
        .args(["--edges", "normal,no-proc-macro", "--prefix", "none"])
        .current_dir(root)
        .output()
        .context("cargo cannot be started")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let others = text.lines().filter(|line| !line.contains(" (/") && !line.contains(":\\"));
    let package = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?.trim_start_matches('v')))
    };
    Ok(others.filter_map(package).collect())
}

fn hash_of(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    // As it is on every system.
    Ok(hash(&bytes.into_iter().filter(|&byte| byte != b'\r').collect::<Vec<_>>()))
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# What the modules were made from: `cargo xtask live` writes it, and --check compares."
        )?;
        for (name, hash) in &self.modules {
            writeln!(f, "module {hash} {name}")?;
        }
        for (path, hash) in &self.sources {
            writeln!(f, "source {hash} {path}")?;
        }
        self.packages.iter().try_for_each(|package| writeln!(f, "package {package}"))
    }
}

impl FromStr for Manifest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Manifest> {
        let mut manifest = Manifest {
            modules: BTreeMap::new(),
            sources: BTreeMap::new(),
            packages: BTreeSet::new(),
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.split_once(' ') {
                Some((kind @ ("module" | "source"), rest)) => {
                    let (hash, name) = rest.split_once(' ').context("a hash without a name")?;
                    let all = match kind {
                        "module" => &mut manifest.modules,
                        _ => &mut manifest.sources,
                    };
                    all.insert(name.to_owned(), hash.to_owned());
                }
                Some(("package", name)) => drop(manifest.packages.insert(name.to_owned())),
                _ => bail!("`{line}` is no line of a list of sources"),
            }
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_have_one_name_each_and_the_root_manifest_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("of/src")).unwrap();
        fs::create_dir(root.join("data")).unwrap();
        for name in ["Cargo.toml", "of/Cargo.toml", "of/src/a.rs", "data/a.csv"] {
            fs::write(root.join(name), "").unwrap();
        }
        let listed = root.join("a.d");
        let source = |name: &str| root.join(name).display().to_string().replace(' ', "\\ ");
        let files =
            ["of/src/a.rs", "of/src/../../Cargo.toml", "of/src/../../data/a.csv"].map(source);
        fs::write(&listed, format!("module: {}\n", files.join(" "))).unwrap();
        let sources = sources(root, &listed).unwrap();
        let names: Vec<_> = sources.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(names, ["data/a.csv", "of/Cargo.toml", "of/src/a.rs"]);
    }

    #[test]
    fn what_changes_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let lock = "[[package]]\nname = \"serde\"\nversion = \"1.0.1\"\n";
        fs::write(root.join("Cargo.lock"), lock).unwrap();
        fs::write(root.join("a.rs"), "fn a() {}\n").unwrap();
        let manifest = Manifest {
            modules: BTreeMap::from([("a.wasm.gz".to_owned(), hash(b"module"))]),
            sources: BTreeMap::from([("a.rs".to_owned(), hash_of(&root.join("a.rs")).unwrap())]),
            packages: BTreeSet::from(["serde 1.0.1".to_owned()]),
        };
        assert_eq!(manifest.to_string().parse::<Manifest>().unwrap(), manifest);
        let changed =
            |module: &[u8]| manifest.changed(root, &[("a.wasm.gz", module.to_vec())]).unwrap();
        assert_eq!(changed(b"module"), Vec::<String>::new());
        assert_eq!(changed(b"other"), ["a.wasm.gz"]);
        fs::write(root.join("a.rs"), "fn a() {}\r\n").unwrap();
        assert_eq!(changed(b"module"), Vec::<String>::new());
        fs::write(root.join("a.rs"), "fn b() {}\n").unwrap();
        fs::write(root.join("Cargo.lock"), lock.replace("1.0.1", "1.0.2")).unwrap();
        assert_eq!(changed(b"module"), ["a.rs", "serde 1.0.1"]);
        fs::remove_file(root.join("a.rs")).unwrap();
        assert_eq!(changed(b"module"), ["a.rs", "serde 1.0.1"]);
        assert!("rubbish".parse::<Manifest>().is_err());
    }
}
