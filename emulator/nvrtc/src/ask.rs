//! Programs of this machine that know where libraries are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::folders::{is_library, whole_paths};
use crate::trust::{self, Above};

/// NVRTC's files in the list of what the system's linker finds without being told where, which
/// `ldconfig` prints.
pub(crate) fn linker() -> Vec<PathBuf> {
    let program = Path::new("/sbin/ldconfig");
    if !cfg!(target_os = "linux") || trust::check(program, Above::Closed).is_err() {
        return Vec::new();
    }
    libraries_listed(&output(program, &["-p"]).unwrap_or_default())
}

/// From lines like `libnvrtc.so.12 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libnvrtc.so.12`.
fn libraries_listed(text: &str) -> Vec<PathBuf> {
    let files =
        text.lines().filter_map(|line| line.split_once(" => ")).map(|(_, file)| Path::new(file));
    let mut files: Vec<_> = files.filter(|file| is_library(file)).map(Path::to_owned).collect();
    files.sort_by(|a, b| b.cmp(a));
    files
}

/// The folders in which Python has its packages, the user's own among them; nothing if there is no
/// Python.
///
/// Python is told to look at nothing but its installation (`-I`): neither at the current folder nor
/// at variables.
///
/// # Errors
///
/// Why those that were found were not run.
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

/// What a program prints. It runs in its own folder, and what it calls by name is not looked for in
/// the current one: the `python3` of a version manager is a script, which reads files of the folder
/// where it runs.
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
    fn what_the_linker_finds_is_read_from_its_list() {
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
