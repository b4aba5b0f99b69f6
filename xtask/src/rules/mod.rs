//! The rules that keep the project light. They read what git tracks, and what a change does to it.

mod budget;
mod change;
mod circles;
mod made;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::failure::{self, Failure};

/// Checks all rules; those on changes from the commit `since`, or else from where this branch left
/// the main one.
///
/// # Errors
///
/// When a file cannot be read, or something breaks a rule; all of it is listed.
pub fn check(root: &Path, since: Option<&str>) -> Result<String> {
    let Some(files) = tracked(root) else {
        return Ok("git tracks nothing here: the rules are about what it tracks".to_owned());
    };
    let mut faults = made::faults(root, &files)?;
    faults.extend(budget::faults(root, &files)?);
    let changes = match start(root, since)? {
        Some(start) => {
            faults.extend(change::wide_comments(root, &start)?);
            faults.extend(change::raised_without_reason(root, &start)?);
            format!("and so do the changes since {start}")
        }
        None => "there is no history, so what a change does was not looked at".to_owned(),
    };
    failure::none_of(&faults, "what git tracks")?;
    Ok(format!("{} files keep to the rules, {changes}", files.len()))
}

/// Makes the budgets what there is now, rounded up.
///
/// # Errors
///
/// When git tracks nothing here, or a file cannot be read or written.
pub fn set(root: &Path) -> Result<String> {
    budget::set(root, &tracked(root).context("git tracks nothing here")?)
}

/// What git says to these arguments, where it succeeds.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The files that git tracks, as far as they are there, from the root with slashes.
fn tracked(root: &Path) -> Option<Vec<String>> {
    let list = git(root, &["ls-files", "-z"])?;
    let files = list.split('\0').filter(|file| root.join(file).is_file());
    Some(files.map(str::to_owned).collect::<Vec<_>>()).filter(|files| !files.is_empty())
}

/// The commit before the change that is looked at.
fn start(root: &Path, since: Option<&str>) -> Result<Option<String>> {
    let commit = |name: &str| Some(git(root, &["rev-parse", "--short", name])?.trim().to_owned());
    if let Some(name) = since {
        return commit(name).with_context(|| format!("there is no commit {name}")).map(Some);
    }
    let left = git(root, &["merge-base", "origin/main", "HEAD"]);
    let left = left
        .and_then(|name| commit(name.trim()))
        .filter(|left| commit("HEAD") != Some(left.clone()));
    Ok(left.or_else(|| commit("HEAD~1")))
}

/// The folders of the packages, and of each the files in it that are in no package further below.
fn packages(root: &Path, files: &[String]) -> Result<BTreeMap<String, Vec<String>>> {
    let mut packages = BTreeMap::new();
    for manifest in files.iter().filter(|file| is_manifest(file)) {
        if text(root, manifest)?.lines().any(|line| line == "[package]") {
            packages.insert(manifest.trim_end_matches("Cargo.toml").to_owned(), Vec::new());
        }
    }
    for file in files {
        // The longest of the folders that it is below.
        let owner = packages.iter_mut().rev().find(|(folder, _)| file.starts_with(*folder));
        if let Some((_, its)) = owner {
            its.push(file.clone());
        }
    }
    Ok(packages)
}

fn is_manifest(file: &str) -> bool {
    file == "Cargo.toml" || file.ends_with("/Cargo.toml")
}

fn text(root: &Path, file: &str) -> Result<String> {
    fs::read_to_string(root.join(file)).with_context(|| format!("{file} cannot be read"))
}

