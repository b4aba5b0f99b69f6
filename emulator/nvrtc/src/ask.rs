//! Asks programs of this machine where libraries are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::folders::{is_library, whole_paths};
use crate::trust::{self, Above};

/// Returns NVRTC's files in the cache of the system's linker, which `ldconfig` prints.
pub(crate) fn linker() -> Vec<PathBuf> {
    let program = Path::new("/sbin/ldconfig");
    if !cfg!(target_os = "linux") || trust::check(program, Above::Closed).is_err() {
        return Vec::new();
    }
    libraries_listed(&output(program, &["-p"]).unwrap_or_default())
}

/// Reads lines like `libnvrtc.so.12 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libnvrtc.so.12`.
fn libraries_listed(text: &str) -> Vec<PathBuf> {
    let files =
        text.lines().filter_map(|line| line.split_once(" => ")).map(|(_, file)| Path::new(file));
    let mut files: Vec<_> = files.filter(|file| is_library(file)).map(Path::to_owned).collect();
    files.sort_by(|a, b| b.cmp(a));
    files
}

/// Returns the folders in which Python has its packages, including the user's own.
///
/// Python runs isolated (`-I`): it reads neither the current folder nor environment variables.
///
/// # Errors
///
/// If no Python could be run: the reasons why those that were found were not run.
pub(crate) fn python() -> Result<Vec<PathBuf>, Vec<String>> {
    let script = "import site, sys; print(*sys.path, site.getusersitepackages(), sep='\\n')";
    let name = if cfg!(windows) { "python.exe" } else { "python3" };
    let mut refusals = Vec::new();
    for folder in whole_paths(&env::var_os("PATH").unwrap_or_default()) {
        let program = folder.join(name);
        if !program.is_file() {
            continue;
        }
        if let Err(refusal) = trust::check(&program, Above::Closed) {
            refusals.push(format!("{} is not run: {refusal}", program.display()));
        } else if let Some(text) = output(&program, &["-I", "-c", script]) {
            return Ok(text
                .lines()
                .map(PathBuf::from)
                .filter(|folder| folder.is_absolute())
                .collect());
        }
    }
    Err(refusals)
}

/// Returns what a program prints.
///
/// It runs in its own folder, and its `PATH` has no entry for the current folder: the `python3` of
/// a version manager is a script that calls programs by name and reads files of the folder in which
/// it runs.
fn output(program: &Path, arguments: &[&str]) -> Option<String> {
    let path = env::join_paths(whole_paths(&env::var_os("PATH").unwrap_or_default())).ok()?;
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", path).current_dir(program.parent()?);
    let output = command.stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_the_linkers_list() {
        let text = "3 libs found in cache `/etc/ld.so.cache'\n\
                    \tlibnvrtc.so.12 (libc6,x86-64) => /usr/lib/libnvrtc.so.12\n\
                    \tlibnvrtc.so.13 (libc6,x86-64) => /usr/lib/libnvrtc.so.13\n\
                    \tlibnvrtc-builtins.so.12.0 (libc6,x86-64) => /usr/lib/libnvrtc-builtins.so.12.0\n\
                    \tlibc.so.6 (libc6,x86-64) => /usr/lib/libc.so.6\n";
        let files = ["/usr/lib/libnvrtc.so.13", "/usr/lib/libnvrtc.so.12"];
        assert_eq!(libraries_listed(text), files.map(PathBuf::from));
        assert!(libraries_listed("").is_empty());
    }
}
