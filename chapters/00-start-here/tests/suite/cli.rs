//! Tests the tour as a user meets it: its commands, its files, and its answers to wrong input.
//!
//! Every test starts the compiled program in a temporary folder, since exit codes, closed pipes and
//! full disks cannot be tested from inside. A test of wrong input demands exit code 2 and a
//! message, and never a panic. The tests of puzzles are in the module `puzzles` and share the
//! helpers at the top of this file.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub fn tour(folder: &Path, args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_tour");
    Command::new(program).args(args).current_dir(folder).output().expect("the tour starts")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs the tour with wrong input. It must exit with 2 and print `expected` without panicking.
pub fn refused(folder: &Path, args: &[&str], expected: &str) {
    let output = tour(folder, args);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert!(stderr.contains(expected), "{args:?} printed: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

pub fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[cfg(target_os = "linux")]
fn full() -> Stdio {
    std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the device").into()
}

/// Runs the tour with `stdout` as its standard output. Returns the exit code and the standard
/// error.
pub fn run_into(folder: &Path, args: &[&str], stdout: Stdio) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tour"));
    let command = command.args(args).current_dir(folder).stdout(stdout).stderr(Stdio::piped());
    let output = command.spawn().and_then(|child| child.wait_with_output()).expect("the tour runs");
    (output.status.code(), text(&output.stderr))
}

pub fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn every_command_has_help() {
    let folder = temporary();
    for args in [
        &["--help"][..],
        &["list", "--help"],
        &["doctor", "--help"],
        &["bench", "--help"],
        &["attrs", "--help"],
        &["tune", "--help"],
        &["puzzle", "--help"],
    ] {
        let output = tour(folder.path(), args);
        assert!(output.status.success(), "{args:?}");
        assert!(text(&output.stdout).contains("Usage:"), "{args:?}");
    }
}

#[test]
fn list_names_the_chapters() {
    let summary = concat!(env!("CARGO_MANIFEST_DIR"), "/../SUMMARY.md");
    let summary = std::fs::read_to_string(summary).expect("the list of chapters");
    // `- [The matrix form](03-matrix-form/README.md) writes …`; chapter 0 is the tour.
    let listed = summary.lines().filter_map(|line| {
        let (title, rest) = line.strip_prefix("- [")?.split_once("](")?;
        let slug = rest.split_once("/README.md)")?.0;
        let number: u8 = slug.get(..2)?.parse().ok().filter(|&number| number > 0)?;
        Some(format!("{number:>2}  {title:<28}  chapters/{slug}"))
    });
    let printed = text(&tour(temporary().path(), &["list"]).stdout);
    let (printed, listed) = (printed.lines().collect::<Vec<_>>(), listed.collect::<Vec<_>>());
    assert_eq!(printed, listed, "`cargo xtask chapters` makes the tour's list from SUMMARY.md");
}

#[test]
fn a_chapter_checks_itself_and_writes_its_record() {
    let folder = temporary();
    let output = tour(folder.path(), &["1", "--out", "results"]);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));

    let read = |path: &str| {
        let path = folder.path().join("results").join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let summary: Value = serde_json::from_str(&read("summary.json")).expect("JSON");
    let chapter = &summary["chapters"][0];
    assert_eq!(chapter["number"], 1);
    assert_eq!(chapter["name"], "01-sequential-loop");
    assert!(chapter["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
    assert!(chapter["engine"].as_str().is_some_and(|engine| !engine.is_empty()));
    let checks = chapter["checks"].as_array().expect("checks");
    assert!(!checks.is_empty());
    for check in checks {
        assert_eq!(check["pass"], true, "{check}");
        assert!(check["value"].as_f64() <= check["limit"].as_f64(), "{check}");
    }
    for figure in chapter["figures"].as_array().expect("figures") {
        let svg = read(&format!("01-sequential-loop/{}", figure.as_str().expect("a name")));
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    }
    assert!(read("01-sequential-loop/output.txt").contains("ANCHOR: "));
}

#[test]
fn a_closed_output_is_no_error() {
    let folder = temporary();
    for args in [&["list"][..], &["--help"], &["1"]] {
        let (code, error) = run_into(folder.path(), args, closed());
        assert_eq!((code, error.contains("error")), (Some(0), false), "{args:?}: {error}");
    }
    let record = folder.path().join("target/tour/01-sequential-loop/run.json");
    assert!(record.is_file(), "the record is still wanted");
    // Even the error message cannot be printed.
    let mut command = Command::new(env!("CARGO_BIN_EXE_tour"));
    let status = command.arg("99").current_dir(folder.path()).stdout(closed()).stderr(closed());
    assert_eq!(status.status().expect("the tour runs").code(), Some(2));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_output_is_reported() {
    let folder = temporary();
    for args in [&["list"][..], &["--help"], &["1"]] {
        let (code, error) = run_into(folder.path(), args, full());
        assert_eq!(code, Some(2), "{args:?}: {error}");
        assert!(error.contains("the standard output cannot be written: No space"), "{error}");
        assert!(!error.contains("panicked"), "{error}");
    }
}

/// The system kills a program that exceeds the limit on a file's size while it writes.
#[test]
#[cfg(target_os = "linux")]
fn a_run_that_is_stopped_half_way_leaves_the_old_files() {
    let folder = temporary();
    assert!(tour(folder.path(), &["1", "--out", "results"]).status.success());
    let results = folder.path().join("results/01-sequential-loop");
    let old = lengths(&results);
    let limited = "ulimit -c 0 -f 1; exec \"$0\" 1 --out results";
    let mut command = Command::new("bash");
    let command = command.args(["-c", limited, env!("CARGO_BIN_EXE_tour")]);
    let output = command.current_dir(folder.path()).output().expect("a shell");
    assert_eq!(output.status.code(), None, "{}", text(&output.stderr));
    let mut new = lengths(&results);
    new.retain(|(name, _)| !name.ends_with(".new"));
    assert_eq!(new, old);
}

/// Returns the files in a folder, with the lengths of the pictures, which are the same in every
/// run.
#[cfg(target_os = "linux")]
fn lengths(folder: &Path) -> Vec<(String, Option<u64>)> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file"));
    let mut lengths: Vec<_> = entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let length = entry.metadata().expect("its length").len();
            let length = name.ends_with(".svg").then_some(length);
            (name, length)
        })
        .collect();
    lengths.sort();
    lengths
}

