//! What is said of each answer.

use linrec::device::{self, Device};
use puzzle::{Kind, Puzzle, Verdict, all, judge};

fn verdict(puzzle: &Puzzle, name: &str) -> Verdict {
    let ptx =
        puzzle.ptx(name).unwrap_or_else(|| panic!("{}: {name} is not compiled", puzzle.folder));
    judge(puzzle, &ptx, &Device::simt())
}

/// On a GPU nothing is counted, and the outputs have to be right.
#[test]
fn solutions_reach_the_goal_on_every_device() {
    for device in device::under_test() {
        for puzzle in all() {
            let ptx = puzzle.ptx("solution").expect("it is compiled");
            let verdict = judge(puzzle, &ptx, &device);
            println!("{}, {}: {verdict}", puzzle.folder, device.label());
            assert!(verdict.reached(), "{}, {}: {verdict}", puzzle.folder, device.label());
        }
    }
}

#[test]
fn what_stands_there_at_first_does_not() {
    for puzzle in all() {
        let verdict = verdict(puzzle, "skeleton");
        println!("{}: {verdict}", puzzle.folder);
        assert!(!verdict.reached(), "{}: {verdict}", puzzle.folder);
    }
}

#[test]
fn wrong_answers_fail_with_their_sentence() {
    let mut silent = Vec::new();
    for puzzle in all() {
        for candidate in puzzle.candidates() {
            let Kind::Wrong { says, .. } = &candidate.kind else { continue };
            let verdict = verdict(puzzle, &candidate.name);
            let told = format!("{}, {}: {verdict}", puzzle.folder, candidate.name);
            println!("{told}");
            assert!(!verdict.reached(), "{told}");
            let missing = says.iter().filter(|words| !told.contains(*words));
            silent.extend(missing.map(|words| format!("no `{words}` in {told}")));
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}
