//! `cargo xtask rules`: the rules that keep the project light and its words plain.
//!
//! They read the files that git tracks, and the changes of a branch. CONTRIBUTING.md lists the
//! rules for people. A rule that the tree does not keep yet has a number in the package's budget,
//! which may only shrink. The tests below break each rule in a repository made for them, in which
//! all else is as it should be.

mod budget;
mod change;
mod circles;
mod made;
mod repository;
mod words;

use std::path::Path;

use anyhow::{Context, Result};

use crate::failure;
use repository::{start, tracked};

/// Checks all rules. The rules on changes look at the commits after `since`, or else after this
/// branch left the main one.
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
        None => "there is no history, so no change was looked at".to_owned(),
    };
    failure::none_of(&faults, "what git tracks")?;
    Ok(format!("{} files keep to the rules, {changes}", files.len()))
}

/// Sets all budgets to the present numbers, rounded up.
pub fn set(root: &Path) -> Result<String> {
    budget::set(root, &tracked(root).context("git tracks nothing here")?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::repository::{git, text};
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
            repository.write("src/b.rs", "// b\n");
            repository.write("low/Cargo.toml", "[package]\nname = \"low\"\n");
            repository.write("low/src/lib.rs", format!("// {}\n", "wide ".repeat(30)));
            repository.set();
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

        fn set(&self) {
            set(self.root()).unwrap();
        }

        fn commit(&self, message: &str) {
            self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        }

        #[track_caller]
        fn breaks(&self, rule: &str) {
            let error = check(self.root(), None).unwrap_err().to_string();
            assert!(error.contains("1 failure") && error.contains(rule), "{error}");
        }

        #[track_caller]
        fn keeps(&self, words: &str) {
            let message = check(self.root(), None).unwrap();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn without_git_or_history_the_answer_says_so() {
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
        all.set();
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
        let wide = format!(
            "// https://{long}\n// ```console\n// cargo {long}\n// ```\n// | a | {long} |\n"
        );
        all.write("low/src/main.rs", wide);
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
            all.set();
            all.breaks(&format!("src/{file}: "));
            all.git(&["rm", "--quiet", "--force", &format!("src/{file}")]);
        }
        all.write("src/e.zst", vec![0; 100_001]);
        all.set();
        all.keeps("the rules");
    }

    #[test]
    fn a_circle_of_files_is_found() {
        let all = Repository::new();
        for code in ["use crate::{c, a::A};\n", "fn f(_: super::a::A) {}\n", "use super::A;\n"] {
            all.write("src/lib.rs", "pub use a::A;\n");
            all.write("src/b.rs", code);
            all.breaks("all has 2 files in circles (a, b), and its budget is 0");
        }
        all.set();
        assert!(text(all.root(), "Cargo.toml").unwrap().contains("circles = 2 }\n"));
        all.keeps("the rules");
        for code in ["// crate::a\n", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"] {
            all.write("src/b.rs", code);
            all.set();
            assert!(!text(all.root(), "Cargo.toml").unwrap().contains("circles"), "{code}");
        }
        for at in 0..13 {
            all.write(&format!("src/c{at}.rs"), format!("use crate::c{};\n", (at + 1) % 13));
        }
        all.set();
        all.edit("Cargo.toml", ", large = 13", "");
        all.breaks("all has 13 files in circles of more than 12 (");
    }

    #[test]
    fn a_circle_between_folders_is_found() {
        let all = Repository::new();
        all.write("src/c/mod.rs", "mod d;\npub use d::{D, e::E as F};\n");
        all.write("src/c/h.rs", "use super::{\n    d::D,\n};\n");
        all.write("src/c/d/mod.rs", "use super::super::b;\n");
        all.write("src/c/d/e.rs", "");
        all.set();
        all.keeps("the rules");
        // Without a circle of files, and through a name that a module passes on.
        for code in ["use crate::c::F;\n", "use crate::{\n    c::{self},\n};\n"] {
            all.write("src/b.rs", code);
            all.breaks("all has 2 files and folders in circles between folders (b, c), and");
        }
        all.write("src/b.rs", "");
        all.write("src/c/d/mod.rs", "fn f() { crate::c::g() }\n");
        all.breaks("in circles between folders (c/d/mod, c/mod), and");
    }

    #[test]
    fn idioms_and_files_without_a_head_are_found() {
        let all = Repository::new();
        all.write("src/kernel.cu", "// plain words\n");
        all.set();
        // In two parts, so that the rule does not find them here.
        for (file, source, [first, second], line) in [
            ("src/a.rs", "//! b\n// has @ @ cases\n", ["so", "many"], 2),
            ("src/kernel.cu", "//   has @\n  // @ cases\n", ["so", "many"], 2),
            ("src/a.rs", "fn f() { g(\"is @@\") }\n", ["to", "ld"], 1),
            ("src/a.rs", "/// @@ it is.\n", ["Whe", "ther"], 1),
            ("src/a.rs", "/// A. @ @ b.\n", ["Those", "of"], 1),
            ("src/a.rs", "/// @@ it is.\n", ["Wh", "at"], 1),
        ] {
            let before = text(all.root(), file).unwrap();
            all.write(file, source.replacen('@', first, 1).replacen('@', second, 1));
            let blank = if source.contains("@@") { "" } else { " " };
            all.breaks(&format!("all has 1 idioms ({file}:{line} `{first}{blank}{second}`)"));
            all.write(file, before);
        }
        all.write("src/a.rs", ["fn to", "ld() {} // Whi", "ch is fine.\n"].concat());
        all.set();
        all.keeps("the rules");

        let long = "fn f() {}\n".repeat(251);
        all.write("low/src/lib.rs", &long);
        all.set();
        all.edit("low/Cargo.toml", ", headless = 1", "");
        all.breaks("low has 1 long files without a head (low/src/lib.rs), and its budget is 0");
        all.write("low/src/lib.rs", "//! a\n//! b\n//! c\n//! d\n//! e\n".to_owned() + &long);
        all.set();
        all.keeps("the rules");
    }
}
