//! The build and the checks of the book: a good book passes, and every fault is found.
//!
//! Most tests append a fault to the sample page of a small book, and expect the words of the
//! failure. The small book has every directive once, so that the tests of good pages read it, too.
//! One test builds and checks the book of this workspace. `notebook_pages` does the same for the
//! pages of notebooks, and `browser` looks at the built pages in a browser.

use std::fs;

use crate::support::{Fixture, found};

/// As [`found`]: the fault is a text that is appended to the sample page.
#[track_caller]
fn found_in(text: &str, expected: &[&str]) {
    found(|book| book.append(text), expected);
}

#[test]
fn the_book_of_this_workspace_passes() {
    assert_eq!(Fixture::of_workspace().failures(), "");
}

#[test]
fn a_good_book_passes() {
    let book = Fixture::new();
    assert_eq!(book.failures(), "");
    let output = book.path("target/book");
    for left_out in ["01-sample/src", "01-sample/results/run.json"] {
        assert!(!output.join(left_out).exists(), "{left_out} is in the book");
    }
    assert!(output.join("01-sample/figures/lanes.svg").is_file());
}

#[test]
fn a_page_is_rewritten() {
    let book = Fixture::new();
    book.append("End of `$code$`: [text](src/lib.rs#L3).\n\n{{#table gpu/bits.csv}}");
    fs::create_dir(book.path("chapters/01-sample/results/gpu")).unwrap();
    book.write(
        "chapters/01-sample/results/gpu/tables.json",
        r#"{"tables": [{"file": "bits.csv", "rows": ["words,kernel", "4720260,tile"]}]}"#,
    );
    assert_eq!(book.failures(), "");
    let page = fs::read_to_string(book.path("target/book/01-sample/index.html")).unwrap();
    for expected in [
        // Formulas, also in captions and with values; never in code.
        "<msub><mi>x</mi><mi>l</mi></msub>",
        "<mi>L</mi><mo>=</mo><mn>16</mn>",
        "<code>$code$</code>",
        // Anchored lines, dedented, without inner marks; CUDA is highlighted as C++.
        "<code class=\"language-rust\">let mut state = initial;\ninputs\n    .iter()",
        "<code class=\"language-cpp\">template &lt;int kMaxElemsPerThread&gt;",
        // Values, with what Markdown would read in them.
        "It took 4_097 × 2 steps and 1.25 ms",
        // Tables: numbers to the right, chosen columns.
        "<td class=\"number\">801.25</td>",
        "<td>strided &amp; padded</td>",
        "<tr><th class=\"number\">length</th><th class=\"number\">two threads (ns)</th></tr>",
        "<tr><td class=\"number\">4720260</td><td>tile</td></tr>",
        // Figures: inline, named for those who cannot see them.
        "<figure id=\"figure-decay\">",
        "aria-label=\"The first input decays by c^l, for c of 0.98",
        "marker-end=\"url(#figure-lanes-tip)\"",
        // Checks.
        "<td class=\"number\">2.40 × 10<sup>−8</sup></td>",
        "Recorded on 2026-11-21 by <code>cargo run --release -- 1</code>",
        // Links to pages and to files.
        "href=\"../02-other/index.html#a-heading-with-yl-in-it\"",
        "text (<code>chapters/01-sample/src/lib.rs</code>)",
        // Asides.
        "<strong class=\"aside predict\">Predict before you run</strong>",
        "<strong class=\"aside errata\">",
    ] {
        assert!(page.contains(expected), "`{expected}` is not in the page");
    }
}

#[test]
fn the_sidebar_numbers_chapters_by_their_folders() {
    let book = Fixture::new();
    book.edit("chapters/SUMMARY.md", |summary| {
        // The other way around, and with a page that is no chapter.
        let pages =
            "- [Other](02-other/README.md)\n- [Words](words.md)\n- [Sample](01-sample/README.md)\n";
        format!("{}\n{pages}", &summary[..summary.find("- [").unwrap()])
    });
    book.write("chapters/words.md", "# Words\n");
    assert_eq!(book.failures(), "");
    let contents = fs::read_to_string(book.path("target/book/toc.html")).unwrap();
    for entry in ["2.</strong> Other", ">Words", "1.</strong> Sample", "1.1.</strong> The notebook"]
    {
        assert!(contents.contains(entry), "`{entry}` is not in {contents}");
    }
}

