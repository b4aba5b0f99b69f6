//! The search for NCCL's library.

use std::env;
use std::path::{Path, PathBuf};

use libloading::Library;
use nvrtc::trust::{self, Above};

use crate::Error;

/// The variable that names the library's file.
const VARIABLE: &str = "LINREC_NCCL";
/// The advice where the library is missing.
pub(super) const WAY_OUT: &str = "install NCCL 2.14 or newer (`pip install nvidia-nccl-cu12`, or the system's \
                                  libnccl2), name its file in LINREC_NCCL, or let arrays go through the memory of the host (LINREC_NCCL=none, \
                                  `Group::through_host`)";
/// The value of the variable if NCCL is not wanted.
const NONE: &str = "none";
/// The names that the system's linker looks for, on its path and the user's.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// True if the user declines NCCL.
pub(in crate::device::cuda) fn is_declined() -> bool {
    env::var_os(VARIABLE).is_some_and(|value| value == NONE)
}

/// Returns the first library that loads: the file that `LINREC_NCCL` names and no other, or the
/// linker's, or the file of an active Python environment (`VIRTUAL_ENV`, `CONDA_PREFIX`).
pub(super) fn library() -> Result<Library, Error> {
    if cfg!(not(target_os = "linux")) {
        return Err(failure(format!("there is none for this system; {WAY_OUT}")));
    }
    let folder = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(file) = folder(VARIABLE) {
        return load(&file).map_err(|why| {
            failure(format!("{VARIABLE}={} cannot be used: {why}", file.display()))
        });
    }
    // SAFETY: (1) the linker looks for a bare name on its path, which is the system's and the
    // user's; (2) the library with this name is NCCL, whose initialisation can run in any program.
    let found = NAMES.into_iter().find_map(|name| unsafe { open(Path::new(name)) }.ok());
    if let Some(library) = found {
        return Ok(library);
    }
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(folder);
    let mut refusals = String::new();
    for file in environments.flat_map(|root| below(&root)) {
        match load(&file) {
            Ok(library) => return Ok(library),
            Err(why) => refusals += &format!("; {} is not loaded: {why}", file.display()),
        }
    }
    Err(failure(format!("{} was not found; {WAY_OUT}{refusals}", NAMES[0])))
}

/// Loads a library that only the user and the system can have put there.
fn load(file: &Path) -> Result<Library, String> {
    let file = trust::check(file, Above::Closed)?;
    // SAFETY: (1) the file has NCCL's name in an environment of the user's, or the user has named
    // it; (2) `trust` found that it and the folders above are the user's or the system's.
    unsafe { open(&file) }.map_err(|error| error.to_string())
}

/// Returns the library's files in a Python environment.
fn below(root: &Path) -> Vec<PathBuf> {
    let versions = root.join("lib").read_dir().into_iter().flatten().flatten();
    let files = versions.map(|version| version.path().join("site-packages/nvidia/nccl/lib"));
    let mut files: Vec<_> = files.map(|folder| folder.join(NAMES[0])).collect();
    files.retain(|file| root.is_absolute() && file.is_file());
    files.sort();
    files
}

/// Loads a library from its file, or by a name that the linker looks for.
///
/// # Safety
///
/// 1. The library found there is NCCL, which any program can load.
/// 2. Nobody else can put another file there before this returns.
unsafe fn open(file: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: as the caller promises.
    unsafe { Library::new(file) }
}

/// Returns an error of NCCL's.
pub(in crate::device::cuda) fn failure(message: impl Into<String>) -> Error {
    Error::device("NCCL", message)
}
