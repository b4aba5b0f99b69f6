//! The page "Your own kernel": PTX that a reader may paste, and the page's verdict.

use serde_json::json;

use super::chrome::Chrome;
use super::look;
use super::{browser, built};

/// Fields of the form, by their labels, with the reader's values.
type Fields<'f> = &'f [(&'f str, &'f str)];

/// Sets fields of the form and runs it; returns the sentence, the counters and the arrays.
fn run(chrome: &mut Chrome, ptx: &str, fields: Fields<'_>) -> [String; 3] {
    chrome.get(&format!("live.run({}, {})", json!(ptx), json!(fields)))
}

#[test]
#[ignore = "needs a browser"]
fn a_pasted_kernel_runs_or_is_explained() {
    let (_book, output) = built();
    let mut chrome = browser();
    chrome.open(&look::address(&output.join("your-own-kernel.html"))).unwrap();
    chrome.evaluate(include_str!("live.js")).unwrap();
    let ptx: String = chrome.get("live.example()");

    let fields = [("x: values", "index"), ("y: values", "1, 2"), ("count: value", "250")];
    let [says, counted, arrays] = run(&mut chrome, &ptx, &fields);
    assert!(says.starts_with("All ") && says.contains("every warp has left"), "{says}");
    assert!(counted.contains("load requests 16; sectors loaded 64"), "{counted}");
    assert!(arrays.contains("y 25612.523.5"), "{arrays}");

    // The exercises of the page, and PTX and arguments that do not parse, fit or exist.
    let cases: [(&str, &str, Fields<'_>, &str); 8] = [
        (
            "@%p bra end;",
            "",
            &[("Blocks, x", "5")],
            "reads 4 bytes at 0 bytes past the end of buffer `x`",
        ),
        (
            "end:",
            "bar.sync 0;\nend:",
            &[("Blocks, x", "4"), ("count: value", "200")],
            "waits at a barrier that 56 threads of the block cannot reach",
        ),
        (
            "mov.u32 %size, %ntid.x;",
            "again: bra again;",
            &[],
            "is over the launch's bound of 1048576 instructions, all of which are used up",
        ),
        ("fma.rn.f32", "fma.of.f32", &[], "PTX line 32: `fma.of.f32"),
        (".visible .entry axpy", ".func axpy", &[], "the PTX has no kernel (`.entry`)"),
        ("", "", &[("x: values", "one")], "x: `one` is no number"),
        ("", "", &[("x: values", "")], "reads"),
        ("", "", &[("x: values", "1"), ("Threads of a block, x", "2000")], "2000"),
    ];
    for (from, to, fields, expected) in cases {
        let [says, ..] = run(&mut chrome, &ptx.replacen(from, to, 1), fields);
        assert!(says.contains(expected), "{from} {fields:?}: {says}");
    }

    // The reader goes on: a right kernel, step by step, by keys.
    let [says, ..] = run(&mut chrome, &ptx, &[("Threads of a block, x", "64")]);
    assert!(says.starts_with("All "), "{says}");
    chrome.evaluate("live.go(['Home', 'i'])").unwrap();
    let says: String = chrome.get("live.says()");
    assert!(says.starts_with("Step 1 of "), "{says}");
    assert_eq!(chrome.get::<String>("live.line()"), "ld.param.u64 %to, [y];");
    look::assert_quiet(&chrome);
}
