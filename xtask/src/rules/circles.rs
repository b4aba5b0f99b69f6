//! Finds the files and folders of a crate that import each other in a circle.
//!
//! An arrow leads from the file that writes a path to the file that defines what the path names: a
//! name that a module only passes on with `use` is followed. Paths begin with `crate`, `self`,
//! `super` or a module of the same folder. The crate's root, comments and the tests inside the
//! source draw no arrows. A folder directly below the root counts as a whole, so that two such
//! folders may make a circle without their files. The tests are in `rules`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::pattern;

/// The circles of a crate, each with the paths of its members below `src`.
#[derive(Default)]
pub struct Circles {
    /// The circles of folders and files directly below the root, with at least one folder, and the
    /// circles of files in several folders of one such folder.
    pub between_folders: Vec<Vec<String>>,
    /// The circles of files in one folder.
    pub of_files: Vec<Vec<String>>,
}

static USE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\buse\s+([^;]+);"));
static PATH: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b\w+(?:::\w+)+"));

/// A module's path, without `crate`.
type Module<'a> = Vec<&'a str>;

struct File<'a> {
    /// The file's path below `src`, without its ending.
    path: Vec<&'a str>,
    code: String,
}

/// The circles of the package in `folder`, whose sources are paths and texts.
pub fn find(folder: &str, sources: &[&(&str, String)]) -> Circles {
    let below = format!("{folder}src/");
    let mut files = BTreeMap::<Module, File>::new();
    for (file, text) in sources {
        let path = file.strip_prefix(&below).and_then(|path| path.strip_suffix(".rs"));
        let Some(path) = path.map(|path| path.split('/').collect::<Vec<_>>()) else { continue };
        let module = match path[..] {
            ["lib" | "main"] => Vec::new(),
            [ref folders @ .., "mod"] => folders.to_vec(),
            _ => path.clone(),
        };
        if !path.contains(&"tests") {
            files.entry(module).or_insert(File { path, code: String::new() }).code += &code(text);
        }
    }
    let names = files.iter().map(|(module, file)| {
        (module, imported(&file.code).into_iter().collect::<BTreeMap<_, _>>())
    });
    let package = Package { files: &files, names: names.collect() };

    let (mut of_files, mut of_folders) = (Arrows::new(), Arrows::new());
    for (from, File { path: a, code }) in files.iter().filter(|(module, _)| !module.is_empty()) {
        let named = paths(code);
        let named = named.iter().filter_map(|path| package.resolve(from, path, 8));
        for File { path: b, .. } in named.filter(|to| !to.is_empty()).map(|to| &files[&to]) {
            of_files.entry(a.clone()).or_default().insert(b.clone());
            of_folders.entry(vec![a[0]]).or_default().insert(vec![b[0]]);
        }
    }
    let folders: BTreeSet<_> =
        files.values().map(|file| &file.path[..file.path.len() - 1]).collect();
    let mut circles = Circles::default();
    for circle in in_circles(&of_folders) {
        if circle.iter().any(|path| folders.contains(&path[..])) {
            circles.between_folders.push(described(&circle));
        }
    }
    for circle in in_circles(&of_files) {
        // The file `a.rs` is the root of the folder `a`.
        let is_root = |path: &Vec<&str>| folders.contains(&path[..]);
        let folder = |path: &Vec<&str>| path[..path.len() - usize::from(!is_root(path))].join("/");
        if circle.iter().all(|path| folder(path) == folder(&circle[0])) {
            circles.of_files.push(described(&circle));
        } else if circle.iter().all(|path| path[0] == circle[0][0]) {
            circles.between_folders.push(described(&circle));
        }
    }
    circles
}

/// The paths that each path leads to.
type Arrows<'a> = BTreeMap<Vec<&'a str>, BTreeSet<Vec<&'a str>>>;

fn described(circle: &[Vec<&str>]) -> Vec<String> {
    circle.iter().map(|path| path.join("/")).collect()
}

