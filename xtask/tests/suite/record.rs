//! Records a chapter's results, and compares them with a new run.

use std::fs;

use crate::support::Fixture;
use xtask::record::{self, compare::compare};
use xtask::results;

const RESULTS: &str = "chapters/01-sample/results";

/// A chapter that writes other results than the recorded ones, and then ends with its code.
fn with_crate() -> Fixture {
    let book = Fixture::new();
    book.write("Cargo.toml", "[workspace]\nmembers = [\"chapters/01-sample\"]\nresolver = \"3\"\n");
    book.write(
        "chapters/01-sample/Cargo.toml",
        "[package]\nname = \"ch01-sample\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    );
    book.write("chapters/01-sample/code.txt", "0");
    book.write(
        "chapters/01-sample/src/main.rs",
        r#"use std::{env, fs, path::{Path, PathBuf}, process::exit};

        fn main() {
            let mut arguments = env::args().skip_while(|argument| argument != "--out");
            let out = PathBuf::from(arguments.nth(1).unwrap()).join("01-sample");
            fs::create_dir_all(&out).unwrap();
            let chapter = Path::new("chapters/01-sample");
            for file in ["run.json", "decay.svg"] {
                fs::copy(chapter.join("results").join(file), out.join(file)).unwrap();
            }
            fs::write(out.join("cost.csv"), "what run.json has as well").unwrap();
            fs::create_dir(out.join("inner")).unwrap();
            fs::write(out.join("inner/a.csv"), "a").unwrap();
            let run = fs::read_to_string(out.join("run.json")).unwrap();
            fs::write(out.join("run.json"), run.replace("\"16\"", "\"17\"")).unwrap();
            exit(fs::read_to_string(chapter.join("code.txt")).unwrap().parse().unwrap());
        }"#,
    );
    book
}

fn recorded_length(book: &Fixture) -> String {
    results::load(&book.path(RESULTS)).unwrap().values["length"].text.clone()
}

// One test, since a variable may make Cargo build every workspace into the same folder.
#[test]
fn a_run_replaces_the_results_as_a_whole_or_not_at_all() {
    let book = with_crate();
    let differences = record::check(book.root(), "1").unwrap_err().to_string();
    assert!(differences.contains("value `length` was 16, is 17"), "{differences}");
    assert_eq!(recorded_length(&book), "16", "a check changes nothing");

    book.write("chapters/01-sample/code.txt", "3");
    let error = record::record(book.root(), "1").unwrap_err().to_string();
    assert!(error.contains("the run of chapters/01-sample failed"), "{error}");
    assert_eq!(recorded_length(&book), "16", "a failed run changes nothing");

    book.write("chapters/01-sample/code.txt", "0");
    fs::create_dir(book.path(&format!("{RESULTS}/h200"))).unwrap();
    book.write(&format!("{RESULTS}/h200/bits.csv"), "bits");
    record::record(book.root(), "1").unwrap();
    let read = |file: &str| fs::read_to_string(book.path(RESULTS).join(file)).unwrap();
    assert_eq!([read("h200/bits.csv"), read("inner/a.csv")], ["bits", "a"]);
    let folders = fs::read_dir(book.path("chapters/01-sample")).unwrap();
    let names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("results")).count(), 1, "a copy is left");
    assert_eq!(recorded_length(&book), "17");
    assert!(!book.path(RESULTS).join("output.txt").exists(), "the run wrote none");
    assert!(!book.path(RESULTS).join("cost.csv").exists(), "run.json has its rows");
    record::check(book.root(), "1").unwrap();

    let error = record::record(book.root(), "2").unwrap_err().to_string();
    assert!(error.contains("chapters/02-other has no crate"), "{error}");
}

/// The differences after `change` to a second run's results.
fn differences(change: impl FnOnce(&Fixture)) -> Vec<String> {
    let (recorded, fresh) = (Fixture::new(), Fixture::new());
    change(&fresh);
    let differences = compare(&recorded.path(RESULTS), &fresh.path(RESULTS));
    differences.expect("two records").iter().map(ToString::to_string).collect()
}

