//! The book is read offline: nothing that a browser loads by itself is remote.

use std::path::Path;
use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;

use super::{BuiltPage, Site, elements, files, read};
use crate::book::links::is_remote;
use crate::failure::Failure;

/// Elements whose address the browser fetches unasked.
const LOADED: [(&str, &str); 14] = [
    ("script[src]", "src"),
    ("link[href]", "href"),
    ("img[src]", "src"),
    ("img[srcset]", "srcset"),
    ("source[src]", "src"),
    ("source[srcset]", "srcset"),
    ("iframe[src]", "src"),
    ("embed[src]", "src"),
    ("video[src]", "src"),
    ("video[poster]", "poster"),
    ("audio[src]", "src"),
    ("object[data]", "data"),
    ("svg [href]", "href"),
    ("input[src]", "src"),
];

/// `url(…)` and `@import "…"` of a stylesheet, with the address.
static CSS_ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:@import\s+(?:url\(\s*)?|url\(\s*)["']?([^"')\s;]+)"#).expect("a valid pattern")
});

/// A script that reaches out: a call that loads, with a remote address in quotes.
static SCRIPT_ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?:fetch\w*|importScripts|import|open|WebSocket|EventSource|sendBeacon)\s*\(\s*(?:["'][A-Z]+["']\s*,\s*)?["'`]((?:https?:|wss?:)?//[^"'`]+)"#,
    )
    .expect("a valid pattern")
});

/// Where mdBook's own script would run code. It asks only when a page has a block with the class
/// `playground`.
const PLAYGROUND: &str = "https://play.rust-lang.org/";

/// Checks what one page loads.
pub fn check_page(page: &BuiltPage, failures: &mut Vec<Failure>) {
    let mut report = |address: &str| {
        if is_remote(address) && !address.starts_with("data:") {
            failures.push(page.failure(address, format!("`{address}` is remote")));
        }
    };
    for (selector, attribute) in LOADED {
        for element in elements(&page.html, selector) {
            // A link in a drawing is followed, not loaded.
            if element.value().name() != "a" {
                report(element.attr(attribute).unwrap_or_default());
            }
        }
    }
    for element in elements(&page.html, "style") {
        addresses(&element.text().collect::<String>()).for_each(&mut report);
    }
    for element in elements(&page.html, "[style]") {
        addresses(element.attr("style").unwrap_or_default()).for_each(&mut report);
    }
    for element in elements(&page.html, "script:not([src])") {
        scripted(&element.text().collect::<String>()).for_each(&mut report);
    }
    if elements(&page.html, ".playground").next().is_some() {
        failures
            .push(page.failure("", "a runnable block, for which the book would ask the network"));
    }
}

/// Checks stylesheets and scripts.
pub fn check_files(site: &Site, failures: &mut Vec<Failure>) -> Result<()> {
    for file in files(&site.folder, "css") {
        let path = file.strip_prefix(&site.folder)?;
        for address in addresses(&read(&file)?) {
            check_css(site, path, address, failures);
        }
    }
    for file in files(&site.folder, "js") {
        let path = file.strip_prefix(&site.folder)?;
        for address in scripted(&read(&file)?) {
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
    fn stylesheets_name_what_they_load() {
        let css = r#"@import "a.css"; @import url(b.css); src: url('c.woff2') format("woff2")"#;
        assert_eq!(addresses(css).collect::<Vec<_>>(), ["a.css", "b.css", "c.woff2"]);
    }

    #[test]
    fn scripts_that_reach_out_are_seen() {
        let found = |script| scripted(script).next().is_some();
        assert!(found("fetch('https://example.org/a')"));
        assert!(found(r#"request.open("GET", "//example.org")"#));
        assert!(found("new WebSocket(`wss://example.org`)"));
        assert!(!found("fetch('search.json')"));
        assert!(!found("// see https://example.org"));
    }
}
