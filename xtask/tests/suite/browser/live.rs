//! Live pages: the module in a browser gives the answers of native code, and the page shows them.
//!
//! The tests build the whole book and open its pages from disk. They compare every scene with the
//! same code compiled for this machine, step through launches by keys and buttons, and take the
//! pictures that people look at. `times_of_the_first_step_and_of_steps_back` only measures:
//! it prints milliseconds, and its record is in `xtask/README.md`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use live::Live;
use serde_json::{Value, json};
use xtask::live::Scenes;

use super::chrome::Chrome;
use super::look;
use super::{browser, built};

/// The page that the tests of the debugger use, and its scene.
const PAGE: &str = "06-tile-kernel/index.html";
const SCENE: &str = "tile";

/// Opens a page at the address of a state, and waits until the state is shown.
fn open(chrome: &mut Chrome, page: &Path, fragment: &str) {
    // The browser does not load a page again if only its fragment differs.
    chrome.open("about:blank").unwrap();
    chrome.open(&format!("{}{fragment}", look::address(page))).unwrap();
    chrome.evaluate(include_str!("live.js")).unwrap();
    assert!(chrome.get::<bool>("live.ready()"));
}

fn ask(chrome: &mut Chrome, request: &Value) -> Value {
    chrome.evaluate(&format!("linrecLive.ask({request})")).unwrap()
}

/// The scene with each of its kernels.
fn variants(full: &Value) -> Vec<Value> {
    let variants = full["variants"].as_array().unwrap();
    let with = |variant: &Value| {
        let mut scene = full.as_object().unwrap().clone();
        scene.remove("variants");
        scene.extend(variant.as_object().unwrap().clone());
        Value::Object(scene)
    };
    variants.iter().map(with).collect()
}

/// Every answer in the page equals the answer of the same code compiled for this machine: all bits
/// of all arrays, registers and counters.
#[test]
#[ignore = "needs a browser"]
fn every_scene_has_the_bits_of_the_native_emulator() {
    let (book, output) = built();
    let mut chrome = browser();
    open(&mut chrome, &output.join(PAGE), &format!("#live={SCENE}"));
    let scenes = Scenes::read(book.root()).unwrap();
    let all = scenes.iter().flat_map(|scene| variants(&scene.full().unwrap()));
    for full in all {
        let mut native = Live::default();
        let mut length = 0;
        let name = format!("{} {}", full["title"], full["name"]);
        let end = json!({"do": "go", "id": 9, "by": "step", "to": 1 << 30});
        let middle = |length: u64| json!({"do": "go", "id": 9, "by": "step", "to": length / 2});
        for number in 0..6 {
            let request = match number {
                0 => json!({"do": "open", "id": 9, "scene": full}),
                1 => end.clone(),
                2 | 5 => json!({"do": "arrays", "id": 9}),
                3 => middle(length),
                _ => json!({"do": "go", "id": 9, "by": "line", "back": true}),
            };
            let expected: Value =
                serde_json::from_str(&native.answer(&request.to_string())).unwrap();
            assert!(expected.get("error").is_none(), "{name}: {expected}");
            length = expected["length"].as_u64().unwrap_or(length);
            let seen = ask(&mut chrome, &request);
            assert!(seen == expected, "{name} at {number}: {seen}\n{expected}");
        }
    }
    look::assert_quiet(&chrome);
}

/// The address of a state leads to it; buttons and keys lead on; the address follows.
#[test]
#[ignore = "needs a browser"]
fn a_reader_goes_forward_and_backward() {
    let (_book, output) = built();
    let mut chrome = browser();
    open(
        &mut chrome,
        &output.join(PAGE),
        "#live=tile&len=200&rows=2&reverse=1&step=123&inputs=1,2",
    );
    let at = |chrome: &mut Chrome, keys: &[&str]| -> u64 {
        chrome.get(&format!("live.go({})", json!(keys)))
    };
    assert_eq!(at(&mut chrome, &[]), 123);
    let sizes: String = chrome.get("live.fields(['len', 'rows', 'reverse', 'inputs'])");
    assert_eq!(sizes, "200,2,1,1,2");
    assert_eq!(at(&mut chrome, &["i"]), 124);
    assert_eq!(at(&mut chrome, &["I"]), 123);
    let line = at(&mut chrome, &["ArrowRight"]);
    assert!(line > 123);
    assert!(at(&mut chrome, &["ArrowLeft"]) <= 123);
    let barrier = at(&mut chrome, &["b"]);
    assert!(barrier > line);
    assert!(at(&mut chrome, &["B"]) < barrier);
    let end = at(&mut chrome, &["End"]);
    assert!(end > barrier);
    let says: String = chrome.get("live.says()");
    assert!(says.starts_with("All "), "{says}");
    let clicked = "live.go([], '.stepper [title^=\"Back by an instruction\"]')";
    assert_eq!(chrome.get::<u64>(clicked), end - 1);
    let expected = format!("#live=tile&len=200&reverse=1&rows=2&inputs=1%2C2&step={}", end - 1);
    let link = chrome.evaluate("document.querySelector('.stepper .link').hash").unwrap();
    assert_eq!(link, json!(expected));
    chrome.evaluate("new Promise((go) => setTimeout(go, 400))").unwrap();
    assert_eq!(chrome.evaluate("location.hash").unwrap(), json!(expected));
    look::assert_quiet(&chrome);
}

