//! Where NVRTC may be.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{Nvrtc, failure};
use crate::Error;

/// The variable that names the library's file or folder.
const VARIABLE: &str = "LINREC_NVRTC";

/// One place where NVRTC is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Why it is looked at: `CUDA_PATH`, `the linker's path`.
    pub because: &'static str,
    /// The library's file; its bare name where the system's linker is to find it.
    pub file: PathBuf,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.file.display(), self.because)
    }
}

impl Nvrtc {
    /// The NVRTC of this machine, loaded when it is first asked for.
    ///
    /// The first that loads is taken: that of a CUDA toolkit, of the linker's path, of an active Python
    /// environment, the one that `cargo xtask ptx` installs, and that of whatever `python3` is. If
    /// `LINREC_NVRTC` is set, to a file or a folder, nothing else is tried.
    ///
    /// # Errors
    ///
    /// If there is none; the message says how to get it.
    pub fn find() -> Result<&'static Nvrtc, Error> {
        static FOUND: OnceLock<Result<Nvrtc, Error>> = OnceLock::new();
        FOUND.get_or_init(first_that_loads).as_ref().map_err(Clone::clone)
    }
}

impl Nvrtc {
    /// The first NVRTC that loads from a toolkit, a Python environment or a folder of its own.
    ///
    /// # Errors
    ///
    /// If there is none below `root`.
    pub fn load_below(root: &Path) -> Result<Nvrtc, Error> {
        let mut refusal = failure(format!("there is no NVRTC in {}", root.display()));
        for file in libraries_below(root) {
            match Nvrtc::load(&file) {
                Ok(nvrtc) => return Ok(nvrtc),
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }
}

fn first_that_loads() -> Result<Nvrtc, Error> {
    let mut refusals = Vec::new();
    for search in [places, from_python] {
        for place in search() {
            match Nvrtc::load(&place.file) {
                Ok(nvrtc) => return Ok(nvrtc),
                // That a linker's path does not have it is the usual case, and no news.
                Err(_) if place.file.parent() == Some(Path::new("")) => {}
                Err(error) => refusals.push(error.to_string()),
            }
        }
    }
    Err(failure(advice(&refusals)))
}

fn advice(refusals: &[String]) -> String {
    let mut message = match env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        Some(value) => format!(
            "the CUDA compiler library was not found at {VARIABLE}={}: name its file or folder there",
            value.display()
        ),
        None if cfg!(target_os = "macos") => String::from(
            "the CUDA compiler library does not exist for macOS: only the kernels whose PTX is shipped \
             run here",
        ),
        None => format!(
            "the CUDA compiler library was not found: install it with `pip install \
             nvidia-cuda-nvrtc-cu12`, or name its file or folder in {VARIABLE}"
        ),
    };
    for refusal in refusals {
        message.push_str("; ");
        message.push_str(refusal);
    }
    message
}

/// The library files that are there, in the order in which they are tried, and bare names where the
/// system's linker may know them. What Python would have to be asked for is not among them.
pub fn places() -> Vec<Place> {
    if let Some(value) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let path = PathBuf::from(value);
        let files = if path.is_file() { vec![path] } else { libraries_below(&path) };
        return files.into_iter().map(|file| Place { because: VARIABLE, file }).collect();
    }
    let variable = |name: &'static str| Some((name, PathBuf::from(env::var_os(name)?)));
    let toolkits = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(variable);
    let toolkits =
        toolkits.chain([("the CUDA toolkit's folder", PathBuf::from("/usr/local/cuda"))]);
    let linker = if cfg!(windows) {
        ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"]
    } else {
        ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    };
    let linker =
        linker.map(|name| Place { because: "the linker's path", file: PathBuf::from(name) });
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable);
    let own = own_environment().map(|root| ("made by `cargo xtask ptx`", root));
    toolkits.flat_map(below).chain(linker).chain(environments.chain(own).flat_map(below)).collect()
}

fn below((because, root): (&'static str, PathBuf)) -> impl Iterator<Item = Place> {
    libraries_below(&root).into_iter().map(move |file| Place { because, file })
}

/// The package in the environment of whatever `python3` is, if one can be run.
fn from_python() -> Vec<Place> {
    if env::var_os(VARIABLE).is_some_and(|value| !value.is_empty()) {
        return Vec::new();
    }
    let script = "import importlib.util as util\n\
                  package = util.find_spec('nvidia')\n\
                  print(*(package.submodule_search_locations if package else []), sep='\\n')";
    let python = if cfg!(windows) { "python" } else { "python3" };
    let Ok(output) = Command::new(python).args(["-c", script]).output() else { return Vec::new() };
    let folders = String::from_utf8_lossy(&output.stdout);
    let files = folders
        .lines()
        .filter(|line| !line.is_empty())
        .flat_map(|folder| libraries_of_package(Path::new(folder)));
    files.map(|file| Place { because: "Python's package", file }).collect()
}

/// The environment that `cargo xtask ptx` made: `target/nvrtc` here or in a folder above.
fn own_environment() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let targets = target.into_iter().chain(here.ancestors().map(|folder| folder.join("target")));
    targets.map(|target| target.join("nvrtc")).find(|folder| folder.is_dir())
}

/// The library's files in a toolkit, a Python environment or the library's own folder.
fn libraries_below(root: &Path) -> Vec<PathBuf> {
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

/// The library's files in the Python package `nvidia`, of CUDA 12 and of later versions.
fn libraries_of_package(package: &Path) -> Vec<PathBuf> {
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

/// The library's files in one folder, the newest first.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = entries(folder).filter(|file| is_library(file)).collect();
    // `libnvrtc.so.13` before `libnvrtc.so.12`, and the one without a number last.
    files.sort_by(|a, b| b.cmp(a));
    files
}

/// `libnvrtc.so`, `libnvrtc.so.12`, `nvrtc64_120_0.dll`; not the builtins, nor the second copy that a
/// toolkit has under `.alt`.
fn is_library(file: &Path) -> bool {
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

/// What a folder holds; nothing if it cannot be read.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    folder.read_dir().into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
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
    fn toolkits_and_python_environments_are_looked_through() {
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
    fn two_versions_in_one_folder_the_newer_first() {
        let root = tempfile::tempdir().unwrap();
        for file in ["libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0"]
        {
            fs::write(root.path().join(file), "").unwrap();
        }
        let found = libraries_in(root.path());
        let names: Vec<_> = found.iter().map(|file| file.file_name().unwrap()).collect();
        assert_eq!(names, ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]);
    }
}
