//! Tests of every puzzle: its solution reaches the goal, the text that is in the hole at first does
//! not, and each wrong answer fails with its sentence.
//!
//! `answers` runs all answers on the emulator, and the solutions on a GPU where there is one.
//! `descriptions` reads every folder, and compares the book's page and the notebook with it.
//! `explanations` changes answers, which must still be recognised by what they do.

mod answers {
    //! The verdict about each answer.

    use linrec::device::{self, Device};
    use puzzle::{Kind, Puzzle, Verdict, all, judge};

    fn verdict(puzzle: &Puzzle, name: &str) -> Verdict {
        let ptx =
            puzzle.ptx(name).unwrap_or_else(|| panic!("{}: {name} is not compiled", puzzle.folder));
        judge(puzzle, &ptx, &Device::simt())
    }

    /// On a GPU nothing is counted, and the outputs must be right.
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
    fn the_initial_text_does_not_reach_the_goal() {
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
                let shown = format!("{}, {}: {verdict}", puzzle.folder, candidate.name);
                println!("{shown}");
                assert!(!verdict.reached(), "{shown}");
                let missing = says.iter().filter(|words| !shown.contains(*words));
                silent.extend(missing.map(|words| format!("no `{words}` in {shown}")));
            }
        }
        assert!(silent.is_empty(), "{}", silent.join("\n"));
    }
}
mod descriptions {
    //! The descriptions in the folders.

    use std::collections::HashSet;

    use linrec::device::Device;
    use puzzle::{Kind, Puzzle, all, find, judge};

    #[test]
    fn puzzles_count_from_one_and_are_found() {
        assert!(all().len() >= 16);
        for (number, puzzle) in (1..).zip(all()) {
            assert_eq!(puzzle.number, number, "{}", puzzle.folder);
            for name in [&number.to_string(), &puzzle.name, &puzzle.folder] {
                assert_eq!(find(name).map(|found| found.number), Some(number));
            }
            assert!(puzzle.folder.starts_with(&format!("{number:02}-")));
        }
        for name in ["0", "99", "", "guards"] {
            assert!(find(name).is_none(), "{name}");
        }
    }

    #[test]
    fn every_puzzle_has_hints_wrong_answers_and_a_chapter() {
        let chapters = concat!(env!("CARGO_MANIFEST_DIR"), "/../../chapters");
        let mut chapter = "";
        for puzzle in all() {
            let name = &puzzle.folder;
            assert!(puzzle.hints.len() >= 3, "{name} has too few hints");
            let wrong =
                puzzle.candidates().iter().filter(|one| matches!(one.kind, Kind::Wrong { .. }));
            assert!(wrong.count() >= 3, "{name} has too few wrong answers");
            let page = format!("{chapters}/{}/README.md", puzzle.chapter);
            assert!(std::path::Path::new(&page).is_file(), "{name}: there is no {page}");
            assert!(
                chapter <= puzzle.chapter.as_str(),
                "{name} is not in the order of the chapters"
            );
            chapter = &puzzle.chapter;
            assert!(!puzzle.question().is_empty());
            for candidate in puzzle.candidates() {
                let Kind::Wrong { says, why } = &candidate.kind else { continue };
                assert!(!says.is_empty() && !why.is_empty(), "{name}: {}", candidate.name);
            }
        }
    }

    #[test]
    fn answers_differ_and_are_recognised() {
        for puzzle in all() {
            let mut holes = HashSet::new();
            for candidate in puzzle.candidates() {
                assert!(
                    holes.insert(candidate.hole.as_str()),
                    "{}: {}",
                    puzzle.folder,
                    candidate.name
                );
                let source = puzzle.source(&candidate.hole);
                // Other blanks, and the line ends of Windows.
                let spaced = source.replace(' ', "  ").replace('\n', " \r\n") + "\n";
                assert_eq!(puzzle.same(&spaced), Some(candidate), "{}", puzzle.folder);
            }
            assert_eq!(puzzle.same(&(puzzle.skeleton() + "// more\n")), None);
        }
    }

    #[test]
    fn mistakes_in_a_description_are_errors() {
        let guard = find("guard").expect("it is there");
        let (toml, cu) = (include_str!("../../../puzzles/01-guard/puzzle.toml"), guard.skeleton());
        assert!(Puzzle::parse("01-guard", toml, &cu).is_ok());
        for (folder, toml, cu, said) in [
            ("guard", toml.to_owned(), cu.clone(), "not a number and a name"),
            ("01-guard", toml.replace("title", "tittle"), cu.clone(), "tittle"),
            (
                "01-guard",
                toml.replace("\"one-too-many\"", "\"solution\""),
                cu.clone(),
                "two answers have the name solution",
            ),
            (
                "01-guard",
                toml.to_owned(),
                cu.replace("END OF YOUR PART", ""),
                "`// END OF YOUR PART` is there 0 times",
            ),
            ("01-guard", toml.replace("\"recurrence\"", "\"nothing\""), cu.clone(), "nothing"),
        ] {
            let error = Puzzle::parse(folder, &toml, &cu).expect_err(said);
            assert!(error.contains(said), "{error}");
        }
    }