/// Replaces `from` by `to` in a file of the results.
fn replace(book: &Fixture, file: &str, from: &str, to: &str) {
    book.edit(&format!("{RESULTS}/{file}"), |text| {
        assert!(text.contains(from), "`{from}` is not in {file}");
        text.replace(from, to)
    });
}

/// The differences after `from` became `to` in the second run's `file`.
fn after(file: &str, from: &str, to: &str) -> Vec<String> {
    differences(|fresh| replace(fresh, file, from, to))
}

#[test]
fn equal_runs_agree_and_timings_may_differ() {
    assert!(differences(|_| ()).is_empty());
    assert!(after("run.json", "1.25 ms", "1.31 ms").is_empty());
    assert!(after("run.json", "801.25", "1234.5").is_empty(), "the table is marked as timing");
    assert!(after("run.json", "2026-11-21", "2027-01-01").is_empty());
    assert!(after("run.json", "2.4e-8", "2.5e-8").is_empty(), "a check's value is the machine's");
}

#[test]
fn values_that_differ_are_found() {
    assert_eq!(
        after("run.json", r#""text": "16""#, r#""text": "17""#),
        ["run.json: value `length` was 16, is 17"]
    );
    assert!(after("run.json", r#""text": "16""#, r#""text": "16.000001""#).is_empty());
    assert_eq!(
        after("run.json", r#""length": {"#, r#""size": {"#),
        ["run.json: the value `length` was not written again", "run.json: the value `size` is new"]
    );
}

#[test]
fn checks_that_differ_are_found() {
    let limit = after("run.json", "1.2e-7", "1.3e-7");
    assert!(limit[0].contains("outputs against the f64 loop"), "{limit:?}");
    let gone = after("run.json", "steps of the longer", "steps of the shorter");
    assert_eq!(gone.len(), 2, "{gone:?}");
}

#[test]
fn figures_are_compared_byte_for_byte() {
    assert_eq!(
        after("decay.svg", "stroke-width=\"2\"", "stroke-width=\"3\""),
        ["decay.svg: differs"]
    );
    let timing = differences(|fresh| {
        let timing = |is: bool| format!(r#""title": "Decay", "timing": {is}"#);
        replace(fresh, "run.json", &timing(false), &timing(true));
        fs::write(fresh.path(RESULTS).join("decay.svg"), "other").unwrap();
    });
    assert_eq!(timing, ["decay.svg: differs"], "the recorded run decides what is a timing");
}

#[test]
fn tables_are_compared_number_by_number() {
    let (recorded, fresh) = (Fixture::new(), Fixture::new());
    let timing = |is: bool| format!("\"file\": \"cost.csv\",\n    \"timing\": {is}");
    for book in [&recorded, &fresh] {
        replace(book, "run.json", &timing(true), &timing(false));
    }
    let compared = || compare(&recorded.path(RESULTS), &fresh.path(RESULTS)).unwrap();
    let replace = |from: &str, to: &str| replace(&fresh, "run.json", from, to);
    replace("801.25", "801.2500001");
    assert!(compared().is_empty());
    replace("801.2500001", "801.3");
    assert_eq!(compared()[0].line, Some(3));
    replace("      \"1024,packed,801.3,1800.5,52400,\",\n", "");
    assert!(compared()[0].what.contains("had 4 lines, has 3"));
}

#[test]
fn the_lines_of_kernels_in_the_transcripts_are_compared() {
    let (recorded, fresh) = (Fixture::new(), Fixture::new());
    let compared = |text: &str| {
        fresh.write(&format!("{RESULTS}/output.txt"), text);
        let differences = compare(&recorded.path(RESULTS), &fresh.path(RESULTS)).unwrap();
        differences.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    recorded.write(
        &format!("{RESULTS}/output.txt"),
        "1.2 ms at kernels/scan.cuh:51, kernels/broken/lost.cu:7: wrong",
    );
    assert!(compared("1.3 ms at kernels/scan.cuh:51,\n kernels/broken/lost.cu:7: no").is_empty());
    assert_eq!(
        compared("kernels/scan.cuh:51, kernels/broken/lost.cu:8"),
        ["output.txt: names kernels/broken/lost.cu:7, and the run names kernels/broken/lost.cu:8"]
    );
    assert_eq!(compared(""), ["output.txt: names 2 lines of kernels, the run 0"]);
}