/// Measures, and judges nothing by the clock: from opening a page to the first step shown, back by
/// a step, and a whole launch.
#[test]
#[ignore = "needs a browser"]
fn times_of_the_first_step_and_of_steps_back() {
    let (book, output) = built();
    let mut chrome = browser();
    let mut first = Vec::new();
    for _ in 0..11 {
        open(&mut chrome, &output.join(PAGE), &format!("#live={SCENE}"));
        first.push(chrome.get::<f64>("performance.getEntriesByName('live')[0].startTime"));
    }
    first.sort_by(f64::total_cmp);
    // 4 warps and 4096 elements: back from the end, by one instruction at a time and anywhere.
    let scenes = Scenes::read(book.root()).unwrap();
    let full = variants(&scenes.named("pipe-bwd").unwrap().full().unwrap()).remove(0);
    let sizes = json!({"len": 4096, "rows": 1});
    let opened = ask(&mut chrome, &json!({"do": "open", "id": 9, "scene": full, "sizes": sizes}));
    let length = opened["length"].as_u64().unwrap();
    let [back, worst]: [f64; 2] = chrome.get(&format!("live.back({length})"));
    let (least, median) = (first[0], first[first.len() / 2]);
    eprintln!(
        "first step shown after {median:.0} ms, at best {least:.0}; back by a step in {back:.1} ms, at most {worst:.1}"
    );

    // A whole launch, alternately in the page and in native code.
    let sizes = json!({"len": 4096, "rows": 4});
    let request = json!({"do": "open", "id": 9, "scene": full, "sizes": sizes});
    let (mut page, mut native) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..9 {
        page = page.min(chrome.get(&format!("live.timed({request})")));
        let (start, mut live) = (Instant::now(), Live::default());
        live.answer(&request.to_string());
        native = native.min(start.elapsed().as_secs_f64() * 1e3);
    }
    eprintln!("a launch of 16 warps in {page:.1} ms, natively in {native:.1} ms");
}

/// A widget draws anew when a control is moved.
#[test]
#[ignore = "needs a browser"]
fn a_widget_follows_its_controls() {
    let (_book, output) = built();
    let mut chrome = browser();
    chrome.open(&look::address(&output.join("01-sequential-loop/index.html"))).unwrap();
    chrome.evaluate(include_str!("live.js")).unwrap();
    let seen: [String; 3] = chrome.get("live.widget('memory', 'coefficient', 0.5)");
    for (seen, steps) in seen.iter().zip(["7 steps", "1 step, or less"]) {
        let left = format!("Of an input half of it is left after {steps}.");
        assert_eq!(*seen, format!("{left} (The dashed curve is the inputs.)"));
    }
    assert!(seen[2].starts_with("<svg"), "{}", seen[2]);
    look::assert_quiet(&chrome);
}

/// A mistake ends the launch with a sentence. LINREC_SCREENSHOTS names the folder for the README's
/// picture of it.
#[test]
#[ignore = "needs a browser"]
fn a_mistake_is_reported_in_the_page() {
    let (_book, output) = built();
    let mut chrome = browser();
    let page = output.join("05-ref-kernel/index.html");
    // Without scroll bars, which a picture beyond the window does not have either.
    chrome.call("Emulation.setScrollbarsHidden", json!({"hidden": true})).unwrap();
    open(&mut chrome, &page, "#live=block-scan&kernel=missing+barrier+after+publishing");
    // Everything above it is loaded, and does not move it later.
    chrome.evaluate(include_str!("look.js")).unwrap();
    let (says, clip): (String, Value) = chrome.get("live.mistake('block-scan')");
    assert!(says.contains("which lane 31 of warp 0 writes at"), "{says}");
    assert!(says.ends_with("no barrier lies between the two"), "{says}");
    if let Some(folder) = env::var_os("LINREC_SCREENSHOTS") {
        fs::write(Path::new(&folder).join("report.png"), chrome.picture(&clip).unwrap()).unwrap();
    }
    look::assert_quiet(&chrome);
}

/// The pictures for people to look at, in the folder that LINREC_SCREENSHOTS names or in a
/// temporary one.
#[test]
#[ignore = "needs a browser"]
fn pictures_can_be_taken_of_all() {
    let (_book, output) = built();
    let temporary = tempfile::tempdir().unwrap();
    let folder =
        env::var_os("LINREC_SCREENSHOTS").map_or(temporary.path().to_owned(), PathBuf::from);
    let mut chrome = browser();
    let mut taken = 0;
    for (scheme, width) in [("light", 1280), ("dark", 360)] {
        chrome.set_screen(scheme, width).unwrap();
        for page in super::pages(&output) {
            if !fs::read_to_string(&page).unwrap().contains("class=\"live\"") {
                continue;
            }
            chrome.open(&look::address(&page)).unwrap();
            chrome.evaluate(include_str!("look.js")).unwrap();
            chrome.evaluate(include_str!("live.js")).unwrap();
            let places: Vec<(String, Value)> = chrome.get("live.places()");
            for (name, clip) in places {
                let file = folder.join(format!("{name}-{scheme}-{width}.png"));
                fs::write(file, chrome.picture(&clip).unwrap()).unwrap();
                taken += 1;
            }
        }
    }
    assert!(taken > 76, "only {taken} pictures");
}
