//! `kernels/shipped.toml`.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// What is shipped, and which compiler makes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// The compiler's version: `12.0`.
    pub(super) nvrtc: String,
    /// The compute capability, as in `compute_80`.
    pub(super) architecture: u32,
    #[serde(rename = "kernel")]
    pub(crate) kernels: Vec<Kernel>,
}

/// One PTX file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kernel {
    /// Its path in `kernels/ptx`, without the ending.
    pub(crate) name: String,
    /// The source's path in `kernels`.
    pub(crate) source: String,
    /// Its kernels, as C++ writes them.
    pub(crate) entries: Vec<String>,
}

impl Kernel {
    /// Whether it is there to be studied, not to be used: a planted mistake, an exercise, a step of the
    /// ladder, or a way to one long sequence.
    pub(super) fn is_study(&self) -> bool {
        ["broken/", "exercises/", "ladder/", "long/", "fused/"]
            .iter()
            .any(|folder| self.source.starts_with(folder))
    }
}

impl List {
    pub(crate) fn read(path: &Path) -> Result<List> {
        let text =
            fs::read_to_string(path).with_context(|| format!("{} is missing", path.display()))?;
        List::parse(&text).with_context(|| format!("{} cannot be used", path.display()))
    }

    pub(super) fn parse(text: &str) -> Result<List> {
        let list: List = toml::from_str(text)?;
        let mut names = HashSet::new();
        for kernel in &list.kernels {
            ensure!(names.insert(&kernel.name), "the name {} stands there twice", kernel.name);
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
            (format!("{head}{kernel}{kernel}"), "the name a stands there twice"),
            (format!("{head}{}", kernel.replace("[\"a\"]", "[]")), "a has no entries"),
            (format!("{head}{}", kernel.replace("source", "sauce")), "sauce"),
        ] {
            let error = format!("{:#}", List::parse(&text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
