//! `cargo xtask chapters`: keeps all lists of chapters equal to `chapters/SUMMARY.md`.
//!
//! A line of that list has a chapter's folder, its title and a sentence about it. Other files name
//! all chapters between two comments: their lines are generated from the list. Chapter pages and
//! manifests are compared with it. The tests below make a small workspace and change each of its
//! files.

use fs_err as fs;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use regex::{Captures, Regex};

use crate::failure::{self, Failure};
use crate::{pattern, workspace};

const LIST: &str = "chapters/SUMMARY.md";

/// The files that name all chapters between two comments.
const MADE: [&str; 4] = [
    "README.md",
    "chapters/README.md",
    "chapters/00-start-here/Cargo.toml",
    "chapters/00-start-here/src/catalogue.rs",
];

/// A chapter, from its line.
#[derive(Debug)]
pub struct Chapter {
    /// Its number.
    pub number: u32,
    /// The name of its folder, such as `03-matrix-form`.
    pub folder: String,
    title: String,
    /// The sentence goes on after the title, as in "The matrix form writes …".
    sentence: String,
    /// The heading above it, such as `Part I: the algorithm`.
    part: String,
}

impl Chapter {
    fn bullet(&self, below: &str) -> String {
        let Self { number, folder, title, sentence, .. } = self;
        format!("- **{number}** [{title}]({below}{folder}/README.md) {sentence}\n")
    }
}

/// The chapters in their order, without chapter 0, which is the tour.
pub fn read(root: &Path) -> Result<Vec<Chapter>> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?m)^(?:# (.+)|- \[(.+)\]\(((\d\d)-[\w-]+)/README\.md\) *(.*))$")
    });
    let (mut part, mut chapters) = (String::new(), Vec::new());
    for line in LINE.captures_iter(&text(root, LIST)?) {
        let group = |at| line.get(at).map_or("", |found| found.as_str()).to_owned();
        match group(4).parse() {
            Ok(0) => {}
            Ok(number) => chapters.push(Chapter {
                number,
                folder: group(3),
                title: group(2),
                sentence: group(5),
                part: part.clone(),
            }),
            Err(_) => part = group(1),
        }
    }
    Ok(chapters)
}

/// Writes the chapters into every file that names all of them.
pub fn write(root: &Path) -> Result<String> {
    let chapters = read(root)?;
    for file in MADE {
        let old = text(root, file)?;
        let new = filled(&old, &chapters);
        if new != old {
            fs::write(root.join(file), new)?;
        }
    }
    check(root)
}

/// Compares the files that name the chapters with the list.
pub fn check(root: &Path) -> Result<String> {
    let chapters = read(root)?;
    let mut faults = Vec::new();
    let mut wrong = |file: &str, what| faults.push(Failure::new(file, None, what));
    for file in MADE {
        let old = text(root, file)?;
        let new = filled(&old, &chapters);
        let lacks = |text: &str, line: &str| !text.lines().any(|there| there == line);
        for line in new.lines().filter(|line| lacks(&old, line)) {
            wrong(file, format!("the line `{}` is missing: `cargo xtask chapters`", line.trim()));
        }
        for line in old.lines().filter(|line| lacks(&new, line)) {
            wrong(file, format!("the line `{}` is too much: `cargo xtask chapters`", line.trim()));
        }
        if new != old && new.len() == old.len() {
            wrong(file, "the chapters are in another order: `cargo xtask chapters`".to_owned());
        }
        if !old.contains(MARK) {
            wrong(file, format!("the comment is missing that begins with `{MARK}`"));
        }
    }
    if !chapters.is_sorted_by(|a, b| a.number < b.number) {
        wrong(LIST, "the chapters' numbers do not go up".to_owned());
    }
    for entry in fs::read_dir(root.join("chapters")).context("there is no folder chapters")? {
        let folder = workspace::name_of(&entry?.path());
        let is_listed = chapters.iter().any(|chapter| chapter.folder == folder);
        if workspace::number_of(&folder).is_some_and(|number| number > 0) && !is_listed {
            let line = format!("`- [Title]({folder}/README.md) says what it is about.`");
            wrong(LIST, format!("chapters/{folder} has no line such as {line}"));
        }
    }
    for Chapter { folder, title, sentence, .. } in &chapters {
        if sentence.is_empty() {
            wrong(LIST, format!("the line of {folder} does not go on after the link"));
        }
        let (page, manifest) =
            (format!("chapters/{folder}/README.md"), format!("chapters/{folder}/Cargo.toml"));
        let package = workspace::package_of(folder);
        for (file, line) in [
            (&page, format!("# {title}")),
            (&manifest, format!("name = \"{package}\"")),
            (&manifest, format!("description = \"{title}\"")),
        ] {
            if !text(root, file).unwrap_or_default().lines().any(|there| there == line) {
                wrong(file, format!("there is no line `{line}`"));
            }
        }
    }
    failure::none_of(&faults, "the names of the chapters")?;
    Ok(format!("{} chapters are named as in {LIST}", chapters.len()))
}

