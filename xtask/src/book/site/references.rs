//! Every relative link, anchor and file that a page names is there.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::{BuiltPage, Site, elements};
use crate::book::links::is_remote;
use crate::failure::Failure;

/// Attributes that name other pages and files.
const REFERENCES: [(&str, &str); 11] = [
    ("a[href]", "href"),
    ("area[href]", "href"),
    ("img[src]", "src"),
    ("script[src]", "src"),
    ("link[href]", "href"),
    ("iframe[src]", "src"),
    ("source[src]", "src"),
    ("video[src]", "src"),
    ("audio[src]", "src"),
    ("object[data]", "data"),
    ("use[href]", "href"),
];

/// Checks the references and the ids of one page.
pub fn check(site: &Site, page: &BuiltPage, failures: &mut Vec<Failure>) {
    for (selector, attribute) in REFERENCES {
        for element in elements(&page.html, selector) {
            let address = element.attr(attribute).unwrap_or_default();
            if let Err(what) = resolve(site, page, address) {
                let sought = address.split_once('#').map_or(address, |(_, fragment)| fragment);
                failures.push(page.failure(sought, format!("`{address}`: {what}")));
            }
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
        // To follow, not to load: `remote` says where that is wrong.
        return Ok(());
    }
    let (path, fragment) = match address.split_once('#') {
        Some((path, fragment)) => (path, Some(fragment)),
        None => (address, None),
    };
    let target = match path {
        "" => page.path.clone(),
        path => beside(&page.path, path).ok_or("leads out of the book")?,
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

/// The path that `relative` names beside `page`; nothing when it leads out of the book.
fn beside(page: &Path, relative: &str) -> Option<PathBuf> {
    let mut path = page.parent()?.to_owned();
    for component in Path::new(relative).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}
