//! `cargo xtask wheel`: builds the Python package as a wheel, and tests it.

use fs_err as fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lesson::output::println;
use xshell::cmd;

use crate::python::{Environment, Requirements};
use crate::workspace;

/// The bytes that a wheel must stay below.
const LIMIT: u64 = 15_000_000;

const BUILD: Requirements = Requirements {
    packages: include_str!("requirements.txt"),
    advice: "maturin is installed from the Python package index, which must be reachable",
};

/// The packages for the tests: PyTorch with its dependencies, NumPy, JAX and pytest.
const TESTS: Requirements = Requirements {
    packages: include_str!("tests.txt"),
    advice: "PyTorch is installed from the Python package index, which must be reachable (5.4 GB on the disk)",
};

/// Builds the wheel into `target/wheels`; returns its path.
pub fn build(root: &Path) -> Result<PathBuf> {
    let announce = || println!("installing maturin into target/wheel-build");
    let environment = Environment::with(&root.join("target/wheel-build"), &BUILD, announce)?;
    let out = root.join("target/wheels");
    if out.is_dir() {
        fs::remove_dir_all(&out)?;
    }
    let (maturin, python) = (environment.program("maturin"), environment.program("python"));
    let shell = workspace::shell(root)?;
    cmd!(
        shell,
        "{maturin} build --release --quiet --manifest-path python/Cargo.toml
            --interpreter {python} --target-dir target/python --out {out}"
    )
    .quiet()
    .run()?;
    let wheel = workspace::files(&out, "whl", 1).pop();
    let wheel = wheel.with_context(|| format!("maturin has left no wheel in {}", out.display()))?;
    let bytes = fs::metadata(&wheel)?.len();
    ensure!(bytes < LIMIT, "the wheel has {bytes} bytes, and may have less than {LIMIT}");
    Ok(wheel)
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
    // The package's source folder would hide the installed package.
    let shell = workspace::shell(&root.join("target"))?;
    let pip = cmd!(shell, "{python} -I -m pip install --quiet --disable-pip-version-check");
    pip.args(["--no-deps", "--force-reinstall"]).arg(&wheel).quiet().run()?;
    let pytest = cmd!(shell, "{python} -m pytest --quiet -p no:cacheprovider --config-file");
    pytest.args(["../python/pyproject.toml", "../python/tests"]).quiet().run()?;
    Ok(format!("tested {}", wheel.display()))
}
