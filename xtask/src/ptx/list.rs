//! Reads `kernels/shipped.toml` and `kernels/mistakes.toml`.

use fs_err as fs;
use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use linrec::kernels::Mistake;
use serde::Deserialize;

/// The shipped modules, and the compiler for them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// The compiler's version: `12.0`.
    pub(super) nvrtc: String,
    /// The compute capability, as in `compute_80`.
    pub(super) architecture: u32,
    #[serde(rename = "kernel")]
    pub(super) kernels: Vec<Kernel>,
}

/// One module of PTX.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kernel {
    /// Its name.
    pub(super) name: String,
    /// The source's path in `kernels`.
    pub(super) source: String,
    /// Its kernels, as C++ writes them.
    pub(super) entries: Vec<String>,
}

impl Kernel {
    /// True for a module to study, not to use: a planted mistake, an exercise, a step of the
    /// ladder, or a way to one long sequence.
    pub(super) fn is_study(&self) -> bool {
        ["broken/", "exercises/", "ladder/", "long/", "fused/"]
            .iter()
            .any(|folder| self.source.starts_with(folder))
    }
}

/// Reads the planted mistakes in the folder `kernels`.
pub(super) fn mistakes(kernels: &Path) -> Result<Vec<Mistake>> {
    let path = kernels.join("mistakes.toml");
    let text = fs::read_to_string(&path)?;
    Mistake::read(&text).map_err(anyhow::Error::msg)
}

impl List {
    /// Reads the kernels of `shipped.toml` and of `mistakes.toml` in the folder `kernels`.
    pub(super) fn read(kernels: &Path) -> Result<List> {
        let path = kernels.join("shipped.toml");
        let text = fs::read_to_string(&path)?;
        let mut list =
            List::parse(&text).with_context(|| format!("{} cannot be used", path.display()))?;
        list.kernels.extend(mistakes(kernels)?.into_iter().map(|mistake| Kernel {
            name: mistake.module(),
            source: format!("{}.cu", mistake.module()),
            entries: mistake.entries,
        }));
        Ok(list)
    }

    pub(super) fn parse(text: &str) -> Result<List> {
        let list: List = toml::from_str(text)?;
        let mut names = HashSet::new();
        for kernel in &list.kernels {
            ensure!(names.insert(&kernel.name), "the name {} is used twice", kernel.name);
            ensure!(!kernel.entries.is_empty(), "{} has no entries", kernel.name);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::List;

    #[test]
    fn mistakes_in_the_list_are_errors() {
        let head = "nvrtc = \"12.0\"\narchitecture = 80\n";
        let kernel = "[[kernel]]\nname = \"a\"\nsource = \"a.cu\"\nentries = [\"a\"]\n";
        assert_eq!(List::parse(&format!("{head}{kernel}")).unwrap().kernels.len(), 1);
        for (text, expected) in [
            (format!("{head}{kernel}{kernel}"), "the name a is used twice"),
            (format!("{head}{}", kernel.replace("[\"a\"]", "[]")), "a has no entries"),
            (format!("{head}{}", kernel.replace("source", "sauce")), "sauce"),
        ] {
            let error = format!("{:#}", List::parse(&text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