#[test]
fn all_failures_are_listed_with_their_lines() {
    let book = Fixture::new();
    book.write("chapters/02-other/README.md", "# Other\n\n$\\nosuch$\n\n{{#value none}}\n");
    let failures = book.build_failures();
    assert!(failures.contains("chapters/02-other/README.md:3: formula `\\nosuch`"), "{failures}");
    assert!(failures.contains("chapters/02-other/README.md:5: value `none`"), "{failures}");
    assert!(failures.starts_with("2 failures"), "{failures}");
}

#[test]
fn formulas_that_fail() {
    found_in("$\\frac{1}$", &["formula `\\frac{1}`"]);
    found_in("$\\frac{1$", &["opens or closes no formula"]);
    found_in("$x + \\aleph$", &["the math font has no `ℵ` (U+2135)"]);
    found_in("$$ \\begin{cases} 1 $$", &["formula `\\begin{cases} 1`"]);
    found_in("$ x $ and so on", &["opens or closes no formula"]);
    found_in("| a |\n|---|\n| $|x|$ |", &["opens or closes no formula"]);
    found_in("<div>\n$x_l$\n</div>", &["`$x_l$` was not converted"]);
}

#[test]
fn includes_that_fail() {
    found_in("```rust\n{{#include src/lib.rs:nowhere}}\n```", &["no `ANCHOR: nowhere`"]);
    found_in("```rust\n{{#include src/none.rs:a}}\n```", &["include `src/none.rs:a`"]);
    found_in("```rust\n{{#include src/lib.rs:3:9}}\n```", &["counts lines"]);
    found_in("```rust\n{{#include src/lib.rs}}\n```", &["names no anchor"]);
    found_in("{{#include src/lib.rs:step}}", &["between fences"]);
    found_in("```text\nand {{#include src/lib.rs:step}}\n```", &["has a line to itself"]);
    found(
        |book| {
            book.write("chapters/01-sample/src/empty.rs", "// ANCHOR: e\n\n// ANCHOR_END: e\n");
            book.append("```rust\n{{#include src/empty.rs:e}}\n```");
        },
        &["include `src/empty.rs:e` is empty"],
    );
}

#[test]
fn pasted_code_fails() {
    for language in ["rust", "rust,ignore", "cuda", "cpp", "c++"] {
        found_in(&format!("```{language}\nlet a = 1;\n```"), &["pasted"]);
    }
    found_in("```rust\n{{#include src/lib.rs:step}}\nstate\n```", &["pasted rust code"]);
    found(
        |book| book.write("chapters/01-sample/NOTES.md", "```rust\nlet a = 1;\n```\n"),
        &["chapters/01-sample/NOTES.md:1: pasted rust code"],
    );
}

#[test]
fn results_that_are_missing_fail() {
    found_in("{{#value speed}}", &["no value `speed` in chapters/01-sample/results/run.json"]);
    found_in("{{#value 11 steps}}", &["there is no chapter 11"]);
    found_in("{{#value special-functions steps}}", &["there is no folder special-functions"]);
    found_in("{{#value 02 steps}}", &["run.json cannot be read"]);
    found_in("$a = {{#value none}}$", &["no value `none`"]);
    found_in("{{#table none.csv}}", &["table `none.csv`: there is no table `none.csv`"]);
    found_in("{{#table h200/bits.csv}}", &["table `h200/bits.csv`", "h200/tables.json cannot be"]);
    found_in("{{#table cost.csv length, width}}", &["has no column `width`"]);
    found_in("{{#figure none.svg A caption.}}", &["figure `none.svg` is neither in"]);
    found_in("{{#figure decay.svg See [it](none.rs).}}", &["link to `none.rs`"]);
    found_in("{{#figure decay.svg A $\\nosuch$.}}", &["caption of figure `decay.svg`"]);
    found(
        |book| book.write("chapters/01-sample/results/decay.svg", "<svg"),
        &["figure `decay.svg` is not well-formed"],
    );
    found(
        |book| {
            book.edit("chapters/02-other/README.md", |page| format!("{page}\n{{{{#checks}}}}\n"))
        },
        &["chapters/02-other/README.md:10: chapters/02-other/results/run.json cannot be read"],
    );
}

#[test]
fn directives_in_the_wrong_place_fail() {
    found_in("`{{#value steps}}`", &["not expanded in code"]);
    found_in("text {{#checks}}", &["begins its line"]);
    found_in("{{#table cost.csv}}\ntext", &["blank line before and after"]);
    found_in("{{#nothing at all}}", &["there is no directive `{{#nothing}}`"]);
    found_in("{{#value steps", &["was left as it is"]);
}