fn fault(file: &str, line: Option<usize>, what: impl Into<String>) -> Failure {
    Failure::new(Path::new(file), line, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with a package in its root and one below, in which all is as it should be.
    struct Repository(tempfile::TempDir);

    impl Repository {
        fn new() -> Self {
            let repository = Self(tempfile::tempdir().unwrap());
            repository.git(&["init", "--quiet"]);
            repository.write(
                "Cargo.toml",
                "[workspace]\nmembers = []\n\n[package]\nname = \"all\"\n\n[lib]\n",
            );
            repository.write("src/lib.rs", "mod a;\nmod b;\n");
            repository.write("src/a.rs", "use crate::b;\n");
            repository.write("src/b/mod.rs", "// b\n");
            repository.write("low/Cargo.toml", "[package]\nname = \"low\"\n");
            repository.write("low/src/lib.rs", format!("// {}\n", "wide ".repeat(30)));
            set(repository.root()).unwrap();
            repository.commit("All");
            repository
        }

        fn root(&self) -> &Path {
            self.0.path()
        }

        fn git(&self, arguments: &[&str]) -> String {
            let named = ["-c", "user.name=one", "-c", "user.email=one@example.org"];
            git(self.root(), &[&named, arguments].concat()).unwrap()
        }

        fn write(&self, file: &str, text: impl AsRef<[u8]>) {
            let path = self.root().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            self.git(&["add", "--all"]);
        }

        fn edit(&self, file: &str, old: &str, new: &str) {
            let text = text(self.root(), file).unwrap();
            assert!(text.contains(old), "{text}");
            self.write(file, text.replacen(old, new, 1));
        }

        fn commit(&self, message: &str) {
            self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        }

        #[track_caller]
        fn breaks(&self, rule: &str) {
            let said = check(self.root(), None).unwrap_err().to_string();
            assert!(said.contains("1 failure") && said.contains(rule), "{said}");
        }

        #[track_caller]
        fn keeps(&self, said: &str) {
            let message = check(self.root(), None).unwrap();
            assert!(message.contains(said), "{message}");
        }
    }

    #[test]
    fn without_git_or_history_what_cannot_be_checked_is_said() {
        let empty = tempfile::tempdir().unwrap();
        assert!(check(empty.path(), None).unwrap().contains("git tracks nothing here"));
        let all = Repository::new();
        all.keeps("there is no history");
        all.commit("More");
        all.keeps("and so do the changes since");
    }

    #[test]
    fn a_budget_is_there_and_holds() {
        let all = Repository::new();
        assert!(
            text(all.root(), "low/Cargo.toml")
                .unwrap()
                .ends_with("budget = { lines = 50, files = 1 }\n")
        );
        all.write("low/src/lib.rs", "\n".repeat(51));
        all.breaks("low/Cargo.toml: low has 51 lines, and its budget is 50");
        all.write("low/src/lib.rs", "");
        all.edit("low/Cargo.toml", "metadata.budget", "metadata.purse");
        all.breaks("low/Cargo.toml: low has no budget");
        all.edit("low/Cargo.toml", "metadata.purse", "metadata.budget");
        all.write("more.txt", "more");
        all.breaks("Cargo.toml: the workspace has 7 files, and its budget is 6");
        set(all.root()).unwrap();
        all.keeps("7 files");
    }

    #[test]
    fn a_raised_budget_has_a_reason() {
        let all = Repository::new();
        all.edit("low/Cargo.toml", "lines = 50", "lines = 49");
        all.commit("Less");
        all.keeps("the rules");
        all.edit("low/Cargo.toml", "lines = 49", "lines = 50");
        all.commit("More");
        all.breaks("low/Cargo.toml: the commit \"More\" raises lines from 49 to 50");
        all.git(&[
            "commit",
            "--quiet",
            "--amend",
            "--message",
            "More\n\nThe budget grows by a line.",
        ]);
        all.keeps("the rules");
    }

    #[test]
    fn comments_are_narrow_where_a_change_touches_a_file() {
        let all = Repository::new();
        all.git(&["mv", "low/src/lib.rs", "low/src/main.rs"]);
        all.commit("Only moved");
        all.keeps("the rules");
        all.edit("low/src/main.rs", "// ", "\n// ");
        all.breaks("low/src/main.rs:2: the comment is 153 columns wide");
        let long = "a".repeat(100);
        let kept = format!(
            "// https://{long}\n// ```console\n// cargo {long}\n// ```\n// | a | {long} |\n"
        );
        all.write("low/src/main.rs", kept);
        all.keeps("the rules");
    }

    #[test]
    fn nothing_made_is_there_uncompressed() {
        let all = Repository::new();
        let files = [
            ("a.ptx", vec![]),
            ("b.csv", vec![b'1'; 60_001]),
            ("c.bin", vec![0; 100_001]),
            ("d.wasm", vec![]),
        ];
        for (file, bytes) in files {
            all.write(&format!("src/{file}"), bytes);
            set(all.root()).unwrap();
            all.breaks(&format!("src/{file}: "));
            all.git(&["rm", "--quiet", "--force", &format!("src/{file}")]);
        }
        all.write("src/e.zst", vec![0; 100_001]);
        set(all.root()).unwrap();
        all.keeps("the rules");
    }

    #[test]
    fn a_circle_of_modules_is_found() {
        let all = Repository::new();
        for code in ["use crate::{c, a::A};\n", "fn f(_: super::a::A) {}\n"] {
            all.write("src/b/mod.rs", code);
            all.breaks("all has 2 modules in circles (a, b), and its budget is 0");
        }
        set(all.root()).unwrap();
        assert!(text(all.root(), "Cargo.toml").unwrap().contains("circles = 2 }\n"));
        all.keeps("the rules");
        for code in ["// crate::a\n", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"] {
            all.write("src/b/mod.rs", code);
            set(all.root()).unwrap();
            assert!(!text(all.root(), "Cargo.toml").unwrap().contains("circles"), "{code}");
        }
        all.write("src/lib.rs", "pub use a::A;\n");
        all.write("src/b/mod.rs", "use crate::A;\n");
        all.breaks("modules in circles (a, b)");
    }
}
