//! The puzzles in the page: chosen answers and pasted modules get the words of the terminal's
//! judge.
//!
//! `puzzles.js` acts as a reader in the page. The tests choose every known answer, paste PTX, play
//! by keys alone, and step through the launch of a wrong answer. The expected words come from the
//! crate `puzzle` in this process.

use linrec::device::Device;
use linrec::kernels::Ptx;
use puzzle::{Kind, Part, Puzzle, all, explain, find, judge};
use serde::Deserialize;
use serde_json::json;

use super::chrome::Chrome;
use super::look;
use super::{browser, built};
use crate::support::Fixture;

/// The actions of the tests in the page.
const HELP: &str = include_str!("puzzles.js");

/// Opens the page, and adds the script with the actions.
fn open(chrome: &mut Chrome, book: &Fixture) {
    chrome.open("about:blank").unwrap();
    chrome.open(&look::address(&book.path("target/book/puzzles.html"))).unwrap();
    chrome.evaluate(HELP).unwrap();
}

/// The page's verdict on an answer: its sentence, all of its text, and if the puzzle is solved.
#[derive(Deserialize)]
struct Shown {
    says: String,
    all: String,
    solved: bool,
    seconds: f64,
}

fn choose(chrome: &mut Chrome, puzzle: &Puzzle, name: &str) -> Shown {
    chrome.get(&format!("puzzles.choose({}, {})", json!(puzzle.folder), json!(name)))
}

fn paste(chrome: &mut Chrome, puzzle: &Puzzle, ptx: &str) -> Shown {
    chrome.get(&format!("puzzles.paste({}, {})", json!(puzzle.folder), json!(ptx)))
}

/// The page's sentence if `solved` puzzles are solved.
fn progress(solved: usize) -> String {
    format!("{solved} of {} are solved in this browser.", all().len())
}

/// Words as a page shows them, without the marks of code.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

#[test]
#[ignore = "needs a browser"]
fn every_answer_gets_the_words_of_the_terminal_and_the_solution_solves() {
    let (book, _) = built();
    let mut chrome = browser();
    open(&mut chrome, &book);
    let (mut slowest, mut solved) = (0.0_f64, 0);
    for puzzle in all() {
        // The solution last: until then, nothing may count as solved.
        let mut candidates: Vec<_> = puzzle.candidates().iter().collect();
        candidates.sort_by_key(|candidate| candidate.kind == Kind::Solution);
        for candidate in candidates {
            let at = format!("{}, {}", puzzle.folder, candidate.name);
            let ptx = puzzle.ptx(&candidate.name).expect("it is compiled");
            let verdict = judge(puzzle, &ptx, &Device::simt());
            let seen = choose(&mut chrome, puzzle, &candidate.name);
            assert_eq!(seen.says, verdict.to_string(), "{at}");
            assert_eq!(seen.solved, candidate.kind == Kind::Solution, "{at}");
            let source = puzzle.source(&candidate.hole);
            for part in explain(puzzle, &source, &ptx, &verdict) {
                let (Part::Words(words) | Part::Code(words)) = part;
                let words = plain(words.lines().last().unwrap_or_default().trim());
                assert!(seen.all.contains(&words), "{at}: no `{words}` in {}", seen.all);
            }
            match &candidate.kind {
                Kind::Wrong { says, .. } => {
                    assert!(
                        says.iter().all(|words| seen.all.contains(words)),
                        "{at}: {}",
                        seen.all
                    );
                }
                Kind::Solution => {
                    let because = plain(puzzle.because.lines().next().unwrap_or_default());
                    assert!(seen.all.contains(&because), "{at}: {}", seen.all);
                    solved += 1;
                }
                Kind::Skeleton => {}
            }
            slowest = slowest.max(seen.seconds);
        }
        assert_eq!(chrome.get::<String>("puzzles.progress()"), progress(solved));
    }
    eprintln!("the slowest verdict came after {:.0} ms", slowest * 1e3);
    // The next time, the page knows.
    open(&mut chrome, &book);
    assert_eq!(chrome.get::<String>("puzzles.progress()"), progress(all().len()));
    let stored = "JSON.parse(localStorage.getItem('linrec-puzzles')).solved.length";
    assert_eq!(chrome.get::<usize>(stored), all().len());
    look::assert_quiet(&chrome);
}

/// An answer takes its time, and the page goes on meanwhile: it says how far it is, and keys and
/// clocks are served.
#[test]
#[ignore = "needs a browser"]
fn the_page_goes_on_while_an_answer_is_tried() {
    let (book, _) = built();
    let mut chrome = browser();
    open(&mut chrome, &book);
    let [times, texts]: [u32; 2] = chrome.get(
        "(async () => {
            await puzzles.focus('10-banks', 'button');
            const verdict = document.querySelector('[data-puzzle=\"10-banks\"] .verdict');
            const texts = new Set();
            let times = 0;
            const timer = setInterval(() => { times += 1; texts.add(verdict.textContent); });
            await puzzles.choose('10-banks', 'two-words');
            clearInterval(timer);
            return [times, [...texts].filter((text) => /^It runs: \\d+ of 189 cases/.test(text)).length];
        })()",
    );
    assert!(times > 3 && texts > 1, "{times} turns of the page, {texts} texts of progress");
    look::assert_quiet(&chrome);
}

