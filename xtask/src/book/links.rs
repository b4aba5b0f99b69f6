//! Rewrites the links and pictures of a page.
//!
//! The libraries that check links know neither the files that become text here nor the notebooks,
//! and lychee-lib 0.24 needs 425 crates, 222 of them new here: `site` checks the built pages.

use std::ops::Range;
use std::path::Path;

use pulldown_cmark::{Event, Tag};

use super::markdown::{self, Located};
use super::page::{Draft, Page};

const PICTURES: [&str; 7] = ["svg", "png", "jpg", "jpeg", "gif", "webp", "avif"];

/// True if `path` has the extension of a picture.
pub fn is_picture(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    extension.is_some_and(|extension| PICTURES.contains(&extension.as_str()))
}

enum Target {
    /// The web, or the same page: the link stays.
    AsWritten,
    /// A page or a picture of the book, with its address.
    Inside(String),
    /// A file of the repository, with its path from the root.
    File(String),
}

/// Rewrites links to pages, and turns links to files of the repository into text.
pub fn rewrite(draft: &mut Draft, events: &[Located]) {
    for (at, (event, range)) in events.iter().enumerate() {
        let (target, title) = match event {
            Event::Start(Tag::Link { dest_url, title, .. }) => {
                (target(draft.page, dest_url), title)
            }
            Event::Start(Tag::Image { dest_url, title, .. }) => {
                (picture(draft.page, dest_url), title)
            }
            _ => continue,
        };
        let inside = inside(events, at);
        match target {
            Err(what) => draft.reject(range.clone(), what),
            Ok(Target::AsWritten) => {}
            Ok(Target::Inside(address)) => {
                draft.replace(inside.end..range.end, destination(&address, title));
            }
            Ok(Target::File(path)) if path.ends_with(&markdown::plain_text(events, at)) => {
                draft.replace(range.clone(), format!("`{path}`"));
            }
            Ok(Target::File(path)) => {
                draft.replace(range.start..inside.start, "");
                draft.replace(inside.end..range.end, format!(" (`{path}`)"));
            }
        }
    }
}

/// The end of a link or a picture, from the bracket after its words.
fn destination(address: &str, title: &str) -> String {
    match title {
        "" => format!("]({address})"),
        title => format!("]({address} \"{}\")", markdown::escape(title)),
    }
}

/// True if a link of `page` leads to `file`.
pub fn leads_to(page: &Page, events: &[Located], file: &Path) -> bool {
    events.iter().any(|(event, _)| match event {
        Event::Start(Tag::Link { dest_url, .. }) if !is_remote(dest_url) => {
            let path = dest_url.split_once('#').map_or(dest_url.as_ref(), |(path, _)| path);
            !path.is_empty() && page.resolve(path) == file
        }
        _ => false,
    })
}

/// The range between the brackets of the link or picture at `events[start]`.
fn inside(events: &[Located], start: usize) -> Range<usize> {
    let link = &events[start].1;
    let pieces = events[start + 1..]
        .iter()
        .take_while(|(event, range)| !(matches!(event, Event::End(_)) && range == link));
    let end = pieces.map(|(_, range)| range.end).max();
    let first = events[start + 1].1.start;
    match end {
        Some(end) => first..end,
        None => link.start + 1..link.start + 1,
    }
}

fn target(page: &Page, address: &str) -> Result<Target, String> {
    if is_remote(address) || address.starts_with('#') || address.is_empty() {
        return Ok(Target::AsWritten);
    }
    let (path, fragment) = match address.split_once('#') {
        Some((path, fragment)) => (path, format!("#{fragment}")),
        None => (address, String::new()),
    };
    let mut file = page.resolve(path);
    if file.is_dir() {
        file.push("README.md");
    }
    if let Some(built) = page.addresses.get(&file) {
        return Ok(Target::Inside(page.address(built) + &fragment));
    }
    if !file.is_file() {
        return Err(format!("link to `{address}`: there is no such page or file"));
    }
    match file.strip_prefix(page.chapters) {
        Ok(copied) if is_picture(&file) => return Ok(Target::Inside(page.address(copied))),
        _ => {}
    }
    Ok(Target::File(page.path_from_root(&file)))
}

/// The target of a picture. A notebook's page is not in the notebook's folder, so the address may
/// change.
fn picture(page: &Page, address: &str) -> Result<Target, String> {
    if is_remote(address) {
        return Err(format!("picture `{address}` is remote"));
    }
    let file = page.resolve(address);
    if !file.is_file() {
        return Err(format!("picture `{address}`: there is no such file"));
    }
    let copied = file.strip_prefix(page.chapters).ok().filter(|_| is_picture(&file));
    let copied = copied.map(|copied| page.address(copied));
    match copied.ok_or_else(|| format!("picture `{address}` would not be copied into the book"))? {
        same if same == address => Ok(Target::AsWritten),
        other => Ok(Target::Inside(other)),
    }
}

/// True if an address leaves the book: it has a scheme, or names a host.
pub fn is_remote(address: &str) -> bool {
    let scheme = address.split_once(':').map(|(scheme, _)| scheme);
    let is_scheme = |scheme: &str| {
        scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    address.starts_with("//") || scheme.is_some_and(is_scheme)
}
