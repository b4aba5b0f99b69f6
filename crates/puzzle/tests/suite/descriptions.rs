//! What the folders say.

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
fn each_has_hints_and_faults_and_a_chapter() {
    let chapters = concat!(env!("CARGO_MANIFEST_DIR"), "/../../chapters");
    let mut chapter = "";
    for puzzle in all() {
        let name = &puzzle.folder;
        assert!(puzzle.hints.len() >= 3, "{name} has too few hints");
        let wrong = puzzle.candidates().iter().filter(|one| matches!(one.kind, Kind::Wrong { .. }));
        assert!(wrong.count() >= 3, "{name} has too few wrong answers");
        let page = format!("{chapters}/{}/README.md", puzzle.chapter);
        assert!(std::path::Path::new(&page).is_file(), "{name}: there is no {page}");
        assert!(chapter <= puzzle.chapter.as_str(), "{name} is not in the order of the chapters");
        chapter = &puzzle.chapter;
        assert!(!puzzle.question().is_empty());
        for candidate in puzzle.candidates() {
            let Kind::Wrong { says, why } = &candidate.kind else { continue };
            assert!(!says.is_empty() && !why.is_empty(), "{name}: {}", candidate.name);
        }
    }
}

#[test]
fn answers_are_told_apart_and_known_again() {
    for puzzle in all() {
        let mut holes = HashSet::new();
        for candidate in puzzle.candidates() {
            assert!(holes.insert(candidate.hole.as_str()), "{}: {}", puzzle.folder, candidate.name);
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
    let (toml, cu) = (include_str!("../../../../puzzles/01-guard/puzzle.toml"), guard.skeleton());
    assert!(Puzzle::parse("01-guard", toml, &cu).is_ok());
    for (folder, toml, cu, said) in [
        ("guard", toml.to_owned(), cu.clone(), "no number and a name"),
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
            "`// END OF YOUR PART` stands there 0 times",
        ),
        ("01-guard", toml.replace("\"recurrence\"", "\"nothing\""), cu.clone(), "nothing"),
    ] {
        let error = Puzzle::parse(folder, &toml, &cu).expect_err(said);
        assert!(error.contains(said), "{error}");
    }
}

/// Each chapter links to its puzzles, and the notebook has them: with the solution's letter, and
/// all others as wrong ones.
#[test]
fn chapters_and_the_notebook_have_them() {
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
            let (_, rest) = notebook.split_once(&format!("\"id\": \"{id}\"")).unwrap_or_default();
            rest.split("\"cell_type\"").next().unwrap_or_default().to_owned()
        };
        let (exercise, solution) = (cells(name), cells(&format!("{name}-solution")));
        assert!(exercise.contains(&format!("solve(\\\"{name}\\\", answer)")), "{name}");
        for (letter, choice) in ('A'..).zip(puzzle.choices()) {
            let answer = format!("Some(\\\"{letter}\\\")");
            let (is, wanted) = (solution.contains(&answer), choice.kind == Kind::Solution);
            assert_eq!(is, wanted, "{name}: {answer} as the solution");
            assert_eq!(exercise.contains(&answer), !wanted, "{name}: {answer} as a wrong answer");
        }
    }
}

/// The page of the book lists them all, as the folders have it, and quotes what is said of the
/// first.
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
