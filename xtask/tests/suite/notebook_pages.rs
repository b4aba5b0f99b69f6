//! The notebooks in the book: their pages, and every fault that is found.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Fixture, found};

const SAMPLE: &str = "notebooks/01-sample.ipynb";
const OTHER: &str = "notebooks/02-other.ipynb";

/// Changes the JSON of the notebook at `path`.
fn change(book: &Fixture, path: &str, change: impl FnOnce(&mut Value)) {
    book.edit(path, |text| {
        let mut notebook = serde_json::from_str(text).unwrap();
        change(&mut notebook);
        notebook.to_string()
    });
}

/// The fixture book whose first notebook ends with this cell of Markdown fails with all of
/// `expected`.
#[track_caller]
fn found_in(text: &str, expected: &[&str]) {
    let cell = json!({"cell_type": "markdown", "id": "planted", "metadata": {}, "source": text});
    found(
        |book| {
            change(book, SAMPLE, |notebook| notebook["cells"].as_array_mut().unwrap().push(cell));
        },
        expected,
    );
}

#[test]
fn a_notebook_becomes_a_page() {
    let book = Fixture::new();
    assert_eq!(book.failures(), "");
    let page = fs::read_to_string(book.path("target/book/01-sample/notebook.html")).unwrap();
    for expected in [
        // The page's own words in place of the notebook's.
        "The notebook of <a href=\"index.html\">chapter 1</a>, with the outputs of its last run.",
        // Cells of Markdown, as pages.
        "<msub><mi>y</mi><mi>l</mi></msub>",
        "<strong class=\"aside predict\">",
        "<strong class=\"aside try\">Try it</strong>",
        "the loop (<code>chapters/01-sample/src/lib.rs</code>)",
        "href=\"index.html#the-run\"",
        "href=\"figures/lanes.svg\"",
        "href=\"../02-other/notebook.html#nothing-yet\"",
        "src=\"figures/lanes.svg\"",
        "<code class=\"language-rust\">Some(0.5)",
        // Code, also where mdBook would hide a line of it.
        "\n# no comment\n#include \"carry.cuh\"\n",
        // Outputs.
        "<samp>16 steps &lt; 32\n\n$x$, and a line",
        "<samp>16</samp>",
        "<th class=\"number\">column 0</th>",
        "<td class=\"short\">fwd&lt;float&gt;</td><td class=\"number\">0.000</td>",
        "<td colspan=\"3\" class=\"short\">… and 1 more</td>",
        "<samp>✓ loop, f32: 3697 cases\n  largest error",
        "<figure id=\"output-chart-1\">",
        "aria-label=\"An impulse &amp; its end\"",
        "clip-path=\"url(#output-chart-1-area)\"",
        "font-family=\"sans-serif\" font-size=\"12\"><rect",
    ] {
        assert!(page.contains(expected), "`{expected}` is not in the page");
    }
    for hidden in ["It was opened", "not shown", "varies", "<details open"] {
        assert!(!page.contains(hidden), "`{hidden}` is in the page");
    }
}

#[test]
fn pages_and_notebooks_are_linked() {
    let book = Fixture::new();
    assert_eq!(book.failures(), "");
    let page = fs::read_to_string(book.path("target/book/01-sample/index.html")).unwrap();
    assert!(page.contains("<a href=\"notebook.html\">the notebook of this chapter</a>"), "{page}");
    let contents = fs::read_to_string(book.path("target/book/toc.html")).unwrap();
    assert!(contents.contains("href=\"02-other/notebook.html\""), "{contents}");
}

#[test]
fn a_chapter_and_its_notebook_belong_together() {
    let remove = |path| move |book: &Fixture| fs::remove_file(book.path(path)).unwrap();
    found(
        remove(OTHER),
        &[
            "chapters/02-other/README.md: the chapter has no notebook notebooks/02-other.ipynb",
            "README.md:8: link to `../../notebooks/02-other.ipynb`: there is no such page or file",
        ],
    );
    found(
        |book| fs::rename(book.path(OTHER), book.path("notebooks/02-others.ipynb")).unwrap(),
        &["notebooks/02-others.ipynb: the book has no page chapters/02-others/README.md"],
    );
    found(
        |book| {
            book.edit("chapters/02-other/README.md", |page| {
                page.replace("../../notebooks/02-other.ipynb", "../01-sample/README.md")
            });
        },
        &["chapters/02-other/README.md: the page does not link to its notebook"],
    );
    // A link further down is not where a reader of the notebook looks for it.
    let first = "# Title\n\nTo play with.\n\n[Chapter 2](../chapters/02-other/README.md)";
    for source in [first, "", "[Another](../chapters/01-sample/README.md)"] {
        found(
            |book| change(book, OTHER, |notebook| notebook["cells"][0]["source"] = json!(source)),
            &["notebooks/02-other.ipynb: the first paragraph of the first cell does not link to \
               ../chapters/02-other/README.md"],
        );
    }
}

#[test]
fn faults_in_a_cell_are_found() {
    found_in("one\n\n$\\nosuch$", &["notebooks/01-sample.ipynb: cell planted, line 3: formula"]);
    found_in("[a](../chapters/03-none/README.md)", &["cell planted, line 1: link to"]);
    found_in("![a](../book.toml)", &["would not be copied"]);
    found_in(
        "[a](../chapters/02-other/README.md#none)",
        &["notebooks/01-sample.ipynb:", "no such heading or id in that page"],
    );
    found_in("{{#value steps}}", &["notebooks/01-sample.ipynb:", "was left as it is"]);
    found_in("<img src=\"https://example.org/a\">", &["`https://example.org/a` is remote"]);
    // The id of a figure of this notebook.
    found_in("<b id=\"output-chart-1-area\">a</b>", &["`output-chart-1-area` is used twice"]);
}

#[test]
fn outputs_that_cannot_be_shown_are_found() {
    let gives = |output: Value| {
        move |book: &Fixture| {
            change(book, SAMPLE, |notebook| notebook["cells"][1]["outputs"] = json!([output]));
        }
    };
    let error =
        json!({"output_type": "error", "ename": "E0425", "evalue": "no `y`", "traceback": []});
    found(gives(error), &["notebooks/01-sample.ipynb: cell begin: it failed: E0425: no `y`"]);
    let warning = json!({"output_type": "stream", "name": "stderr", "text": "warning"});
    found(gives(warning), &["cell begin: it wrote to stderr"]);
    let shown = |form: &str, text: &str| json!({"output_type": "display_data", "metadata": {}, "data": {form: text}});
    found(
        gives(shown("image/png", "AAAA")),
        &["cell begin: its output has only the forms image/png"],
    );
    found(gives(shown("text/html", "<script/>")), &["its HTML holds <script>"]);
    found(gives(shown("text/html", "<b>")), &["its HTML is not well-formed"]);
    found(gives(shown("image/svg+xml", "<svg")), &["its figure is not well-formed"]);
}

#[test]
fn a_file_that_is_no_notebook_is_found() {
    found(
        |book| book.write(SAMPLE, "{}"),
        &["notebooks/01-sample.ipynb: this is no notebook in the format 4.5"],
    );
}
