//! A driver that fails on command, in a process without any other driver.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::{env, fs};

const SOURCE: &str = include_str!("libcuda.c");
const INSTRUCTIONS: &str = "FAKE_CUDA";
const REPORT: &str = "FAKE_CUDA_REPORT";
/// The variable that names the scenario of a process.
pub const SCENARIO: &str = "LINREC_TEST_SCENARIO";

/// The record of a process with the fake driver.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    /// The scenario's output for every step.
    pub steps: Vec<String>,
    pub calls: BTreeMap<String, u32>,
    /// The number of objects of each kind that were not released.
    pub live: BTreeMap<String, u32>,
    /// The calls that no program may make.
    pub wrong: Vec<String>,
    output: String,
}

/// Runs a scenario in its own process, with the fake driver under these instructions.
pub fn run(scenario: &str, instructions: &str) -> Outcome {
    run_with(library(), scenario, instructions)
}

pub fn run_without(function: &str, scenario: &str) -> Outcome {
    run_lacking(function, scenario, "")
}

pub fn run_lacking(function: &str, scenario: &str, instructions: &str) -> Outcome {
    let folder = lacking(library(), FILE, function);
    run_with(&folder, scenario, instructions)
}

fn run_with(folder: &Path, scenario: &str, instructions: &str) -> Outcome {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    let report = folder.join(format!("report-{}-{number}", std::process::id()));
    // This module without the executable's name, as in the harness's names of tests.
    let (_, module) = module_path!().split_once("::").unwrap();
    let child = module.replace("fake", "a_process_with_a_scenario");
    let output = Command::new(env::current_exe().unwrap())
        .args([&child, "--exact", "--ignored", "--no-capture", "--test-threads=1"])
        .env("LD_LIBRARY_PATH", folder)
        .env(INSTRUCTIONS, instructions)
        .env(REPORT, &report)
        .env(SCENARIO, scenario)
        .env_remove("CUDA_VISIBLE_DEVICES")
        .env_remove("LINREC_DEVICE")
        .env_remove("LINREC_REQUIRE_CUDA")
        .env_remove("RUST_TEST_THREADS")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut outcome = Outcome {
        status: output.status,
        steps: text.lines().filter_map(|line| line.strip_prefix("step ")).map(Into::into).collect(),
        calls: BTreeMap::new(),
        live: BTreeMap::new(),
        wrong: Vec::new(),
        output: format!("{text}{}", String::from_utf8_lossy(&output.stderr)),
    };
    for line in fs::read_to_string(&report).unwrap_or_default().lines() {
        let words: Vec<_> = line.splitn(3, ' ').collect();
        let (all, name, number) = match words[..] {
            ["calls", name, number] => (&mut outcome.calls, name, number),
            ["live", kind, number] => (&mut outcome.live, kind, number),
            _ => {
                outcome.wrong.push(line.to_owned());
                continue;
            }
        };
        all.insert(name.to_owned(), number.parse().unwrap());
    }
    let _ = fs::remove_file(&report);
    outcome
}

impl Outcome {
    /// Panics unless the process reached its end and did nothing wrong.
    pub fn must_end_well(&self, what: &str) {
        assert!(self.status.success(), "{what}: {}\n{}", self.status, self.output);
        assert!(self.output.contains("1 passed"), "{what}: no test ran\n{}", self.output);
        assert!(self.steps.last().is_some_and(|last| last == "end"), "{what}\n{}", self.output);
        assert!(self.wrong.is_empty(), "{what}: {:?}\n{}", self.wrong, self.output);
    }

    pub fn errors(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| Some(step.split_once(": error: ")?.1))
    }

    pub fn count(&self, function: &str) -> u32 {
        self.calls.get(function).copied().unwrap_or(0)
    }

    pub fn left(&self, kind: &str) -> u32 {
        self.live.get(kind).copied().unwrap_or(0)
    }
}

pub const FILE: &str = "libcuda.so.1";

/// Returns the folder of the fake driver, which is compiled once.
pub fn library() -> &'static Path {
    static COMPILED: OnceLock<PathBuf> = OnceLock::new();
    COMPILED.get_or_init(|| compiled("fake-driver", FILE, SOURCE))
}

/// Compiles a library from C under this name, and returns its folder.
pub fn compiled(folder: &str, file: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let made = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (source, target) = (made.path().join("library.c"), made.path().join(file));
    fs::write(&source, text).unwrap();
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let output = Command::new(&compiler)
        .args(["-shared", "-fPIC", "-O1", "-s", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&target, &source])
        .output()
        .unwrap_or_else(|error| panic!("{compiler:?}, which this test needs: {error}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler:?} refuses {file}: {messages}");
    place(&folder, file, &fs::read(&target).unwrap());
    folder
}

/// Returns a folder with a copy of a library that lacks one function.
pub fn lacking(folder: &Path, file: &str, function: &str) -> PathBuf {
    let mut bytes = fs::read(folder.join(file)).unwrap();
    let name = format!("\0{function}\0").into_bytes();
    // The first match is in the table in which the loader looks up names.
    let at = bytes.windows(name.len()).position(|window| window == name);
    let at = at.unwrap_or_else(|| panic!("the fake library has no {function}"));
    bytes[at + 1] = b'x';
    let folder = folder.join(format!("without-{function}"));
    place(&folder, file, &bytes);
    folder
}

/// Writes the library into a folder in one step, as another test run may be using the old one.
fn place(folder: &Path, name: &str, bytes: &[u8]) {
    fs::create_dir_all(folder).unwrap();
    let file = tempfile::NamedTempFile::new_in(folder).unwrap();
    fs::write(file.path(), bytes).unwrap();
    file.persist(folder.join(name)).unwrap();
}
