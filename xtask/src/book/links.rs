//! Links and pictures of a page.

use std::ops::Range;
use std::path::Path;

use pulldown_cmark::{Event, Tag};

use super::markdown::{self, Located};
use super::page::{Draft, Page};

const PICTURES: [&str; 7] = ["svg", "png", "jpg", "jpeg", "gif", "webp", "avif"];

/// Whether `path` is a picture by its name.
pub fn is_picture(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    extension.is_some_and(|extension| PICTURES.contains(&extension.as_str()))
}

/// Where a link goes.
enum Target {
    /// To the web or within the page: left as it is.
    AsWritten,
    /// To a page of the book: the address of the built page.
    Page(String),
    /// To a file of the repository: its path from the root.
    File(String),
}

/// Rewrites links to pages, and turns links to files of the repository into text.
pub fn rewrite(draft: &mut Draft, events: &[Located]) {
    for (at, (event, range)) in events.iter().enumerate() {
        match event {
            Event::Start(Tag::Link { dest_url, title, .. }) => match target(draft.page, dest_url) {
                Err(what) => draft.reject(range.clone(), what),
                Ok(Target::AsWritten) => {}
                Ok(Target::Page(address)) => {
                    let title = match title.as_ref() {
                        "" => String::new(),
                        title => format!(" \"{}\"", markdown::escape(title)),
                    };
                    let inside = inside(events, at);
                    draft.replace(inside.end..range.end, format!("]({address}{title})"));
                }
                Ok(Target::File(path)) => {
                    let text = markdown::plain_text(events, at);
                    let inside = inside(events, at);
                    if path.ends_with(&text) {
                        draft.replace(range.clone(), format!("`{path}`"));
                    } else {
                        draft.replace(range.start..inside.start, "");
                        draft.replace(inside.end..range.end, format!(" (`{path}`)"));
                    }
                }
            },
            Event::Start(Tag::Image { dest_url, .. }) => {
                if let Err(what) = check_picture(draft.page, dest_url) {
                    draft.reject(range.clone(), what);
                }
            }
            _ => {}
        }
    }
}

/// The place of what stands between the brackets of the link at `events[start]`.
fn inside(events: &[Located], start: usize) -> Range<usize> {
    let link = &events[start].1;
    let pieces = events[start + 1..]
        .iter()
        .take_while(|(event, _)| !matches!(event, Event::End(pulldown_cmark::TagEnd::Link)));
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
    let mut written = path.to_owned();
    if file.is_dir() {
        file.push("README.md");
        written = format!("{}/README.md", path.trim_end_matches('/'));
    }
    let in_chapters = file.strip_prefix(page.chapters).ok();
    if in_chapters.is_some_and(|file| page.pages.contains(file)) {
        let built = match written.strip_suffix("README.md") {
            Some(folder) => format!("{folder}index.html"),
            None => Path::new(&written).with_extension("html").to_string_lossy().replace('\\', "/"),
        };
        return Ok(Target::Page(built + &fragment));
    }
    if !file.is_file() {
        return Err(format!("link to `{address}`: there is no such page or file"));
    }
    if in_chapters.is_some() && is_picture(&file) {
        return Ok(Target::AsWritten);
    }
    Ok(Target::File(page.path_from_root(&file)))
}

fn check_picture(page: &Page, address: &str) -> Result<(), String> {
    if is_remote(address) {
        return Err(format!("picture `{address}` is remote"));
    }
    let file = page.resolve(address);
    if !file.is_file() {
        return Err(format!("picture `{address}`: there is no such file"));
    }
    if !file.starts_with(page.chapters) || !is_picture(&file) {
        return Err(format!("picture `{address}` would not be copied into the book"));
    }
    Ok(())
}

/// Whether an address leaves the book: it has a scheme, or names a host.
pub fn is_remote(address: &str) -> bool {
    let scheme = address.split_once(':').map(|(scheme, _)| scheme);
    let is_scheme = |scheme: &str| {
        scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    address.starts_with("//") || scheme.is_some_and(is_scheme)
}
