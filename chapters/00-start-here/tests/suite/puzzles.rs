//! Tests puzzles in the terminal, as a reader meets them.

use std::fs;
use std::path::{Path, PathBuf};

use puzzle::{Puzzle, all};
use tempfile::TempDir;

use crate::cli::{closed, refused, run_into, temporary, text, tour};

fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = tour(folder, &[&["puzzle"], args].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Makes a folder with one of a puzzle's answers in its file.
fn answered(puzzle: &Puzzle, answer: &str) -> TempDir {
    let folder = temporary();
    answer_in(folder.path(), puzzle, answer);
    folder
}

fn answer_in(folder: &Path, puzzle: &Puzzle, answer: &str) {
    let hole = &puzzle.candidate(answer).expect("such an answer").hole;
    fs::create_dir_all(folder.join("my-puzzles")).expect("a folder");
    fs::write(file(folder, puzzle), puzzle.source(hole)).expect("a file");
}

fn file(folder: &Path, puzzle: &Puzzle) -> PathBuf {
    folder.join(format!("my-puzzles/{}.cu", puzzle.folder))
}

fn progress(folder: &Path) -> String {
    fs::read_to_string(folder.join("my-puzzles/progress.json")).expect("the record")
}

#[test]
fn the_next_open_puzzle_is_shown_copied_and_tried() {
    let folder = temporary();
    let (code, printed) = run(folder.path(), &[]);
    assert_eq!(code, Some(1), "{printed}");
    for words in [
        &*format!("0 of {} solved", all().len()),
        ">  1  open",
        "Puzzle 1: The guard",
        "my-puzzles/01-guard.cu (new)",
        "Nothing is changed yet",
        "past the end of buffer `inputs`",
        "at 01-guard.cu:",
        "not watched",
    ] {
        assert!(printed.contains(words), "`{words}` is not in:\n{printed}");
    }
    let copied = fs::read_to_string(file(folder.path(), &all()[0])).expect("the copy");
    assert_eq!(copied, all()[0].skeleton());
}

#[test]
fn solutions_go_from_the_first_puzzle_to_the_last() {
    let folder = temporary();
    for (number, puzzle) in (1..).zip(all()) {
        answer_in(folder.path(), puzzle, "solution");
        let (code, printed) = run(folder.path(), &["--once"]);
        assert_eq!(code, Some(0), "{printed}");
        assert!(
            printed.contains(&format!("Puzzle {number}: ")) && printed.contains("Solved."),
            "{printed}"
        );
        assert!(progress(folder.path()).contains(&format!("\"{}\"", puzzle.name)));
    }
    let (code, printed) = run(folder.path(), &[]);
    assert_eq!(code, Some(0), "{printed}");
    let solved = format!("{0} of {0} solved", all().len());
    assert!(printed.contains(&solved) && printed.contains("All are solved"), "{printed}");
}

#[test]
fn a_wrong_answer_is_explained_and_not_recorded() {
    let puzzle = &all()[4];
    let folder = answered(puzzle, "no-barrier");
    let (code, printed) = run(folder.path(), &["level-3", "--once"]);
    assert_eq!(code, Some(1), "{printed}");
    for words in [
        "05-level-3.cu (as you left it)",
        "no barrier lies between the two",
        "Warps run at their own pace",
    ] {
        assert!(printed.contains(words), "`{words}` is not in:\n{printed}");
    }
    assert!(!printed.contains(&puzzle.task), "a reader who has begun knows the task:\n{printed}");
    assert!(!folder.path().join("my-puzzles/progress.json").exists());
}

#[test]
fn hints_come_one_by_one_and_the_solution_on_request() {
    let folder = temporary();
    for count in 1..=5 {
        let (code, printed) = run(folder.path(), &["2", "--hint"]);
        assert_eq!(
            (code, printed.matches("  Hint ").count()),
            (Some(0), count.min(4)),
            "{printed}"
        );
        assert_eq!(printed.contains("These are all hints"), count >= 4, "{printed}");
    }
    let (code, printed) = run(folder.path(), &["2", "--solution"]);
    assert_eq!(code, Some(0));
    assert!(printed.contains("k * kThreads + threadIdx.x"), "{printed}");
    assert!(!file(folder.path(), &all()[1]).exists(), "nothing is written into the reader's file");
}

#[test]
fn a_puzzle_begins_anew_and_the_old_file_is_kept() {
    let puzzle = &all()[0];
    let folder = answered(puzzle, "solution");
    assert_eq!(run(folder.path(), &["--once"]).0, Some(0));
    fs::write(folder.path().join("my-puzzles/01-guard.1.cu"), "older").expect("a file");
    let (code, printed) = run(folder.path(), &["guard", "--reset"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("01-guard.2.cu"), "{printed}");
    let read =
        |name: &str| fs::read_to_string(folder.path().join("my-puzzles").join(name)).expect(name);
    assert_eq!(read("01-guard.cu"), puzzle.skeleton());
    assert_eq!(read("01-guard.1.cu"), "older");
    assert!(read("01-guard.2.cu").contains("seq >= num_seqs"));
    assert!(!progress(folder.path()).contains("guard"));
    // An unchanged file needs no copy.
    let (_, printed) = run(folder.path(), &["guard", "--reset"]);
    assert!(!printed.contains("What you had written"), "{printed}");
}

#[test]
fn a_damaged_record_is_an_error_and_stays_as_it_is() {
    let folder = answered(&all()[0], "solution");
    for damaged in ["", "{\"solved\": 3}", "{\"solved\": [], \"salved\": []}", "\u{0}"] {
        fs::write(folder.path().join("my-puzzles/progress.json"), damaged).expect("a file");
        for args in [
            &["puzzle"][..],
            &["puzzle", "--once"],
            &["puzzle", "--list"],
            &["puzzle", "--hint"],
            &["puzzle", "--reset"],
        ] {
            refused(folder.path(), args, "progress.json is damaged");
        }
        assert_eq!(progress(folder.path()), damaged);
    }
}

#[test]
fn wrong_arguments_and_files_are_named() {
    let folder = temporary();
    for name in ["0", "99", "guards", "-1"] {
        refused(
            folder.path(),
            &["puzzle", "--list", "--", name],
            &format!("there is no puzzle {name}"),
        );
    }
    refused(folder.path(), &["puzzle", "--hint", "--once"], "cannot be used with");
    fs::write(folder.path().join("file"), "").expect("a file");
    refused(folder.path(), &["puzzle", "--folder", "file"], "file");
    let guard = file(folder.path(), &all()[0]);
    fs::create_dir_all(&guard).expect("a folder in the way");
    refused(folder.path(), &["puzzle"], "cannot read my-puzzles");
    fs::remove_dir(&guard)
        .and_then(|()| fs::write(&guard, b"\xff\xfe"))
        .expect("a file that is not text");
    refused(folder.path(), &["puzzle"], "cannot read my-puzzles");
    assert_eq!(
        run(folder.path(), &["1", "--reset"]).0,
        Some(0),
        "a file that is not text can be renamed, too"
    );
    assert_eq!(run(folder.path(), &["--once"]).0, Some(1));
}

#[test]
fn without_a_compiler_its_command_is_named() {
    let folder = temporary();
    fs::create_dir(folder.path().join("my-puzzles")).expect("a folder");
    fs::write(file(folder.path(), &all()[0]), "// my own\n").expect("a file");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tour"));
    let command = command
        .args(["puzzle", "--once"])
        .current_dir(folder.path())
        .env("LINREC_NVRTC", "nowhere");
    let output = command.output().expect("the tour runs");
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    let advice =
        if cfg!(target_os = "macos") { "none for macOS" } else { "cargo xtask ptx --prepare" };
    assert!(printed.contains(advice), "{printed}");
}

#[test]
fn a_closed_output_still_records_the_goal() {
    let folder = answered(&all()[0], "solution");
    let (code, error) = run_into(folder.path(), &["puzzle", "--once"], closed());
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(progress(folder.path()).contains("guard"));
    // Without a terminal nothing is watched, so this run ends as well.
    let (code, error) = run_into(folder.path(), &["puzzle"], closed());
    assert_eq!((code, error.as_str()), (Some(1), ""));
}

#[test]
#[ignore = "needs NVRTC"]
fn a_new_kernel_is_compiled_and_mistakes_name_their_line() {
    let folder = temporary();
    fs::create_dir(folder.path().join("my-puzzles")).expect("a folder");
    let source = |hole: &str| all()[0].source(hole);
    for (hole, code, words) in [
        ("    if (!(seq < num_seqs)) { return; }\n", 0, "Solved."),
        ("    if (seq > num_seqs) { return; }\n", 1, "there is no such sequence"),
        ("    // hm\n\n    if (!(seq <= num_seqs)) return;\n", 1, "there is no such sequence"),
        ("    if (seq > num_seqs && seq > 0) return;\n", 1, "is what one gets if these lines"),
        ("    printf(\"%d\", 1);\n", 1, "reads 4 bytes at 0 bytes past the end"),
        (
            "    if (seq >= num_seq) return;\n",
            1,
            "01-guard.cu(7): error: identifier \"num_seq\" is undefined",
        ),
        ("    while (seq >= num_seqs) {}\n    outputs[0] = 0;\n", 1, "Does each of its loops end?"),
        ("}\n__global__ void other() {\n", 1, "error"),
    ] {
        fs::write(file(folder.path(), &all()[0]), source(hole)).expect("a file");
        let (got, printed) = run(folder.path(), &["1", "--once"]);
        assert!(got == Some(code) && printed.contains(words), "`{words}` is not in:\n{printed}");
    }
    // Changes outside of the reader's part: another name, no marks, other parameters.
    let skeleton = all()[0].skeleton();
    for (source, words) in [
        (skeleton.replace("void guard", "void guards"), "The kernel must keep the name `guard`."),
        (skeleton.replace("YOUR PART", "MY PART"), "no longer in the file"),
        (skeleton.replace("float* outputs,", "float* outputs, float* more,"), "argument"),
    ] {
        fs::write(file(folder.path(), &all()[0]), source).expect("a file");
        let (got, printed) = run(folder.path(), &["1", "--once"]);
        assert!(got == Some(1) && printed.contains(words), "`{words}` is not in:\n{printed}");
    }
}
