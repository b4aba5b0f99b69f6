//! Serving the book to this machine, rebuilt when something has changed.
//!
//! Anyone on this machine can connect, and any page that is open in its browser can make the
//! browser ask. So it is answered for this machine's own names only, files of the built book only,
//! and within limits.

mod answer;
#[cfg(test)]
mod attacks;
mod connections;
mod content;
mod files;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use lesson::output::{eprintln, println};
use walkdir::WalkDir;

use answer::Site;
use connections::Limits;

/// What a built book depends on, besides this program.
const SOURCES: [&str; 9] = [
    "book.toml",
    "chapters",
    "crates",
    "emulator/simt",
    "kernels",
    "notebooks",
    "src",
    "tests",
    "xtask/theme",
];

/// Serves the book of the workspace at `root` on 127.0.0.1 until the program is ended.
///
/// Whenever a page is asked for and a source is newer than the last build, the book is built again
/// first: to see a change, reload the page. A build that fails says so in the terminal, and the
/// pages stay.
///
/// # Errors
///
/// When the port cannot be used, or the first build leaves no pages.
pub fn serve(root: &Path, port: u16, open: bool) -> Result<()> {
    let output = root.join("target/book");
    let built = Mutex::new(rebuild(root));
    if !output.join("index.html").is_file() {
        return Err(anyhow!("there is no book to serve"));
    }
    let listener = listen(port)?;
    let port = listener.local_addr().context("the server has no address")?.port();
    let address = format!("http://127.0.0.1:{port}/");
    println!("serving the book at {address} (end with Ctrl-C)");
    if open {
        opener::open(&address).context("no browser could be opened")?;
    }
    let root = root.to_owned();
    let site = Site::new(&output, port, move || {
        let mut built = built.lock().unwrap_or_else(PoisonError::into_inner);
        if newest_source(&root) > *built {
            *built = rebuild(&root);
        }
    })?;
    connections::serve(listener, site, Limits::default())
}

/// Takes a port of this machine's own address, which no other machine reaches.
fn listen(port: u16) -> Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("port {port} cannot be served"))
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
