//! Looks for NVRTC in the places where toolkits, systems and Python keep it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::folders::{libraries_below, libraries_in, libraries_of_package, whole_paths};
use crate::library::builtins_of;
use crate::trust::{self, Above};
use crate::{Error, Nvrtc, ask};

/// The variable that names the library's file or folder.
const VARIABLE: &str = "LINREC_NVRTC";

impl Nvrtc {
    /// Returns the NVRTC of this machine, which the first call loads.
    ///
    /// The first library that loads is used. The places are, in this order: a CUDA toolkit
    /// (`CUDA_PATH`, `CUDA_HOME`, `/usr/local/cuda`), the folders of the system's linker, an active
    /// Python environment (`VIRTUAL_ENV`, `CONDA_PREFIX`), the environment `target/nvrtc` of the
    /// workspace in which this library was built or of the workspace around it, and the packages of
    /// `python3`. If `LINREC_NVRTC` names a file or a folder, no other place is tried.
    ///
    /// # Whose code is loaded
    ///
    /// All of these places belong to the system or to the user. The current folder is never one of
    /// them: only absolute paths in `PATH` and `LD_LIBRARY_PATH` count. On Unix the library, the
    /// folders above it and the links on the way must belong to the user or to root, and nobody
    /// else may write to them; the library may be below a folder like `/tmp`, but not directly in
    /// it. On Windows permissions are not checked. If no library loads, the error names those that
    /// were refused.
    ///
    /// # Errors
    ///
    /// If no library loads. The message says how to install it.
    pub fn find() -> Result<&'static Nvrtc, Error> {
        static FOUND: OnceLock<Result<Nvrtc, Error>> = OnceLock::new();
        FOUND.get_or_init(first_that_loads).as_ref().map_err(Clone::clone)
    }

    /// Loads the first NVRTC in a folder, which may be a toolkit or a Python environment.
    ///
    /// # Errors
    ///
    /// If there is no library below `root`, or none of them loads.
    ///
    /// # Safety
    ///
    /// Every file below `root` that has the name of NVRTC or of its `builtins` fulfils the
    /// conditions of [`Nvrtc::load`].
    #[allow(unsafe_code)]
    pub unsafe fn load_below(root: &Path) -> Result<Nvrtc, Error> {
        let mut refusal = Error::new(format!("there is no NVRTC in {}", root.display()));
        for file in libraries_below(root) {
            // SAFETY: the caller vouches for every such file below `root`.
            match unsafe { Nvrtc::load(&file) } {
                Ok(nvrtc) => return Ok(nvrtc),
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }
}

fn first_that_loads() -> Result<Nvrtc, Error> {
    let searches = match variable(VARIABLE) {
        Some(_) => &[named as fn() -> Vec<Found>][..],
        None => &[of_toolkits, of_linker, of_environments, of_workspace, of_python],
    };
    let mut refusals = Vec::new();
    for found in searches.iter().flat_map(|search| search()) {
        match found.and_then(|file| load_trusted(&file)) {
            Ok(nvrtc) => return Ok(nvrtc),
            Err(refusal) if refusals.contains(&refusal) => {}
            Err(refusal) => refusals.push(refusal),
        }
    }
    Err(Error::new(advice(&refusals)))
}

/// A library's file, or why a place was not searched.
type Found = Result<PathBuf, String>;

/// Loads a library that nobody but the user and the system can have put there.
#[allow(unsafe_code)]
fn load_trusted(file: &Path) -> Result<Nvrtc, String> {
    let refused = |why| format!("{} is not loaded: {why}", file.display());
    let file = trust::check(file, Above::Closed).map_err(refused)?;
    if let Some(builtins) = builtins_of(&file) {
        trust::check(&builtins, Above::Closed).map_err(refused)?;
    }
    // SAFETY: (1) the file has NVRTC's name in a place where the user or the system keeps NVRTC;
    // (2) the file, its builtins and the folders above were found to belong to the user or the
    // system, so nobody else decides what is in them.
    unsafe { Nvrtc::load(&file) }.map_err(|error| error.to_string())
}

fn advice(refusals: &[String]) -> String {
    let mut message = match variable(VARIABLE) {
        Some(value) => format!(
            "the CUDA compiler library was not found at {VARIABLE}={}: name its file or folder there",
            value.display()
        ),
        None if cfg!(target_os = "macos") => String::from(
            "the CUDA compiler library does not exist for macOS: only kernels that are shipped as PTX \
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

/// Returns the value of an environment variable, if it is not empty.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the folder that an environment variable names. A path relative to the current folder is
/// refused.
fn folder(name: &str) -> Option<Result<PathBuf, String>> {
    let folder = PathBuf::from(variable(name)?);
    let refusal =
        || format!("{name}={} is not searched: it is not an absolute path", folder.display());
    Some(if folder.is_absolute() { Ok(folder) } else { Err(refusal()) })
}

/// Returns the libraries below the folders that these variables name.
fn below_each(variables: &[&str]) -> Vec<Found> {
    let folders = variables.iter().filter_map(|name| folder(name));
    folders
        .flat_map(|folder| match folder {
            Ok(folder) => found(libraries_below(&folder)),
            Err(refusal) => vec![Err(refusal)],
        })
        .collect()
}

fn found(files: impl IntoIterator<Item = PathBuf>) -> Vec<Found> {
    files.into_iter().map(Ok).collect()
}

fn named() -> Vec<Found> {
    match folder(VARIABLE) {
        Some(Ok(file)) if file.is_file() => vec![Ok(file)],
        _ => below_each(&[VARIABLE]),
    }
}

fn of_toolkits() -> Vec<Found> {
    let mut files = below_each(&["CUDA_PATH", "CUDA_HOME"]);
    files.extend(found(libraries_below(Path::new("/usr/local/cuda"))));
    files
}

/// Returns the libraries that the system's linker would find. The linker itself is not used: it
/// looks in the current folder if `LD_LIBRARY_PATH` has an empty entry, and on Windows always.
fn of_linker() -> Vec<Found> {
    let list = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };
    let folders = whole_paths(&env::var_os(list).unwrap_or_default());
    let mut files = found(folders.iter().flat_map(|folder| libraries_in(folder)));
    files.extend(found(ask::linker()));
    files
}

fn of_environments() -> Vec<Found> {
    below_each(&["VIRTUAL_ENV", "CONDA_PREFIX"])
}

/// Returns the libraries of the environment `nvrtc` in the target folder of this library's
/// workspace, or of the workspace around it. Their places are known at compile time.
fn of_workspace() -> Vec<Found> {
    let target = variable("CARGO_TARGET_DIR")
        .or_else(|| option_env!("CARGO_TARGET_DIR").map(OsString::from));
    let target = target.unwrap_or_else(|| OsString::from("target"));
    let workspaces = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(1).take(2);
    found(workspaces.flat_map(|root| libraries_below(&root.join(&target).join("nvrtc"))))
}

fn of_python() -> Vec<Found> {
    match ask::python() {
        Ok(folders) => {
            found(folders.iter().flat_map(|folder| libraries_of_package(&folder.join("nvidia"))))
        }
        Err(refusals) => refusals.into_iter().map(Err).collect(),
    }
}