/// A module from elsewhere has no head that names its kernel, and other text around its
/// instructions.
#[test]
#[ignore = "needs a browser"]
fn pasted_ptx_is_judged() {
    let (book, _) = built();
    let mut chrome = browser();
    open(&mut chrome, &book);
    for puzzle in [find("guard").unwrap(), find("conjugates").unwrap()] {
        let foreign = |name: &str| {
            let ptx = puzzle.ptx(name).expect("it is compiled");
            let lines = ptx.text().lines().filter(|line| !line.starts_with("//"));
            lines.collect::<Vec<_>>().join("\n")
        };
        let wrong = puzzle.candidates().iter().rfind(|one| matches!(one.kind, Kind::Wrong { .. }));
        let wrong = wrong.unwrap();
        let seen = paste(&mut chrome, puzzle, &foreign(&wrong.name));
        let verdict = judge(puzzle, &Ptx::from_text(foreign(&wrong.name)), &Device::simt());
        assert_eq!(seen.says, verdict.to_string());
        let Kind::Wrong { why, .. } = &wrong.kind else { unreachable!() };
        assert!(seen.all.contains(&plain(why)), "{}", seen.all);
        assert!(!seen.solved);
        assert!(paste(&mut chrome, puzzle, &foreign("solution")).solved);
    }
    let guard = find("guard").unwrap();
    for (ptx, expected) in [
        ("", "PTX"),
        ("int main() {}", "PTX"),
        (
            find("shuffle").unwrap().ptx("solution").unwrap().text(),
            "the module has no kernel `guard`",
        ),
    ] {
        let seen = paste(&mut chrome, guard, ptx);
        assert!(seen.says.contains(expected), "{}", seen.says);
    }
    // And the page goes on.
    assert!(choose(&mut chrome, guard, "solution").all.contains("Solved."));
    look::assert_quiet(&chrome);
}

#[test]
#[ignore = "needs a browser"]
fn a_puzzle_is_played_by_keys_and_without_storage() {
    let (book, _) = built();
    let mut chrome = browser();
    let none =
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('none') } })";
    chrome.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": none})).unwrap();
    open(&mut chrome, &book);
    let guard = find("guard").unwrap();
    chrome.evaluate("puzzles.focus('01-guard', 'input[type=radio]')").unwrap();
    let right = guard.choices().iter().position(|one| one.kind == Kind::Solution).unwrap();
    for _ in 0..right {
        press(&mut chrome, "ArrowDown", 40, "");
    }
    let hole = chrome.evaluate("puzzles.hole('01-guard')").unwrap();
    assert_eq!(hole, json!("    if (seq >= num_seqs) return;"));
    // Enter in a form runs it.
    press(&mut chrome, "Enter", 13, "\r");
    let seen: Shown = chrome.get("puzzles.settled('01-guard')");
    assert!(seen.solved, "{}", seen.all);
    assert_eq!(chrome.get::<String>("puzzles.progress()"), progress(1));
    // Hints come one by one, and the focus goes to the new one.
    for shown in 1..=guard.hints.len() {
        chrome.evaluate("puzzles.focus('01-guard', 'button.hint')").unwrap();
        press(&mut chrome, "Enter", 13, "\r");
        let hints = chrome.evaluate("puzzles.hints('01-guard')").unwrap();
        assert_eq!(hints, json!([shown, true]));
    }
    // The book turns its pages by the arrow keys, but not from here.
    press(&mut chrome, "ArrowRight", 39, "");
    let page = chrome.evaluate("location.pathname.split('/').pop()").unwrap();
    assert_eq!(page, json!("puzzles.html"));
    look::assert_quiet(&chrome);
}

fn press(chrome: &mut Chrome, key: &str, code: u32, text: &str) {
    for kind in ["keyDown", "keyUp"] {
        let mut event =
            json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
        if kind == "keyDown" {
            event["text"] = json!(text);
        }
        chrome.call("Input.dispatchKeyEvent", event).unwrap();
    }
}

/// The launch that the sentence is about, step by step. Its last step is the one that went wrong.
#[test]
#[ignore = "needs a browser"]
fn the_launch_of_a_verdict_can_be_stepped_through() {
    let (book, _) = built();
    let mut chrome = browser();
    open(&mut chrome, &book);
    for (name, answer, expected) in [
        ("guard", "one-too-many", "past the end of buffer `inputs`"),
        ("level-3", "no-barrier", "shared memory"),
        ("conjugates", "states-alone", "All "),
        // The debugger gives up sooner than the judge.
        ("flag", "no-flag", "over the launch's bound"),
        ("banks", "two-words", "All "),
    ] {
        let puzzle = find(name).unwrap();
        choose(&mut chrome, puzzle, answer);
        let step = format!("puzzles.step({})", json!(puzzle.folder));
        let (says, steps): (String, Option<u32>) = chrome.get(&step);
        assert!(says.contains(expected), "{name}: {says}");
        assert!(steps > Some(10), "{name}: {steps:?}");
    }
    look::assert_quiet(&chrome);
}