#[test]
fn links_that_lead_nowhere_fail() {
    found_in("[a](../03-none/README.md)", &["link to `../03-none/README.md`"]);
    found_in("[a](src/none.rs)", &["link to `src/none.rs`"]);
    found_in("[a](../02-other/README.md#none)", &["no such heading or id in that page"]);
    found_in("[a](#none)", &["README.md:", "`#none`: there is no such heading"]);
    found_in("<a href=\"none.html\">a</a>", &["`none.html`: there is no such page"]);
    found_in("<a href=\"../../none.html\">a</a>", &["leads out of the book"]);
    found_in("<b id=\"x\">a</b> <b id=\"x\">b</b>", &["the id `x` is used twice"]);
}

#[test]
fn pictures_that_are_missing_fail() {
    found_in("![a](figures/none.svg)", &["picture `figures/none.svg`: there is no such file"]);
    found_in("![a](../../book.toml)", &["would not be copied"]);
    found_in("<img src=\"none.png\">", &["`none.png`: there is no such page or file"]);
}

#[test]
fn remote_addresses_fail() {
    const REMOTE: &str = "https://example.org/a";
    let expected = format!("`{REMOTE}` is remote");
    for text in [
        format!("![a]({REMOTE})"),
        format!("<img src=\"{REMOTE}\">"),
        format!("<img srcset=\"{REMOTE}\">"),
        format!("<script src=\"{REMOTE}\"></script>"),
        format!("<script>fetch('{REMOTE}')</script>"),
        format!("<iframe src=\"{REMOTE}\"></iframe>"),
        format!("<link rel=\"stylesheet\" href=\"{REMOTE}\">"),
        format!("<p style=\"background: url({REMOTE})\">a</p>"),
        format!("<style>@import '{REMOTE}';</style>"),
    ] {
        found_in(&text, &[&expected]);
    }
    let css = "xtask/theme/css/text.css";
    found(|book| book.edit(css, |css| format!("@import url({REMOTE});{css}")), &[&expected]);
    let font = "p { src: url('../none.woff2') format(\"woff2\") }";
    found(|book| book.edit(css, |css| css.to_owned() + font), &["`../none.woff2`: there is no"]);
    found(
        |book| {
            book.write("xtask/theme/a.js", &format!("fetch('{REMOTE}')"));
            book.edit("book.toml", |toml| {
                toml.replace(
                    "[output.html]",
                    "[output.html]\nadditional-js = [\"xtask/theme/a.js\"]",
                )
            });
        },
        &["asks `https://example.org/a`"],
    );
    found(
        |book| book.edit("book.toml", |toml| toml.replace("runnable = false", "runnable = true")),
        &["a runnable block"],
    );
}

#[test]
fn exercises_without_a_hidden_solution_fail() {
    found_in("## Exercises\n\nDo it.", &["no exercise"]);
    found_in(
        "## Exercises\n\n### One\n\nWhat?\n\n### Two",
        &["exercise \"One\"", "exercise \"Two\""],
    );
    let open = "<details open>\n<summary>Solution</summary>\n\nSo.\n\n</details>";
    found_in(&format!("## Exercises\n\n### One\n\n{open}"), &["\"One\" is not hidden"]);
    let unclosed = "<details>\n<summary>Solution</summary>\n\nSo.";
    found_in(&format!("## Exercises\n\n### One\n\n{unclosed}"), &["has no </details>"]);
}

#[test]
fn empty_blocks_fail() {
    found_in("```text\n```", &["an empty block of code"]);
}

#[test]
fn a_missing_page_is_an_error() {
    let book = Fixture::new();
    book.edit("chapters/SUMMARY.md", |summary| format!("{summary}- [None](03-none/README.md)\n"));
    assert!(book.build_failures().contains("cannot be loaded"));
}

/// A standard output of `cargo xtask` that is closed or full.
mod output {
    use std::process::{Command, Stdio};

    use crate::support::Fixture;

    /// Builds the book with `stdout` as the standard output; returns the exit code and the standard
    /// error.
    fn built(book: &Fixture, stdout: Stdio) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.arg("book").current_dir(book.root()).stdout(stdout).stderr(Stdio::piped());
        let output = command.spawn().and_then(|child| child.wait_with_output()).expect("a program");
        assert!(book.path("target/book/index.html").is_file());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    #[test]
    fn a_reader_who_goes_away_is_no_error() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let (code, error) = built(&Fixture::new(), writer.into());
        assert_eq!((code, error.contains("panicked")), (Some(0), false), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_output_is_reported() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the device");
        let (code, error) = built(&Fixture::new(), full.into());
        assert_eq!((code, error.contains("panicked")), (Some(2), false), "{error}");
        assert!(error.contains("the standard output cannot be written: No space"), "{error}");
    }
}
