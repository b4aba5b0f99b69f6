//! The built book in a real browser, where it shows what no check of the files can see.
//!
//! ```text
//! cargo test -p xtask browser:: -- --ignored
//! ```

mod chrome;
mod lab;
mod live;
mod look;
mod puzzles;
mod yours;

use std::path::{Path, PathBuf};

use crate::support::Fixture;
use chrome::Chrome;

fn browser() -> Chrome {
    let program = chrome::find().expect("there is no Chromium (CHROMIUM names one)");
    Chrome::start(&program).expect("the browser starts")
}

/// The book of this workspace, and its folder.
fn built() -> (Fixture, PathBuf) {
    let book = Fixture::of_workspace();
    book.build();
    let output = book.path("target/book");
    (book, output)
}

#[test]
#[ignore = "needs a browser"]
fn the_book_looks_right() {
    assert_eq!(problems(&mut browser(), &Fixture::of_workspace()), Vec::<String>::new());
}

#[test]
#[ignore = "needs a browser"]
fn the_fixture_looks_right() {
    assert_eq!(problems(&mut browser(), &Fixture::new()), Vec::<String>::new());
}

/// A change that spoils a book.
type Fault = fn(&Fixture);

/// Every check of a page is able to fail.
#[test]
#[ignore = "needs a browser"]
fn faults_of_a_page_are_seen() {
    let mut chrome = browser();
    let faults: [(&str, Fault); 10] = [
        ("is wider than the page", |book| book.append("<div style=\"width: 500px\">wide</div>")),
        ("is wider than the page", |book| {
            book.append(&format!("${}$", "a + b + ".repeat(20) + "c"))
        }),
        ("has no size", |book| {
            book.append("<p><img src=\"figures/lanes.svg\" style=\"display: none\"></p>")
        }),
        ("has no size", |book| {
            book.edit("xtask/theme/css/blocks.css", |css| {
                css.to_owned() + ".formula { display: none }"
            });
        }),
        ("the math font is not loaded", |book| {
            book.edit("xtask/theme/fonts/fonts.css", |css| {
                css.replace("Latin Modern Math", "Other")
            });
        }),
        ("keeps its colours", |book| {
            book.edit("xtask/theme/css/results.css", |css| css.replace("--fg", "--nothing"));
        }),
        // A notebook's outputs: a wide table that does not scroll, and a figure that is hidden.
        ("notebook.html: <table> \"launchcolumn 0", |book| {
            book.edit("xtask/theme/css/notebook.css", |css| {
                css.to_owned()
                    + ".content :is(.output, .output .table-wrapper) { overflow: visible }"
            });
        }),
        ("notebook.html: <svg> \"\" has no size", |book| {
            book.edit("xtask/theme/css/notebook.css", |css| {
                css.to_owned() + "td .drawing { display: none }"
            });
        }),
        ("console: ", |book| book.append("<script>console.error('broken')</script>")),
        ("bytes, packed", |book| {
            // Random digits, of which packing saves half, in a file that the page loads.
            let mut state = 1_u64;
            let digits = (0..300_000).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                format!("{:08x}", state >> 32)
            });
            let digits: String = digits.collect();
            book.edit("xtask/theme/css/blocks.css", |css| format!("{css}\n/* {digits} */\n"));
        }),
    ];
    for (expected, plant) in faults {
        let book = Fixture::new();
        plant(&book);
        let seen = problems(&mut chrome, &book);
        assert!(
            seen.iter().any(|problem| problem.contains(expected)),
            "no `{expected}` in {seen:?}"
        );
    }
    let book = Fixture::new();
    book.append(
        "<script>new Image().src = ['https:', '', '192.0.2.1', 'a.png'].join('/')</script>",
    );
    let seen = problems(&mut chrome, &book);
    assert!(
        seen.iter().any(|problem| problem.contains("asks for https://192.0.2.1/a.png")),
        "{seen:?}"
    );
}

/// The problems of the pages of `book`, in light and dark, on a desktop and on a phone.
fn problems(chrome: &mut Chrome, book: &Fixture) -> Vec<String> {
    book.build();
    let output = book.path("target/book");
    let (mut problems, mut packed) = (Vec::new(), look::Packed::default());
    for page in pages(&output) {
        let name = page.strip_prefix(&output).unwrap_or(&page).display().to_string();
        for problem in look::at(chrome, &page, &mut packed).expect("the browser answers") {
            problems.push(format!("{name}: {problem}"));
        }
    }
    problems
}

/// The pages of the book that hold content.
fn pages(output: &Path) -> Vec<PathBuf> {
    let mut pages = xtask::workspace::files(output, "html", usize::MAX);
    // The table of contents is a frame for readers without scripts.
    pages.retain(|path| !path.ends_with("toc.html"));
    pages
}
