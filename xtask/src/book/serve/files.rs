//! The file of the built book that an address names.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// What an address names.
pub(super) enum Found {
    /// A file.
    File(Regular),
    /// A folder whose pages have other addresses: this one, with the missing slash.
    Folder(String),
}

/// An open file.
pub(super) struct Regular {
    /// The file itself.
    pub file: File,
    /// Its length in bytes.
    pub length: u64,
    /// Its media type.
    pub kind: &'static str,
}

/// What the path of an address names below `folder`, a whole path without links; nothing for what
/// lies outside, behind a link, or is no regular file.
pub(super) fn find(folder: &Path, address: &str) -> Option<Found> {
    let names = address.strip_prefix('/')?;
    let is_folder = names.is_empty() || names.ends_with('/');
    let mut path = folder.to_owned();
    for name in names.split_terminator('/') {
        if !is_plain(name) || !is_folder_itself(&path) {
            return None;
        }
        path.push(name);
    }
    if is_folder_itself(&path) {
        if !is_folder {
            return Some(Found::Folder(format!("{address}/")));
        }
        path.push("index.html");
    } else if is_folder {
        return None;
    }
    let file = regular(&path).ok()?;
    let length = file.metadata().ok()?.len();
    Some(Found::File(Regular { file, length, kind: media_type(path.extension()) }))
}

/// Whether a name is one of the book's: none of these has to be escaped in an address, is hidden,
/// leads elsewhere or is a stream or a drive on Windows.
fn is_plain(name: &str) -> bool {
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-_.".contains(&letter);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_plain)
}

/// Whether a folder is there, and no link to one.
fn is_folder_itself(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Opens a regular file. A pipe is not waited for, and a link is not followed.
fn regular(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
    }
    #[cfg(not(unix))]
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(file)
}

fn media_type(extension: Option<&OsStr>) -> &'static str {
    match extension.and_then(OsStr::to_str) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("woff") => "font/woff",
        Some("ttf") => "font/ttf",
        Some("wasm") => "application/wasm",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A book with a page, a folder and a file beside it, which no address may reach.
    fn book() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("book/a")).unwrap();
        fs::write(folder.path().join("book/index.html"), "home").unwrap();
        fs::write(folder.path().join("book/a/b-1_2.html"), "page").unwrap();
        fs::write(folder.path().join("secret.html"), "secret").unwrap();
        folder
    }

    fn found(folder: &tempfile::TempDir, address: &str) -> Option<String> {
        let book = folder.path().join("book").canonicalize().unwrap();
        match find(&book, address)? {
            Found::File(mut regular) => {
                let mut text = String::new();
                io::Read::read_to_string(&mut regular.file, &mut text).unwrap();
                assert_eq!(regular.length, text.len() as u64);
                Some(text)
            }
            Found::Folder(address) => Some(address),
        }
    }

    #[test]
    fn the_books_files_are_found() {
        let book = book();
        assert_eq!(found(&book, "/").as_deref(), Some("home"));
        assert_eq!(found(&book, "/index.html").as_deref(), Some("home"));
        assert_eq!(found(&book, "/a/b-1_2.html").as_deref(), Some("page"));
        assert_eq!(found(&book, "/a").as_deref(), Some("/a/"));
        assert_eq!(found(&book, "/a/"), None);
    }

    #[test]
    fn nothing_outside_the_book_is_found() {
        let book = book();
        let whole = book.path().join("secret.html");
        for address in [
            "",
            "*",
            "//",
            "/.",
            "/..",
            "/../secret.html",
            "/a/../../secret.html",
            "/a/../index.html",
            "/%2e%2e/secret.html",
            "/%2e%2e%2fsecret.html",
            "/..%2fsecret.html",
            "/%252e%252e/secret.html",
            "/..\\secret.html",
            "/..%5csecret.html",
            "/a//b-1_2.html",
            "/a/./b-1_2.html",
            "/index.html/",
            "/index.html/index.html",
            "/index.html::$DATA",
            "/C:/secret.html",
            "/index.html\0",
            &format!("/{}", whole.display()),
            &whole.display().to_string(),
        ] {
            assert_eq!(found(&book, address), None, "{address}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn links_are_not_followed() {
        use std::os::unix::fs::symlink;
        let book = book();
        let inside = book.path().join("book");
        symlink("../secret.html", inside.join("link.html")).unwrap();
        symlink("index.html", inside.join("other.html")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        symlink("a", inside.join("same")).unwrap();
        for address in ["/link.html", "/other.html", "/up", "/up/secret.html", "/same/b-1_2.html"] {
            assert_eq!(found(&book, address), None, "{address}");
        }
    }
}
