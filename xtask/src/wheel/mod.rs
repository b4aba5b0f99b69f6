//! `cargo xtask wheel`: builds the Python package as a wheel, and tests it.

use fs_err as fs;
use std::env::{self, consts::ARCH};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lesson::output::println;
use xshell::cmd;

use crate::python::{Environment, Requirements};
use crate::{dependencies, workspace};

/// The bytes that a wheel must stay below.
const LIMIT: u64 = 15_000_000;

/// The oldest Linux that the wheel is for: one with glibc 2.28, as PyTorch's own wheels.
const OLDEST_LINUX: &str = "manylinux_2_28";

/// The folder with the licences of what the wheel contains, and the file about other crates.
const LICENCES: &str = "python/licenses";
const OF_OTHERS: &str = "THIRD-PARTY.txt";

/// The packages for the tests: PyTorch with its dependencies, NumPy, JAX and pytest.
const TESTS: Requirements = Requirements {
    packages: include_str!("tests.txt"),
    advice: "PyTorch is installed from the Python package index, which must be reachable (5.4 GB on the disk)",
};

/// Builds the wheel into `target/wheels`; returns its path.
///
/// On Linux, zig links it with an older C library than this machine has, and maturin compares the
/// symbols that it needs with those of [`OLDEST_LINUX`].
pub fn build(root: &Path) -> Result<PathBuf> {
    let environment = dependencies::tools(root)?;
    let out = root.join("target/wheels");
    if out.is_dir() {
        fs::remove_dir_all(&out)?;
    }
    let (maturin, python) = (environment.program("maturin"), environment.program("python"));
    let shell = workspace::shell(root)?;
    write_licences(root)?;
    let mut build = cmd!(
        shell,
        "{maturin} build --release --quiet --manifest-path python/Cargo.toml
            --interpreter {python} --target-dir target/python --out {out}"
    );
    if cfg!(target_os = "linux") {
        // maturin finds zig by the Python of this environment.
        let programs = python.parent().into_iter().map(Path::to_owned);
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(programs.chain(env::split_paths(&path)))?;
        build = build.args(["--zig", "--compatibility", OLDEST_LINUX]).env("PATH", path);
    }
    build.quiet().run()?;
    let wheel = workspace::files(&out, "whl", 1).pop();
    let wheel = wheel.with_context(|| format!("maturin has left no wheel in {}", out.display()))?;
    let bytes = fs::metadata(&wheel)?.len();
    ensure!(bytes < LIMIT, "the wheel has {bytes} bytes, and may have less than {LIMIT}");
    Ok(wheel)
}

/// Writes the licences of this project and of what the wheel is linked with.
fn write_licences(root: &Path) -> Result<()> {
    let (shell, rustc) = (workspace::shell(root)?, env::var_os("RUSTC"));
    let rustc = rustc.unwrap_or_else(|| "rustc".into());
    let host = cmd!(shell, "{rustc} --print host-tuple").quiet().read()?;
    let others = dependencies::licences(root, "python/Cargo.toml", &host)?;
    let folder = root.join(LICENCES);
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        workspace::copy(&root.join(name), &folder.join(name))?;
    }
    workspace::write(&folder.join(OF_OTHERS), others)
}

fn tests(root: &Path) -> PathBuf {
    root.join("target/wheel-tests")
}

/// The folder with PyTorch and the package, if [`check`] has installed them.
pub fn packages(root: &Path) -> Option<PathBuf> {
    Environment::found(&tests(root))?.packages()
}

/// Prepares the environment for the tests, in `target/wheel-tests`.
pub fn prepare(root: &Path) -> Result<Environment> {
    let announce =
        || println!("installing PyTorch into target/wheel-tests, which takes a minute or two");
    Environment::with(&tests(root), &TESTS, announce)
}

/// Builds the wheel, installs it beside PyTorch and runs the package's tests; returns a sentence.
pub fn check(root: &Path) -> Result<String> {
    let environment = prepare(root)?;
    let wheel = build(root)?;
    let python = environment.program("python");
    let name = workspace::name_of(&wheel);
    let tagged = name.ends_with(&format!("-{OLDEST_LINUX}_{ARCH}.whl"));
    ensure!(tagged || !cfg!(target_os = "linux"), "{name} is not for {OLDEST_LINUX}");
    // The package's source folder would hide the installed package.
    let shell = workspace::shell(&root.join("target"))?;
    let pip = cmd!(shell, "{python} -I -m pip install --quiet --disable-pip-version-check");
    pip.args(["--no-deps", "--force-reinstall"]).arg(&wheel).quiet().run()?;
    let held = "import importlib.metadata as m; print(*m.files('linrec'), sep='\\n')";
    let held = cmd!(shell, "{python} -I -c {held}").quiet().read()?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE", OF_OTHERS] {
        let is_it = |file: &str| file.contains(".dist-info") && file.ends_with(licence);
        ensure!(held.lines().any(is_it), "{name} does not contain {licence}");
    }
    let pytest = cmd!(shell, "{python} -m pytest --quiet -p no:cacheprovider --config-file");
    pytest.args(["../python/pyproject.toml", "../python/tests"]).quiet().run()?;
    Ok(format!("tested {}", wheel.display()))
}