    /// Each chapter links to its puzzles. The notebook has the letter of the solution, and all
    /// other letters as wrong answers.
    #[test]
    fn chapters_and_the_notebook_list_every_puzzle() {
        let read = |path: &str| {
            let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
        };
        let notebook = read("notebooks/puzzles.ipynb").replace("\r\n", "\n");
        for puzzle in all() {
            let Puzzle { name, chapter, .. } = puzzle;
            let link = format!("](../puzzles.md#{name})");
            assert!(
                read(&format!("chapters/{chapter}/README.md")).contains(&link),
                "{chapter}: {link}"
            );

            let cells = |id: &str| {
                let (_, rest) =
                    notebook.split_once(&format!("\"id\": \"{id}\"")).unwrap_or_default();
                rest.split("\"cell_type\"").next().unwrap_or_default().to_owned()
            };
            let (exercise, solution) = (cells(name), cells(&format!("{name}-solution")));
            assert!(exercise.contains(&format!("solve(\\\"{name}\\\", answer)")), "{name}");
            for (letter, choice) in ('A'..).zip(puzzle.choices()) {
                let answer = format!("Some(\\\"{letter}\\\")");
                let (is, wanted) = (solution.contains(&answer), choice.kind == Kind::Solution);
                assert_eq!(is, wanted, "{name}: {answer} as the solution");
                assert_eq!(
                    exercise.contains(&answer),
                    !wanted,
                    "{name}: {answer} as a wrong answer"
                );
            }
        }
    }

    /// The page of the book lists all puzzles as in the folders, and quotes the first verdict.
    #[test]
    fn the_page_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../chapters/puzzles.md");
        let page = std::fs::read_to_string(path).expect("the page").replace("\r\n", "\n");
        for puzzle in all() {
            let Puzzle { number, name, title, teaches, goal, .. } = puzzle;
            let row = format!("| {number} | [{title}](#{name}) | {teaches} | {goal} |\n");
            assert!(page.contains(&row), "chapters/puzzles.md lacks {row}");
        }
        let ptx = all()[0].ptx("skeleton").expect("it is compiled");
        let said = judge(&all()[0], &ptx, &Device::simt()).to_string();
        let said = said.replace("puzzles/01-guard/puzzle.cu", "01-guard.cu");
        assert!(page.contains(&said), "chapters/puzzles.md lacks {said}");
    }
}
mod explanations {
    //! Explanations of wrong answers, however they are written.

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

    /// Returns the explanation of a source that was compiled to this PTX.
    fn said(puzzle: &Puzzle, source: &str, ptx: &Ptx) -> String {
        let verdict = judge(puzzle, ptx, &Device::simt());
        text(&explain(puzzle, source, ptx, &verdict))
    }

    /// Returns the PTX of a source with one more line at its begin, in another file.
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

    /// Other instructions get the same verdict.
    #[test]
    fn wrong_answers_are_guessed_by_their_verdict() {
        let mut unknown = Vec::new();
        for (puzzle, candidate, _) in wrong() {
            let ptx = puzzle.ptx(&candidate.name).expect("it is compiled");
            let ptx =
                moved(puzzle, &ptx).replacen(".reg .pred", ".reg .b32 \t%more<9>;\n.reg .pred", 1);
            let source = format!("// more\n{}", puzzle.source(&candidate.hole));
            let said = said(puzzle, &source, &Ptx::from_text(ptx));
            // A remark of the puzzle may come before a guess.
            let remarked =
                ["shuffle", "neutral", "banks", "flag", "shifted"].contains(&&*puzzle.name);
            let explained = said.contains("is what one gets") || remarked && !said.is_empty();
            if !explained {
                unknown.push(format!("{}, {}: {said}", puzzle.folder, candidate.name));
            }
        }
        assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    }

    #[test]
    fn right_and_unchanged_answers_are_not_explained() {
        for puzzle in all() {
            for name in ["solution", "skeleton"] {
                let candidate = puzzle.candidate(name).expect("it is there");
                let ptx = puzzle.ptx(name).expect("it is compiled");
                let said = said(puzzle, &puzzle.source(&candidate.hole), &ptx);
                assert!(!said.contains("is what one gets"), "{}: {said}", puzzle.folder);
            }
        }
    }

    /// An explanation names the line that calls a function in which something is wrong.
    #[test]
    fn the_calling_line_is_named() {
        let puzzle = find("shuffle").expect("it is there");
        let candidate = puzzle.candidate("shuffle-in-the-branch").expect("it is there");
        let source = puzzle.source(&candidate.hole);
        let line =
            1 + source.lines().position(|line| line.contains("shuffle_up(mine")).expect("a call");
        let said = said(puzzle, &source, &puzzle.ptx(&candidate.name).expect("it is compiled"));
        assert!(said.starts_with(&format!("Line {line} calls what stands in line ")), "{said}");
    }

    #[test]
    fn remarks_depend_on_the_finding_and_the_hole() {
        let puzzle = find("flag").expect("it is there");
        let verdict =
            |what: &str| Verdict::Wrong { case: None, what: what.to_owned(), report: None };
        let none = Ptx::from_text("");
        let said =
            |hole: &str, what| text(&explain(puzzle, &puzzle.source(hole), &none, &verdict(what)));
        assert!(said("    // hm\n", "makes no progress").contains("goes round the loop"));
        assert!(said("    __syncthreads();\n", "makes no progress").contains("not a meeting"));
        assert!(
            said("    // __syncthreads();\n", "makes no progress").contains("goes round the loop")
        );
        assert_eq!(said("    // hm\n", "hm"), "");
        let atomic = "    states[tile] = after;\n    atomicExch(&flags[tile], 1u);\n";
        assert!(
            said(atomic, "nothing orders").contains("An atomic operation by itself orders nothing")
        );
        let plain = "    states[tile] = after;\n    __threadfence();\n    flags[tile] = 1;\n";
        assert!(said(plain, "nothing orders").contains("through `volatile_flags`"));
    }
}
