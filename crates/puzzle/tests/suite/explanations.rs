//! Why an answer is wrong, however it is written.

use linrec::device::Device;
use linrec::kernels::Ptx;
use puzzle::{Candidate, Kind, Part, Puzzle, Verdict, all, explain, find, judge};

fn wrong() -> impl Iterator<Item = (&'static Puzzle, &'static Candidate, &'static str)> {
    all().iter().flat_map(|puzzle| {
        puzzle.candidates().iter().filter_map(move |candidate| match &candidate.kind {
            Kind::Wrong { why, .. } => Some((puzzle, candidate, why.as_str())),
            _ => None,
        })
    })
}

fn text(parts: &[Part]) -> String {
    let parts = parts.iter().map(|part| match part {
        Part::Words(text) | Part::Code(text) => text.as_str(),
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// What is said of a source that was compiled as this.
fn said(puzzle: &Puzzle, source: &str, ptx: &Ptx) -> String {
    let verdict = judge(puzzle, ptx, &Device::simt());
    text(&explain(puzzle, source, ptx, &verdict))
}

/// The PTX of a source with a line more at its begin, in another file.
fn moved(puzzle: &Puzzle, ptx: &Ptx) -> String {
    let own = format!("puzzles/{}/puzzle.cu", puzzle.folder);
    let later = |line: &str| {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        for at in 1..words.len() {
            if words[at - 1].ends_with(".loc\t1")
                || words[at - 1] == "1" && words[at - 2].ends_with("inlined_at")
            {
                let number: u32 = words[at].parse().expect("a line");
                words[at] = (number + 1).to_string();
            }
        }
        words.join(" ")
    };
    let lines = ptx
        .text()
        .lines()
        .map(|line| if line.contains(".loc") { later(line) } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n").replace(&own, "my.cu")
}

#[test]
fn wrong_answers_are_known_by_their_instructions() {
    for (puzzle, candidate, why) in wrong() {
        let ptx = puzzle.ptx(&candidate.name).expect("it is compiled");
        let source = format!("\n{}// more\n", puzzle.source(&candidate.hole));
        assert_eq!(puzzle.same(&source), None);
        let said = said(puzzle, &source, &Ptx::from_text(moved(puzzle, &ptx)));
        assert!(said.ends_with(why), "{}, {}: {said}", puzzle.folder, candidate.name);
        assert!(!said.contains("is what one gets"), "{said}");
    }
}

/// Other instructions of which the same is said.
#[test]
fn wrong_answers_are_guessed_by_what_they_do() {
    let mut unknown = Vec::new();
    for (puzzle, candidate, _) in wrong() {
        let ptx = puzzle.ptx(&candidate.name).expect("it is compiled");
        let ptx =
            moved(puzzle, &ptx).replacen(".reg .pred", ".reg .b32 \t%more<9>;\n.reg .pred", 1);
        let source = format!("// more\n{}", puzzle.source(&candidate.hole));
        let said = said(puzzle, &source, &Ptx::from_text(ptx));
        // What the puzzle says of such a finding may go before a guess.
        let remarked = ["shuffle", "neutral", "banks", "flag", "shifted"].contains(&&*puzzle.name);
        let explained = said.contains("is what one gets") || remarked && !said.is_empty();
        if !explained {
            unknown.push(format!("{}, {}: {said}", puzzle.folder, candidate.name));
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn what_is_right_and_what_is_not_changed_is_not_explained() {
    for puzzle in all() {
        for name in ["solution", "skeleton"] {
            let candidate = puzzle.candidate(name).expect("it is there");
            let ptx = puzzle.ptx(name).expect("it is compiled");
            let said = said(puzzle, &puzzle.source(&candidate.hole), &ptx);
            assert!(!said.contains("is what one gets"), "{}: {said}", puzzle.folder);
        }
    }
}

/// A finding in a function that the reader has not written is told with the line that calls it.
#[test]
fn the_line_that_calls_is_named() {
    let puzzle = find("shuffle").expect("it is there");
    let candidate = puzzle.candidate("shuffle-in-the-branch").expect("it is there");
    let source = puzzle.source(&candidate.hole);
    let line =
        1 + source.lines().position(|line| line.contains("shuffle_up(mine")).expect("a call");
    let said = said(puzzle, &source, &puzzle.ptx(&candidate.name).expect("it is compiled"));
    assert!(said.starts_with(&format!("Line {line} calls what stands in line ")), "{said}");
}

#[test]
fn remarks_are_for_findings_and_holes() {
    let puzzle = find("flag").expect("it is there");
    let verdict = |what: &str| Verdict::Wrong { case: None, what: what.to_owned(), report: None };
    let none = Ptx::from_text("");
    let said =
        |hole: &str, what| text(&explain(puzzle, &puzzle.source(hole), &none, &verdict(what)));
    assert!(said("    // hm\n", "makes no progress").contains("goes round the loop"));
    assert!(said("    __syncthreads();\n", "makes no progress").contains("not a meeting"));
    assert!(said("    // __syncthreads();\n", "makes no progress").contains("goes round the loop"));
    assert_eq!(said("    // hm\n", "hm"), "");
    let atomic = "    states[tile] = after;\n    atomicExch(&flags[tile], 1u);\n";
    assert!(
        said(atomic, "nothing orders").contains("An atomic operation by itself orders nothing")
    );
    let plain = "    states[tile] = after;\n    __threadfence();\n    flags[tile] = 1;\n";
    assert!(said(plain, "nothing orders").contains("through `volatile_flags`"));
}
