//! Serving the book to this machine, rebuilt when something has changed.

use std::ffi::OsStr;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use tiny_http::{Header, Request, Response, Server};
use walkdir::WalkDir;

/// What a built book depends on, besides this program.
const SOURCES: [&str; 7] =
    ["book.toml", "chapters", "kernels", "notebooks", "src", "tests", "xtask/theme"];

/// Serves the book of the workspace at `root` on 127.0.0.1 until the program is ended.
///
/// Whenever a page is asked for and a source is newer than the last build, the book is built again first: to
/// see a change, reload the page. A build that fails says so in the terminal, and the pages stay.
///
/// # Errors
///
/// When the port cannot be used, or the first build leaves no pages.
pub fn serve(root: &Path, port: u16, open: bool) -> Result<()> {
    let output = root.join("target/book");
    let mut built = rebuild(root);
    if !output.join("index.html").is_file() {
        return Err(anyhow!("there is no book to serve"));
    }
    let server = Server::http((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| anyhow!("port {port} cannot be served: {error}"))?;
    let address = server.server_addr().to_ip().context("the server has no address")?;
    let address = format!("http://{address}/");
    println!("serving the book at {address} (end with Ctrl-C)");
    if open {
        opener::open(&address).context("no browser could be opened")?;
    }
    for request in server.incoming_requests() {
        let is_page = !request.url().contains('.') || request.url().contains(".html");
        if is_page && newest_source(root) > built {
            built = rebuild(root);
        }
        // A browser that went away is no concern of ours.
        let _ = answer(request, &output);
    }
    Ok(())
}

/// Builds, says what came of it, and gives the time that the sources were read.
fn rebuild(root: &Path) -> SystemTime {
    let start = SystemTime::now();
    match super::build(root) {
        Ok(book) => println!("built {} pages", book.pages.count()),
        Err(error) => eprintln!("error: {error:#}"),
    }
    start
}

/// The time of the last change to a source.
fn newest_source(root: &Path) -> SystemTime {
    let entries = SOURCES.iter().flat_map(|source| WalkDir::new(root.join(source)));
    entries
        .filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok())
        .max()
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

fn answer(request: Request, output: &Path) -> std::io::Result<()> {
    let content =
        file_of(request.url(), output).and_then(|path| Some((fs::read(&path).ok()?, path)));
    match content {
        Some((bytes, path)) => {
            let kind = content_type(path.extension());
            let mut response = Response::from_data(bytes);
            for (name, value) in [("Content-Type", kind), ("Cache-Control", "no-store")] {
                if let Ok(header) = Header::from_bytes(name, value) {
                    response.add_header(header);
                }
            }
            request.respond(response)
        }
        None => {
            let response = Response::from_string("There is no such page.").with_status_code(404);
            request.respond(response)
        }
    }
}

/// The file of the book that an address names; nothing for what lies outside.
fn file_of(address: &str, output: &Path) -> Option<PathBuf> {
    let path = address.split(['?', '#']).next()?.trim_start_matches('/');
    let path = Path::new(path);
    // The book's names need no percent-encoding, and nothing outside the book is served.
    if !path.components().all(|component| matches!(component, Component::Normal(_))) {
        return None;
    }
    let file = output.join(path);
    Some(if file.is_dir() { file.join("index.html") } else { file })
}

fn content_type(extension: Option<&OsStr>) -> &'static str {
    match extension.and_then(OsStr::to_str) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("wasm") => "application/wasm",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_the_book_is_served() {
        let book = Path::new("book");
        assert_eq!(file_of("/a/b.html?x#y", book), Some(book.join("a/b.html")));
        assert_eq!(file_of("/../secret", book), None);
        assert_eq!(file_of("/a/../../secret", book), None);
    }
}