/// The groups of two or more paths of which each leads to all others.
fn in_circles<'a>(arrows: &Arrows<'a>) -> BTreeSet<Vec<Vec<&'a str>>> {
    let reached = |from| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(next) = open.pop() {
            open.extend(arrows.get(next).into_iter().flatten().filter(|path| seen.insert(*path)));
        }
        seen
    };
    let reached: BTreeMap<_, _> = arrows.keys().map(|path| (path, reached(path))).collect();
    let circle = |(path, seen): (&&Vec<&'a str>, &BTreeSet<&Vec<&'a str>>)| {
        let returns =
            |other: &&&Vec<&str>| reached.get(**other).is_some_and(|seen| seen.contains(*path));
        seen.iter().filter(returns).map(|path| (*path).clone()).collect::<Vec<_>>()
    };
    reached.iter().map(circle).filter(|circle| circle.len() > 1).collect()
}

struct Package<'a> {
    files: &'a BTreeMap<Module<'a>, File<'a>>,
    /// The names that each module has from `use` items, with their paths.
    names: BTreeMap<&'a Module<'a>, BTreeMap<&'a str, Module<'a>>>,
}

impl<'a> Package<'a> {
    /// The module in whose file the item at `path` is, as `from` writes the path. Follows at most
    /// `most` names that a module passes on.
    fn resolve(&self, from: &Module<'a>, path: &[&'a str], most: usize) -> Option<Module<'a>> {
        let is_module = |module: &Module| self.files.contains_key(module);
        let (mut module, mut rest) = match *path.first()? {
            "crate" => (Module::new(), &path[1..]),
            "self" => (from.clone(), &path[1..]),
            "super" => (from.clone(), path),
            child if is_module(&[from, &[child][..]].concat()) => (from.clone(), path),
            _ => return None,
        };
        while let Some((&"super", behind)) = rest.split_first() {
            module.pop();
            rest = behind;
        }
        while let Some((name, behind)) = rest.split_first() {
            let below = [&module[..], &[*name]].concat();
            if !is_module(&below) {
                break;
            }
            (module, rest) = (below, behind);
        }
        let passed_on = rest.first().and_then(|name| self.names.get(&module)?.get(name));
        let elsewhere = passed_on.filter(|_| most > 0);
        elsewhere.and_then(|path| self.resolve(&module, path, most - 1)).or(Some(module))
    }
}

/// The text without comments and without the tests at its end.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().flat_map(|line| [line.split("//").next().unwrap_or(""), "\n"]);
    lines.collect()
}

/// The names that the code's `use` items bring, each with its path.
fn imported(code: &str) -> Vec<(&str, Vec<&str>)> {
    let mut names = Vec::new();
    for item in USE.captures_iter(code) {
        let (_, [tree]) = item.extract();
        expand(&[], tree, &mut |name, path| names.push((name, path)));
    }
    names
}

/// All paths of two words or more, in `use` items and elsewhere.
fn paths(code: &str) -> Vec<Vec<&str>> {
    let elsewhere = USE.split(code).flat_map(|code| PATH.find_iter(code));
    let elsewhere = elsewhere.map(|path| path.as_str().split("::").collect());
    imported(code).into_iter().map(|(_, path)| path).chain(elsewhere).collect()
}

/// Calls `take` with each name and path of the tree behind `use`, below `prefix`.
fn expand<'c>(prefix: &[&'c str], tree: &'c str, take: &mut impl FnMut(&'c str, Vec<&'c str>)) {
    let (path, group) = tree.split_once('{').map_or((tree, None), |(path, rest)| {
        (path, Some(rest.trim_end().strip_suffix('}').unwrap_or(rest)))
    });
    let (path, alias) = path.split_once(" as ").map_or((path, None), |(a, b)| (a, Some(b.trim())));
    let words = path.split("::").map(str::trim).filter(|word| !["", "self", "*"].contains(word));
    let mut path = prefix.to_vec();
    path.extend(words);
    let Some(group) = group else {
        // Nothing follows the last comma of a group.
        if let Some(name) = alias.or(path.last().copied()).filter(|_| !tree.trim().is_empty()) {
            take(name, path);
        }
        return;
    };
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in group.char_indices().chain([(group.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&path, &group[start..at], take);
                start = at + 1;
            }
            _ => {}
        }
    }
}
