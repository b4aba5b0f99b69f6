//! Checks the built book, as a reader's browser loads it.
//!
//! Three checks run over the pages. Every relative link, anchor and file that a page names exists.
//! Nothing that a browser loads by itself is remote, also from stylesheets and scripts, since the
//! book is read offline. And none of the pages' own notation is left: directives, formulas, empty
//! blocks. `tests/suite/book.rs` plants every fault.

use fs_err as fs;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;
use scraper::{ElementRef, Html, Node, Selector};

use super::addresses::Addresses;
use super::links::is_remote;
use super::page::normalized;
use crate::failure::Failure;
use crate::{pattern, workspace};

/// `url(…)` and `@import "…"` of a stylesheet, with the address.
static CSS_ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?:@import\s+(?:url\(\s*)?|url\(\s*)["']?([^"')\s;]+)"#));

/// A call of a script that loads something, with a remote address in quotes.
static SCRIPT_ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?:fetch\w*|importScripts|import|open|WebSocket|EventSource|sendBeacon)\s*\(\s*(?:["'][A-Z]+["']\s*,\s*)?["'`]((?:https?:|wss?:)?//[^"'`]+)"#,
    )
});

/// A formula in the text of a page that was not converted.
static FORMULA: LazyLock<Regex> = LazyLock::new(|| pattern(r"\$[^$\s][^$]*\$|\$\$|\\\(|\\\["));

/// The server on which mdBook's own script would run code. It asks only if a page has a block with
/// the class `playground`.
const PLAYGROUND: &str = "https://play.rust-lang.org/";

/// A built page.
struct BuiltPage {
    /// Its file, relative to the folder of the book.
    path: PathBuf,
    /// The page, parsed as a browser does.
    html: Html,
    /// All ids in it.
    ids: BTreeSet<String>,
    /// The path of its source file from the root of the workspace, and the file's text. `None` for
    /// the pages that mdBook adds.
    source: Option<(PathBuf, String)>,
}

/// The built book.
struct Site {
    folder: PathBuf,
    pages: Vec<BuiltPage>,
}

/// Finds all faults of the book in `folder`, whose pages were built from the files in `addresses`.
pub fn check(root: &Path, folder: &Path, addresses: &Addresses) -> Result<Vec<Failure>> {
    let site = Site::load(root, folder, addresses)?;
    let mut failures = Vec::new();
    for page in &site.pages {
        check_references(&site, page, &mut failures);
        check_leftovers(page, &mut failures);
        check_loaded(page, &mut failures);
    }
    check_files(&site, &mut failures)?;
    Ok(failures)
}

impl Site {
    fn load(root: &Path, folder: &Path, addresses: &Addresses) -> Result<Self> {
        let mut pages = Vec::new();
        for file in workspace::files(folder, "html", usize::MAX) {
            let text = fs::read_to_string(&file)?;
            let path = file.strip_prefix(folder)?.to_owned();
            let html = Html::parse_document(&text);
            let ids = elements(&html, "[id]")
                .filter_map(|element| element.value().id())
                .map(str::to_owned)
                .collect();
            let source = addresses.iter().find(|(_, built)| **built == path);
            let source = source.and_then(|(file, _)| {
                Some((file.strip_prefix(root).ok()?.to_owned(), fs::read_to_string(file).ok()?))
            });
            pages.push(BuiltPage { path, html, ids, source });
        }
        Ok(Self { folder: folder.to_owned(), pages })
    }

    /// The built page at `path`, relative to the folder of the book.
    fn page(&self, path: &Path) -> Option<&BuiltPage> {
        self.pages.iter().find(|page| page.path == path)
    }
}

impl BuiltPage {
    /// A failure in this page: in its source if it has one, at the line that holds `sought`.
    fn failure(&self, sought: &str, what: impl Into<String>) -> Failure {
        let Some((file, text)) = &self.source else {
            return Failure::new(&self.path, None, what);
        };
        let line = (!sought.is_empty())
            .then(|| text.lines().position(|line| line.contains(sought)))
            .flatten();
        Failure::new(file, line.map(|line| line + 1), what)
    }
}

/// Checks the references and the ids of one page.
fn check_references(site: &Site, page: &BuiltPage, failures: &mut Vec<Failure>) {
    // `srcset` lists several addresses, and is not resolved.
    for (_, address, _) in attributes(&page.html).filter(|(name, ..)| *name != "srcset") {
        if let Err(what) = resolve(site, page, address) {
            let sought = address.split_once('#').map_or(address, |(_, fragment)| fragment);
            failures.push(page.failure(sought, format!("`{address}`: {what}")));
        }
    }
    let mut seen = BTreeSet::new();
    for id in elements(&page.html, "[id]").filter_map(|element| element.value().id()) {
        if !seen.insert(id) {
            failures.push(page.failure(id, format!("the id `{id}` is used twice")));
        }
    }
}

fn resolve(site: &Site, page: &BuiltPage, address: &str) -> Result<(), String> {
    if is_remote(address) {
        // A link to follow. `check_loaded` refuses what is loaded.
        return Ok(());
    }
    let (path, fragment) = match address.split_once('#') {
        Some((path, fragment)) => (path, Some(fragment)),
        None => (address, None),
    };
    let target = match path {
        "" => page.path.clone(),
        path => {
            let target = normalized(&page.path.with_file_name(path));
            let is_inside = target.components().all(|part| matches!(part, Component::Normal(_)));
            is_inside.then_some(target).ok_or("leads out of the book")?
        }
    };
    if !site.folder.join(&target).is_file() {
        return Err("there is no such page or file in the book".to_owned());
    }
    let Some(fragment) = fragment.filter(|fragment| !fragment.is_empty()) else { return Ok(()) };
    match site.page(&target) {
        Some(target) if target.ids.contains(fragment) => Ok(()),
        Some(_) => Err("there is no such heading or id in that page".to_owned()),
        None => Err("an anchor in a file that is no page".to_owned()),
    }
}

