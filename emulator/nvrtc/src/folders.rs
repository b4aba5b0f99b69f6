//! The folders in which toolkits and Python packages keep NVRTC.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Returns the library's files in a toolkit, a Python environment or the library's own folder.
pub(crate) fn libraries_below(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.to_owned()];
    let inside =
        ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "bin", "bin/x64"];
    folders.extend(inside.map(|folder| root.join(folder)));
    let mut files: Vec<_> = folders.iter().flat_map(|folder| libraries_in(folder)).collect();

    let mut site_packages = vec![root.join("Lib/site-packages")];
    let versions = root.join("lib");
    site_packages.extend(entries(&versions).map(|version| version.join("site-packages")));
    for folder in site_packages {
        files.extend(libraries_of_package(&folder.join("nvidia")));
    }
    files
}

/// Returns the library's files in the Python package `nvidia`, for CUDA 12 and later versions.
pub(crate) fn libraries_of_package(package: &Path) -> Vec<PathBuf> {
    let mut parts: Vec<_> = entries(package)
        .filter(|part| {
            let name = part.file_name().and_then(OsStr::to_str).unwrap_or_default();
            name == "cuda_nvrtc" || name.strip_prefix("cu").is_some_and(is_number)
        })
        .collect();
    parts.sort();
    let folders = ["lib", "bin", "bin/x86_64"];
    let folders = parts.iter().flat_map(|part| folders.map(|folder| part.join(folder)));
    folders.flat_map(|folder| libraries_in(&folder)).collect()
}

/// Returns the library's files in one folder, the newest first.
pub(crate) fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = entries(folder).filter(|file| is_library(file)).collect();
    // `libnvrtc.so.13` before `libnvrtc.so.12`, and `libnvrtc.so` last.
    files.sort_by(|a, b| b.cmp(a));
    files
}

/// Returns whether a file is named like the library: `libnvrtc.so`, `libnvrtc.so.12`,
/// `nvrtc64_120_0.dll`. Its builtins do not count, nor does a toolkit's second copy (`.alt`).
pub(crate) fn is_library(file: &Path) -> bool {
    let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let linux = name.strip_prefix("libnvrtc.so").is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('.') && rest.split('.').skip(1).all(is_number)
    });
    let windows = name.strip_prefix("nvrtc64_").and_then(|rest| rest.strip_suffix(".dll"));
    linux || windows.is_some_and(|rest| rest.split('_').all(is_number))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the contents of a folder, which are empty if it cannot be read.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    folder.read_dir().into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

/// Returns the absolute folders of a list like `PATH`. All others depend on the current folder,
/// including an empty entry.
pub(crate) fn whole_paths(list: &OsString) -> Vec<PathBuf> {
    env::split_paths(list).filter(|folder| folder.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn library_names() {
        for name in ["libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.12.0.140", "nvrtc64_120_0.dll"] {
            assert!(is_library(Path::new(name)), "{name}");
        }
        for name in [
            "libnvrtc-builtins.so.12.0",
            "libnvrtc.alt.so.12",
            "libnvrtc_static.a",
            "nvrtc64_120_0.alt.dll",
            "nvrtc-builtins64_120.dll",
            "libnvrtc.so.old",
        ] {
            assert!(!is_library(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn toolkits_and_python_environments_are_searched() {
        let root = tempfile::tempdir().unwrap();
        let there = [
            "lib64/libnvrtc.so.12",
            "lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
            "lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
            "Lib/site-packages/nvidia/cuda_nvrtc/bin/nvrtc64_120_0.dll",
        ];
        for file in there {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let found = libraries_below(root.path());
        for file in there {
            assert!(found.contains(&root.path().join(file)), "{file} is not in {found:?}");
        }
        assert!(libraries_below(&root.path().join("nowhere")).is_empty());
    }

    #[test]
    fn the_newest_version_in_a_folder_comes_first() {
        let root = tempfile::tempdir().unwrap();
        for file in ["libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0"]
        {
            fs::write(root.path().join(file), "").unwrap();
        }
        let found = libraries_in(root.path());
        let names: Vec<_> = found.iter().map(|file| file.file_name().unwrap()).collect();
        assert_eq!(names, ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]);
    }

    #[test]
    fn no_entry_of_a_list_means_the_current_folder() {
        let folders = env::temp_dir();
        let parts = ["", ".", "lib", "../lib"].map(PathBuf::from);
        let list = env::join_paths(parts.iter().chain([&folders])).unwrap();
        assert_eq!(whole_paths(&list), [folders]);
        assert!(whole_paths(&OsString::new()).is_empty());
    }
}
