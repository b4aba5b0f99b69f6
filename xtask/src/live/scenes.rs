//! `kernels/live.toml`: the launches that a reader can go through.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ptx::List;

/// All of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenes {
    /// What kernels take, by a name.
    signatures: BTreeMap<String, Vec<String>>,
    #[serde(rename = "scene")]
    scenes: Vec<Scene>,
}

/// One of them. The file says what each line means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scene {
    /// What a page calls it.
    pub name: String,
    /// What a reader sees above it.
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
    /// Whether the reader may also choose the kernel's twins in `broken`, with one mistake each.
    #[serde(default)]
    mistakes: bool,
    /// More kernels of the same function, launched in the same way: each in its own first entry of that.
    #[serde(default)]
    others: Vec<String>,
    #[serde(default)]
    sizes: BTreeMap<String, [i64; 3]>,
}

impl Scenes {
    /// Reads the list.
    ///
    /// # Errors
    ///
    /// When it is missing, or something in it is.
    pub fn read(root: &Path) -> Result<Scenes> {
        let text = fs::read_to_string(root.join("kernels/live.toml"))
            .context("kernels/live.toml is missing")?;
        Scenes::parse(&text).context("kernels/live.toml cannot be used")
    }

    fn parse(text: &str) -> Result<Scenes> {
        let mut scenes: Scenes = toml::from_str(text)?;
        let mut names = HashSet::new();
        for scene in &mut scenes.scenes {
            ensure!(names.insert(scene.name.clone()), "the name {} stands there twice", scene.name);
            if !scene.takes.is_empty() {
                let arguments = scenes.signatures.get(&scene.takes);
                scene.arguments.clone_from(
                    arguments.with_context(|| format!("there is no signature {}", scene.takes))?,
                );
            }
        }
        Ok(scenes)
    }

    /// The scenes, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Scene> {
        self.scenes.iter()
    }

    /// The scene of a name.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn named(&self, name: &str) -> Result<&Scene> {
        let scene = self.scenes.iter().find(|scene| scene.name == name);
        scene.with_context(|| format!("there is no scene {name} in kernels/live.toml"))
    }

    /// Whether all can be made.
    pub(super) fn check(&self, root: &Path) -> Result<()> {
        self.scenes.iter().try_for_each(|scene| scene.full(root).map(drop))
    }
}

impl Scene {
    /// The names of the kernel's broken twins: the first line of each names it.
    fn broken(&self, root: &Path) -> Result<Vec<String>> {
        let list = List::read(&root.join("kernels/shipped.toml"))?;
        let own = list.kernels.iter().find(|kernel| kernel.name == self.kernel);
        let own = own.with_context(|| format!("{} is not shipped", self.kernel))?;
        let twin = format!("// {} with one mistake: ", own.source);
        let mut names = Vec::new();
        for kernel in list.kernels.iter().filter(|kernel| kernel.source.starts_with("broken/")) {
            let text = fs::read_to_string(root.join("kernels").join(&kernel.source))
                .with_context(|| format!("there is no source {}", kernel.source))?;
            names.extend(text.starts_with(&twin).then(|| kernel.name.clone()));
        }
        Ok(names)
    }

    /// The PTX of a shipped name, with this scene's entry in it, and what it was compiled from.
    fn variant(&self, root: &Path, name: &str) -> Result<Value> {
        let path = root.join("kernels/ptx").join(format!("{name}.ptx"));
        let ptx = fs::read_to_string(&path).with_context(|| format!("there is no PTX {name}"))?;
        let function = |entry: &str| entry.split('<').next().map(str::to_owned);
        let any = self.others.iter().any(|other| other == name);
        let symbol = ptx.lines().find_map(|line| {
            let (entry, symbol) = line.strip_prefix("// entry ")?.split_once(" = ")?;
            let fits = entry == self.entry || any && function(entry) == function(&self.entry);
            fits.then_some(symbol)
        });
        let symbol = symbol.with_context(|| format!("{name} has no entry `{}`", self.entry))?;
        let mut sources = BTreeMap::new();
        for line in ptx.lines() {
            let file = line.trim().strip_prefix(".file").and_then(|rest| rest.split('"').nth(1));
            let Some(file) = file else { continue };
            let text = fs::read_to_string(root.join(file))
                .with_context(|| format!("there is no source {file}"))?;
            sources.insert(file.to_owned(), text);
        }
        let name = name
            .strip_prefix("broken/")
            .map_or("as it is shipped".to_owned(), |mistake| mistake.replace('_', " "));
        let ptx = without_others(&ptx, symbol);
        Ok(json!({ "name": name, "ptx": ptx, "symbol": symbol, "sources": sources }))
    }

    /// All that a page needs of it: the PTX and its sources, too.
    ///
    /// # Errors
    ///
    /// When its kernel is not shipped, or a source of it is missing.
    pub fn full(&self, root: &Path) -> Result<Value> {
        let wrong = || format!("scene {}", self.name);
        let shipped = self.variant(root, &self.kernel).with_context(wrong)?;
        let mut variants = vec![shipped];
        if self.mistakes {
            for name in self.broken(root).with_context(wrong)? {
                // Not every mistake is in this entry.
                variants.extend(self.variant(root, &name).ok());
            }
        }
        for name in &self.others {
            variants.push(self.variant(root, name).with_context(wrong)?);
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

/// The PTX with other kernels than one left out, every line where it was.
fn without_others(ptx: &str, symbol: &str) -> String {
    let mut lines = String::with_capacity(ptx.len());
    let mut other = false;
    for line in ptx.lines() {
        // Of a template it is weak, others are visible.
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
            (format!("{head}{scene}{scene}"), "the name a stands there twice"),
            (format!("{head}{scene}takes = \"backward\"\n"), "no signature backward"),
            (format!("{head}{scene}tekes = \"forward\"\n"), "tekes"),
        ] {
            let error = format!("{:#}", Scenes::parse(&text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