/// Checks the addresses that a browser loads for one page.
fn check_loaded(page: &BuiltPage, failures: &mut Vec<Failure>) {
    let mut report = |address: &str| {
        if is_remote(address) && !address.starts_with("data:") {
            failures.push(page.failure(address, format!("`{address}` is remote")));
        }
    };
    for (_, address, _) in attributes(&page.html).filter(|(.., is_loaded)| *is_loaded) {
        report(address);
    }
    let styles = elements(&page.html, "style").map(|style| style.text().collect::<String>());
    let attributes = elements(&page.html, "[style]").filter_map(|styled| styled.attr("style"));
    for css in styles.chain(attributes.map(str::to_owned)) {
        addresses(&css).for_each(&mut report);
    }
    for element in elements(&page.html, "script:not([src])") {
        scripted(&element.text().collect::<String>()).for_each(&mut report);
    }
    if elements(&page.html, ".playground").next().is_some() {
        failures
            .push(page.failure("", "a runnable block, for which the book would ask the network"));
    }
}

/// Checks the addresses in stylesheets and scripts.
fn check_files(site: &Site, failures: &mut Vec<Failure>) -> Result<()> {
    for file in workspace::files(&site.folder, "css", usize::MAX) {
        let path = file.strip_prefix(&site.folder)?;
        for address in addresses(&fs::read_to_string(&file)?) {
            check_css(site, path, address, failures);
        }
    }
    for file in workspace::files(&site.folder, "js", usize::MAX) {
        let path = file.strip_prefix(&site.folder)?;
        for address in scripted(&fs::read_to_string(&file)?) {
            if !address.starts_with(PLAYGROUND) {
                failures.push(Failure::new(path, None, format!("asks `{address}`")));
            }
        }
    }
    Ok(())
}

fn check_css(site: &Site, path: &Path, address: &str, failures: &mut Vec<Failure>) {
    if address.starts_with("data:") || address.starts_with('#') {
        return;
    }
    if is_remote(address) {
        failures.push(Failure::new(path, None, format!("`{address}` is remote")));
        return;
    }
    let file = address.split(['?', '#']).next().unwrap_or_default();
    let folder = site.folder.join(path);
    if !folder.with_file_name("").join(file).is_file() {
        failures.push(Failure::new(path, None, format!("`{address}`: there is no such file")));
    }
}

/// Checks that none of the notation of the pages is left in one page.
fn check_leftovers(page: &BuiltPage, failures: &mut Vec<Failure>) {
    for code in elements(&page.html, "main pre > code") {
        let text: String = code.text().collect();
        if text.trim().is_empty() {
            failures.push(page.failure("", "an empty block of code"));
        }
        report_directive(page, &text, failures);
    }
    for main in elements(&page.html, "main") {
        for node in main.descendants() {
            let Node::Text(text) = node.value() else { continue };
            let mut around = node.ancestors().filter_map(|node| node.value().as_element());
            if around.any(|around| matches!(around.name(), "code" | "samp" | "script" | "style")) {
                continue;
            }
            report_directive(page, text, failures);
            if let Some(formula) = FORMULA.find(text) {
                let formula = formula.as_str().trim();
                let what = format!("`{formula}` was not converted (is it inside raw HTML?)");
                failures.push(page.failure(formula, what));
            }
        }
    }
}

fn report_directive(page: &BuiltPage, text: &str, failures: &mut Vec<Failure>) {
    if let Some(at) = text.find("{{#") {
        let directive = text[at..].lines().next().unwrap_or_default();
        failures.push(page.failure(directive, format!("`{directive}` was left as it is")));
    }
}

/// The elements of `html` that match `selector`.
fn elements<'a>(html: &'a Html, selector: &str) -> impl Iterator<Item = ElementRef<'a>> + use<'a> {
    let selector = Selector::parse(selector).expect("a valid selector");
    html.select(&selector).collect::<Vec<_>>().into_iter()
}

/// The attributes that name pages and files, each with its address. A browser loads those with
/// `true`, and follows the others.
fn attributes(html: &Html) -> impl Iterator<Item = (&str, &str, bool)> {
    elements(html, "*").flat_map(|element| {
        let tag = element.value().name();
        element.value().attrs().filter_map(move |(name, address)| match name {
            "href" => Some((name, address, !["a", "area"].contains(&tag))),
            "src" | "srcset" | "poster" => Some((name, address, true)),
            "data" if tag == "object" => Some((name, address, true)),
            _ => None,
        })
    })
}

fn addresses(css: &str) -> impl Iterator<Item = &str> {
    CSS_ADDRESS.captures_iter(css).filter_map(|found| Some(found.get(1)?.as_str()))
}

fn scripted(script: &str) -> impl Iterator<Item = &str> {
    SCRIPT_ADDRESS.captures_iter(script).filter_map(|found| Some(found.get(1)?.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_addresses_in_scripts_are_found() {
        let found = |script| scripted(script).next().is_some();
        assert!(found("fetch('https://example.org/a')"));
        assert!(found(r#"request.open("GET", "//example.org")"#));
        assert!(found("new WebSocket(`wss://example.org`)"));
        assert!(!found("fetch('search.json')"));
        assert!(!found("// see https://example.org"));
    }
}