#[test]
fn an_unknown_chapter_is_named() {
    let folder = temporary();
    for name in ["99", "0", "matrix"] {
        refused(folder.path(), &[name], &format!("there is no chapter {name}"));
    }
    assert!(!folder.path().join("target").exists(), "nothing is written before the error");
}

#[test]
fn an_output_folder_that_cannot_be_made_is_named() {
    let folder = temporary();
    std::fs::write(folder.path().join("file"), "").expect("a file");
    refused(folder.path(), &["1", "--out", "file/results"], "cannot make the folder");
}

#[test]
fn a_csv_file_is_checked_before_anything_is_measured() {
    let folder = temporary();
    refused(folder.path(), &["bench", "--csv", "no/such/folder/runs.csv"], "cannot write");
    std::fs::write(folder.path().join("runs.csv"), "precious").expect("a file");
    refused(folder.path(), &["bench", "--csv", "runs.csv"], "already exists");
    let kept = std::fs::read_to_string(folder.path().join("runs.csv")).expect("the file");
    assert_eq!(kept, "precious");
}

#[test]
fn unknown_vector_instructions_are_refused() {
    let printed = "choose from AVX-512, AVX2, portable";
    refused(temporary().path(), &["bench", "--simd", "MMX"], printed);
}

#[test]
fn a_small_bench_records_every_run() {
    let folder = temporary();
    let small = [
        "bench", "--csv", "runs.csv", "--runs", "3", "--memory", "4", "--cache", "64", "--simd",
        "portable",
    ];
    let output = tour(folder.path(), &small);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let csv = std::fs::read_to_string(folder.path().join("runs.csv")).expect("the CSV");
    let mut lines = csv.lines();
    let header = "date,machine,element,direction,engine,num_seqs,seq_len,ms,gb_per_s,ratio";
    assert_eq!(lines.next(), Some(header));
    for engine in ["roof", "roof:streaming", "loop", "cpu"] {
        for direction in ["forward", "backward"] {
            let runs = csv.lines().filter(|line| {
                line.contains(&format!(",{direction},{engine},")) && line.contains(",1024,")
            });
            // Each engine runs once beyond the caches and once inside them.
            assert_eq!(runs.count(), 2 * 3, "{engine} {direction}");
        }
    }
}

#[test]
fn attributes_without_a_gpu_come_from_a_record_and_from_ptx() {
    let folder = temporary();
    let output = tour(folder.path(), &["attrs", "pipe", "--device", "simt"]);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    assert!(printed.contains("There is no GPU here") && printed.contains("H200"), "{printed}");
    assert!(printed.contains("pipe:8x64:2") && printed.contains("names of registers"), "{printed}");
    assert!(
        !folder.path().join("target").exists(),
        "nothing was found out, and nothing is written"
    );
}

#[test]
fn tuning_without_a_gpu_counts() {
    let folder = temporary();
    let args =
        ["tune", "ref", "--device", "simt", "--lengths", "5,40", "--sequences", "3", "--out", "t"];
    let output = tour(folder.path(), &args);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    assert!(
        printed.contains("There is no GPU here") && printed.contains("counts instead"),
        "{printed}"
    );
    let csv = std::fs::read_to_string(folder.path().join("t/counted-ref-f32-backward.csv"));
    assert!(csv.expect("the table").contains("40,ref:64,"));
}

#[test]
fn wrong_arguments_for_tuning_are_named() {
    let folder = temporary();
    refused(folder.path(), &["tune", "fast"], "fast");
    refused(folder.path(), &["tune", "pipe", "--device", "gpu"], "`gpu` is not a device");
    refused(folder.path(), &["tune", "pipe", "--element", "f8"], "`f8`");
    refused(folder.path(), &["tune", "pipe", "--lengths", "0"], "0");
    refused(folder.path(), &["attrs", "--device", "cuda:x"], "`cuda:x` is not a device");
    refused(folder.path(), &["bench", "--device", "simt"], "no speed to measure");
    std::fs::write(folder.path().join("file"), "").expect("a file");
    refused(
        folder.path(),
        &["tune", "ref", "--device", "simt", "--out", "file/x"],
        "cannot make the folder",
    );
}
