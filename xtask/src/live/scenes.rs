//! The scenes of `kernels/live.toml`: launches that a reader steps through.

use fs_err as fs;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use linrec::kernels::{self, Mistake, Ptx};
use serde::Deserialize;
use serde_json::{Value, json};

/// All scenes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenes {
    /// The arguments of kernels, by a name.
    signatures: BTreeMap<String, Vec<String>>,
    #[serde(rename = "scene")]
    scenes: Vec<Scene>,
}

/// A scene. The file explains each line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scene {
    /// Its name in a page's directive.
    pub name: String,
    /// The title above it.
    pub title: String,
    kernel: String,
    entry: String,
    /// A name among the signatures, or else the arguments.
    #[serde(default)]
    takes: String,
    #[serde(default)]
    arguments: Vec<String>,
    grid: String,
    block: String,
    dynamic_shared: Option<String>,
    /// True if the reader may also choose the kernel's twins in `broken`, with one mistake each.
    #[serde(default)]
    mistakes: bool,
    /// More kernels with the same function, which are launched in the same way: each with its first
    /// entry of that function.
    #[serde(default)]
    others: Vec<String>,
    #[serde(default)]
    sizes: BTreeMap<String, [i64; 3]>,
}

impl Scenes {
    /// Reads the list.
    pub fn read(root: &Path) -> Result<Scenes> {
        let text = fs::read_to_string(root.join("kernels/live.toml"))
            .context("kernels/live.toml is missing")?;
        Scenes::parse(&text).context("kernels/live.toml cannot be used")
    }

    fn parse(text: &str) -> Result<Scenes> {
        let mut scenes: Scenes = toml::from_str(text)?;
        let mut names = HashSet::new();
        for scene in &mut scenes.scenes {
            ensure!(names.insert(scene.name.clone()), "the name {} is used twice", scene.name);
            if !scene.takes.is_empty() {
                let arguments = scenes.signatures.get(&scene.takes);
                scene.arguments.clone_from(
                    arguments.with_context(|| format!("there is no signature {}", scene.takes))?,
                );
            }
        }
        Ok(scenes)
    }

    /// The scenes in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Scene> {
        self.scenes.iter()
    }

    /// The scene with a name.
    pub fn named(&self, name: &str) -> Result<&Scene> {
        let scene = self.scenes.iter().find(|scene| scene.name == name);
        scene.with_context(|| format!("there is no scene {name} in kernels/live.toml"))
    }

    /// Checks that every scene can be made.
    pub(super) fn check(&self) -> Result<()> {
        self.scenes.iter().try_for_each(|scene| scene.full().map(drop))
    }
}

impl Scene {
    /// The PTX of a shipped name, the symbol of this scene's entry in it, and its sources.
    fn variant(&self, name: &str) -> Result<Value> {
        let ptx = shipped(name)?;
        let function = |entry: &str| entry.split('<').next().map(str::to_owned);
        let any = self.others.iter().any(|other| other == name);
        let fits =
            |entry: &str| entry == self.entry || any && function(entry) == function(&self.entry);
        let symbol = ptx.entries().find_map(|(entry, symbol)| fits(entry).then_some(symbol));
        let symbol = symbol.with_context(|| format!("{name} has no entry `{}`", self.entry))?;
        let mut sources = BTreeMap::new();
        for line in ptx.text().lines() {
            let file = line.trim().strip_prefix(".file").and_then(|rest| rest.split('"').nth(1));
            let Some(file) = file else { continue };
            let text = file.strip_prefix("kernels/").and_then(kernels::source);
            sources.insert(file, text.with_context(|| format!("there is no source {file}"))?);
        }
        let name = name
            .strip_prefix("broken/")
            .map_or("as it is shipped".to_owned(), |mistake| mistake.replace('_', " "));
        let ptx = without_others(ptx.text(), symbol);
        Ok(json!({ "name": name, "ptx": ptx, "symbol": symbol, "sources": sources }))
    }

    /// The whole scene as a page needs it, with the PTX and its sources.
    pub fn full(&self) -> Result<Value> {
        let wrong = || format!("scene {}", self.name);
        let mut variants = vec![self.variant(&self.kernel).with_context(wrong)?];
        if self.mistakes {
            let source = shipped(&self.kernel)?;
            let source = source.text().lines().next().unwrap_or_default();
            let own = |mistake: &&Mistake| source.contains(&format!(" kernels/{} ", mistake.twin));
            // Not every mistake is in this entry.
            let own = Mistake::all().iter().filter(own);
            variants.extend(own.filter_map(|own| self.variant(&own.module()).ok()));
        }
        for name in &self.others {
            variants.push(self.variant(name).with_context(wrong)?);
        }
        Ok(json!({
            "title": self.title,
            "variants": variants,
            "grid": self.grid,
            "block": self.block,
            "dynamic_shared": self.dynamic_shared,
            "sizes": self.sizes,
            "arguments": self.arguments,
        }))
    }
}

/// The PTX of a shipped name.
fn shipped(name: &str) -> Result<Ptx> {
    let found = kernels::shipped().find(|(shipped, _)| *shipped == name);
    Ok(found.with_context(|| format!("there is no PTX {name}"))?.1)
}

/// The PTX with one kernel. The lines of the others are empty, so that every line keeps its number.
fn without_others(ptx: &str, symbol: &str) -> String {
    let mut lines = String::with_capacity(ptx.len());
    let mut other = false;
    for line in ptx.lines() {
        // The kernel of a template is weak, and other kernels are visible.
        let entry = line.split_once(" .entry ").map(|(_, rest)| rest.split('(').next());
        other |= entry.is_some_and(|entry| entry != Some(symbol));
        lines += if other { "" } else { line };
        lines.push('\n');
        other &= line != "}";
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scene_has_one_kernel() {
        let kernel = |name: &str| format!(".weak .entry {name}(\n)\n{{\nret;\n}}\n");
        let ptx = format!("head\n{}{}{}", kernel("a_1"), kernel("a"), kernel("b"));
        let expected = format!("head\n\n\n\n\n\n{}\n\n\n\n\n", kernel("a"));
        assert_eq!(without_others(&ptx, "a"), expected);
    }

    #[test]
    fn mistakes_in_the_list_are_errors() {
        let head = "[signatures]\nforward = [\"n: i64 = 1\"]\n";
        let scene = "[[scene]]\nname = \"a\"\ntitle = \"A\"\nkernel = \"k\"\nentry = \"e\"\ngrid = \"1\"\nblock = \"32\"\n";
        let takes = "takes = \"forward\"\n";
        let scenes = Scenes::parse(&format!("{head}{scene}{takes}")).unwrap();
        assert_eq!(scenes.named("a").unwrap().arguments, ["n: i64 = 1"]);
        assert!(scenes.named("b").is_err());
        for (text, expected) in [
            (format!("{head}{scene}{scene}"), "the name a is used twice"),
            (format!("{head}{scene}takes = \"backward\"\n"), "no signature backward"),
            (format!("{head}{scene}tekes = \"forward\"\n"), "tekes"),
        ] {
            let error = format!("{:#}", Scenes::parse(&text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