/// The folders with a recorded run that can be compared: the chapters, and pages of the appendix
/// with a crate.
pub fn recorded(root: &Path) -> Result<Vec<String>> {
    let list = text(root, LIST)?;
    let folders = list.lines().filter_map(|line| {
        let (folder, _) = line.split_once("](")?.1.split_once("/README.md)")?;
        // The record of chapter 0 is a benchmark, which has timings only.
        let has_run = !folder.starts_with("00-")
            && root.join("chapters").join(folder).join("Cargo.toml").is_file();
        has_run.then(|| folder.to_owned())
    });
    Ok(folders.collect())
}

/// The packages of chapters whose library needs no device, as their dependencies show.
pub fn without_device(root: &Path) -> Result<Vec<String>> {
    let mut packages = Vec::new();
    for Chapter { folder, .. } in read(root)? {
        let manifest: toml::Table =
            text(root, &format!("chapters/{folder}/Cargo.toml"))?.parse()?;
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        let asks = |dependency: &toml::Value| {
            let is_optional = dependency.get("optional").is_some_and(|value| value == &true.into());
            let features = dependency.get("features").and_then(toml::Value::as_array);
            let mut names = features.into_iter().flatten().filter_map(toml::Value::as_str);
            !is_optional && names.any(|name| ["cuda", "simt", "device"].contains(&name))
        };
        if !dependencies.is_some_and(|all| all.values().any(asks)) {
            packages.push(workspace::package_of(&folder));
        }
    }
    Ok(packages)
}

fn text(root: &Path, file: &str) -> Result<String> {
    Ok(fs::read_to_string(root.join(file))?.replace('\r', ""))
}

/// The start of the comment above generated lines. Its end names their form.
const MARK: &str = "chapters, from chapters/SUMMARY.md by cargo xtask chapters: ";

/// The text of a file with the generated lines.
fn filled(text: &str, chapters: &[Chapter]) -> String {
    static BLOCK: LazyLock<Regex> = LazyLock::new(|| {
        pattern(&format!(r"(?ms)^( *\S+ {MARK}(.+?)(?: -->)?\n).*?^( *\S+ end of chapters)"))
    });
    BLOCK
        .replace_all(text, |block: &Captures| {
            block[1].to_owned() + &made(&block[2], chapters) + &block[3]
        })
        .into_owned()
}

