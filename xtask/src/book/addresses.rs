//! The addresses of the pages in the built book.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// The page, relative to the folder of the book, that is built from each source file.
pub type Addresses = BTreeMap<PathBuf, PathBuf>;

/// The page that mdBook builds from the Markdown file `page`: a `README.md` is its folder's index.
pub fn built(page: &Path) -> PathBuf {
    match page.file_name() {
        Some(name) if name == "README.md" => page.with_file_name("index.html"),
        _ => page.with_extension("html"),
    }
}

/// The address of `to` in a link of the page `from`. Both are relative to the folder of the book.
pub fn relative(from: &Path, to: &Path) -> String {
    let folder: Vec<Component> =
        from.parent().map(|folder| folder.components().collect()).unwrap_or_default();
    let target: Vec<Component> = to.components().collect();
    let shared = folder.iter().zip(&target).take_while(|(a, b)| a == b).count();
    let up = folder[shared..].iter().map(|_| "..".to_owned());
    let down = target[shared..].iter().map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_goes_up_only_as_far_as_it_must() {
        let link = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(link("index.html", "01-a/index.html"), "01-a/index.html");
        assert_eq!(link("01-a/index.html", "01-a/notebook.html"), "notebook.html");
        assert_eq!(link("01-a/notebook.html", "02-b/index.html"), "../02-b/index.html");
        assert_eq!(link("01-a/b/c.html", "index.html"), "../../index.html");
    }
}
