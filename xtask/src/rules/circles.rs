//! Which modules of a crate use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

/// The modules directly below the crate's root, files or folders, from which a way along `crate::`
/// and `super::` leads back to them. Tests inside the source do not count. `sources` are paths and
/// texts.
pub fn modules(folder: &str, sources: &[(&str, String)]) -> Vec<String> {
    let below = format!("{folder}src/");
    let sources = sources.iter().filter_map(|(file, text)| {
        let path = file.strip_prefix(&below)?.strip_suffix(".rs")?;
        let path = path.trim_end_matches("/mod").split('/').collect::<Vec<_>>();
        (!path.contains(&"tests")).then(|| (path, code(text)))
    });
    let (roots, sources): (Vec<_>, Vec<_>) =
        sources.partition(|(path, _)| ["lib", "main"].contains(&path[0]));
    // By the names that can stand after `crate::`: the modules, and what the root takes out of
    // them.
    let mut module_of: BTreeMap<_, _> =
        sources.iter().map(|(path, _)| (path[0], path[0])).collect();
    let exported = pattern(r"\buse (\w+)::([^;]+);");
    for found in roots.iter().flat_map(|(_, text)| exported.captures_iter(text)) {
        let (_, [module, names]) = found.extract();
        if let Some(&module) = module_of.get(module) {
            for name in pattern(r"\w+").find_iter(names) {
                module_of.entry(name.as_str()).or_insert(module);
            }
        }
    }
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in &sources {
        let used =
            named(text, path.len()).into_iter().filter_map(|name| module_of.get(name).copied());
        uses.entry(path[0]).or_default().extend(used.filter(|module| *module != path[0]));
    }
    let leads_back = |module: &&&str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![**module]);
        while let Some(next) = open.pop() {
            open.extend(uses[next].iter().filter(|name| seen.insert(**name)));
        }
        seen.contains(**module)
    };
    uses.keys().filter(leads_back).map(|module| (*module).to_owned()).collect()
}

/// The text without comments, without the tests at its end, and without groups inside of groups.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().map(|line| line.split("//").next().unwrap_or_default());
    let inner = pattern(r"::\{[^{}]*\}([,\s]*[\w}])");
    let mut code = lines.collect::<Vec<_>>().join("\n");
    while let std::borrow::Cow::Owned(less) = inner.replace_all(&code, "$1") {
        code = less;
    }
    code
}

/// What is named in the crate's root by the text of a module so deep below it; in braces each name.
fn named(text: &str, depth: usize) -> Vec<&str> {
    let ways = pattern(r"\b(crate::|(?:super::)+)(\w+|\{[^{}]*\})");
    let ways = ways.captures_iter(text).map(|way| way.extract().1);
    let ways = ways.filter(|[way, _]| *way == "crate::" || way.matches("super").count() >= depth);
    let names = ways.flat_map(|[_, names]| names.trim_matches(['{', '}']).split(','));
    names.filter_map(|name| name.trim().split("::").next()).collect()
}

fn pattern(pattern: &str) -> Regex {
    #[expect(clippy::unwrap_used, reason = "all patterns are tried by the tests of the rules")]
    Regex::new(pattern).unwrap()
}