fn made(what: &str, chapters: &[Chapter]) -> String {
    let each = |line: &dyn Fn(&Chapter) -> String| chapters.iter().map(line).collect::<String>();
    let package = |chapter: &Chapter| workspace::package_of(&chapter.folder);
    match what {
        "dependencies" => each(&|chapter| {
            format!("{} = {{ path = \"../{}\" }}\n", package(chapter), chapter.folder)
        }),
        "catalogue" => {
            each(&|chapter| format!("    {}::CHAPTER,\n", package(chapter).replace('-', "_")))
        }
        "all parts" => {
            let parts = chapters.chunk_by(|a, b| a.part == b.part).map(|part| {
                let bullets = part.iter().map(|chapter| chapter.bullet("chapters/"));
                format!("**{}**\n\n{}\n", part[0].part, bullets.collect::<String>())
            });
            format!("\n{}", parts.collect::<String>())
        }
        part => {
            let is_in = |chapter: &&Chapter| chapter.part.split(':').next() == Some(part);
            let bullets = chapters.iter().filter(is_in).map(|chapter| chapter.bullet(""));
            format!("\n{}\n", bullets.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "- [One](01-one/README.md) is first.\n";

    fn workspace() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (file, what) in MADE.iter().zip(["all parts", "Part I", "dependencies", "catalogue"]) {
            write(
                file,
                &format!("above\n<!-- {MARK}{what} -->\n<!-- end of chapters -->\nbelow\n"),
            );
        }
        let list = "- [Start](00-start-here/README.md)\n\n# Part I: begin\n\n";
        write(LIST, &format!("{list}{LINE}- [Much](much/README.md)\n"));
        write("chapters/01-one/README.md", "# One\n");
        let manifest = "[package]\nname = \"ch01-one\"\ndescription = \"One\"\n";
        write("chapters/01-one/Cargo.toml", manifest);
        write("chapters/much/Cargo.toml", "");
        folder
    }

    fn edit(root: &Path, file: &str, old: &str, new: &str) {
        let text = text(root, file).unwrap();
        assert!(text.contains(old), "{file}: {text}");
        fs::write(root.join(file), text.replace(old, new)).unwrap();
    }

    fn complaint(root: &Path) -> String {
        check(root).unwrap_err().to_string()
    }

    #[test]
    fn all_lists_of_chapters_are_generated() {
        let folder = workspace();
        let root = folder.path();
        let missing = complaint(root);
        for line in ["- **1** [One](01-one/README.md) is first.", "ch01_one::CHAPTER,"] {
            assert!(missing.contains(&format!("the line `{line}` is missing")), "{missing}");
        }
        write(root).unwrap();
        assert_eq!(
            text(root, MADE[0]).unwrap(),
            format!(
                "above\n<!-- {MARK}all parts -->\n\n**Part I: begin**\n\n\
                - **1** [One](chapters/01-one/README.md) is first.\n\n<!-- end of chapters -->\nbelow\n"
            )
        );
        assert!(text(root, MADE[2]).unwrap().contains("\nch01-one = { path = \"../01-one\" }\n"));
        assert_eq!(recorded(root).unwrap(), ["01-one", "much"]);

        edit(root, LIST, LINE, "");
        assert!(complaint(root).contains("the line `ch01_one::CHAPTER,` is too much"));
        assert!(complaint(root).contains("chapters/01-one has no line such as"));
    }

    #[test]
    fn differences_from_the_list_are_reported() {
        for (file, old, new, expected) in [
            (LIST, " is first.", "", "the line of 01-one does not go on after the link"),
            (LIST, LINE, "- [Two](02-two/README.md) is.\n- [One](01-one/README.md) is.\n", "go up"),
            (MADE[0], MARK, "", "README.md: the comment is missing"),
            ("chapters/01-one/README.md", "# One", "# Won", "there is no line `# One`"),
            ("chapters/01-one/Cargo.toml", "\"One\"", "\"\"", "no line `description = \"One\"`"),
            ("chapters/01-one/Cargo.toml", "ch01-one", "one", "no line `name = \"ch01-one\"`"),
        ] {
            let folder = workspace();
            write(folder.path()).unwrap();
            edit(folder.path(), file, old, new);
            let complaint = complaint(folder.path());
            assert!(complaint.contains(expected), "{complaint}");
        }
    }

    #[test]
    fn a_chapter_asks_for_a_device_in_its_dependencies() {
        let folder = workspace();
        let root = folder.path();
        for (dependency, needs_none) in [
            ("features = [\"contract\"]", true),
            ("features = [\"contract\", \"cuda\"]", false),
            ("features = [\"cuda\"], optional = true", true),
        ] {
            let text = format!("[dependencies]\nlinrec = {{ workspace = true, {dependency} }}\n");
            fs::write(root.join("chapters/01-one/Cargo.toml"), text).unwrap();
            assert_eq!(!without_device(root).unwrap().is_empty(), needs_none, "{dependency}");
        }
    }
}
