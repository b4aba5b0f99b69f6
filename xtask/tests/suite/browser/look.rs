//! Looks at one page: sizes, fonts, colours, width, console, requests, and the bytes that it loads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::chrome::Chrome;

/// The most packed bytes of a page with all that it loads.
const MOST_BYTES: usize = 1_000_000;

/// The packed bytes of files, which many pages load.
#[derive(Default)]
pub struct Packed(BTreeMap<PathBuf, usize>);

impl Packed {
    /// The bytes of a file after `gzip -9`, or of a packed file as it is.
    fn of(&mut self, file: &Path) -> Result<usize> {
        if let Some(&bytes) = self.0.get(file) {
            return Ok(bytes);
        }
        let contents = fs::read(file).with_context(|| format!("{}", file.display()))?;
        let is_packed = file.extension().is_some_and(|kind| kind == "woff2" || kind == "png");
        let bytes = if is_packed { contents.len() } else { xtask::live::pack(&contents)?.len() };
        self.0.insert(file.to_owned(), bytes);
        Ok(bytes)
    }

    /// The bytes of all files that the page at `url` has requested.
    fn of_page(&mut self, chrome: &Chrome, url: &str) -> Result<usize> {
        // An event of the page before may come late.
        let events = chrome.events().filter(|event| event["params"]["documentURL"] == url);
        let files: BTreeSet<PathBuf> = events.filter_map(requested).collect();
        files.iter().map(|file| self.of(file)).sum()
    }
}

/// The file that an event requests.
fn requested(event: &Value) -> Option<PathBuf> {
    let url = event["params"]["request"]["url"].as_str()?;
    let is_asked = event["method"] == "Network.requestWillBeSent";
    let path = url.strip_prefix("file://").filter(|_| is_asked)?.split(['#', '?']).next()?;
    Some(PathBuf::from(if cfg!(windows) { path.trim_start_matches('/') } else { path }))
}

/// The problems of the page in `file`.
pub fn at(chrome: &mut Chrome, file: &Path, packed: &mut Packed) -> Result<Vec<String>> {
    let url = address(file);
    let mut problems = Vec::new();

    // Files that another page has loaded count as well.
    chrome.call("Network.setCacheDisabled", json!({"cacheDisabled": true}))?;
    let light = visit(chrome, &url, "light", 1280, &mut problems)?;
    let bytes = packed.of_page(chrome, &url)?;
    if bytes > MOST_BYTES {
        problems.push(format!("loads {bytes} bytes, packed, of at most {MOST_BYTES}"));
    }
    let dark = visit(chrome, &url, "dark", 360, &mut problems)?;
    if light["background"] == dark["background"] {
        problems.push("the page keeps its background in the dark".to_owned());
    }
    let figures = |colours: &Value| colours["figures"].as_array().cloned().unwrap_or_default();
    for (light, dark) in figures(&light).iter().zip(figures(&dark)) {
        for part in ["paper", "ink"] {
            if !light[part].is_null() && light[part] == dark[part] {
                problems.push(format!("{part} of {} keeps its colours in the dark", light["id"]));
            }
        }
    }
    problems.sort();
    problems.dedup();
    Ok(problems)
}

/// Opens the page in a colour scheme and at a width; returns its colours.
fn visit(
    chrome: &mut Chrome,
    url: &str,
    scheme: &str,
    width: u32,
    problems: &mut Vec<String>,
) -> Result<Value> {
    chrome.set_screen(scheme, width)?;
    chrome.open(url)?;
    let seen = chrome.evaluate(include_str!("look.js"))?;
    let found = seen["problems"].as_array().context("no answer from the page")?;
    problems.extend(found.iter().filter_map(Value::as_str).map(str::to_owned));
    problems.extend(chrome.events().filter_map(complaint));
    Ok(seen["colours"].clone())
}

/// The address of a page on disk.
pub fn address(file: &Path) -> String {
    let path = file.to_string_lossy().replace('\\', "/");
    format!("file:///{}", path.trim_start_matches('/'))
}

/// Checks that the open page has caused no complaint.
#[track_caller]
pub fn assert_quiet(chrome: &Chrome) {
    assert_eq!(chrome.events().filter_map(complaint).collect::<Vec<_>>(), Vec::<String>::new());
}

/// The complaint about an event: an error in the console, or a request that leaves the book.
fn complaint(event: &Value) -> Option<String> {
    let parameters = &event["params"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => {
            Some(format!("console: {}", parameters["exceptionDetails"]["text"]))
        }
        "Runtime.consoleAPICalled"
            if ["error", "warning"].contains(&parameters["type"].as_str()?) =>
        {
            Some(format!("console: {}", parameters["args"]))
        }
        "Log.entryAdded" if parameters["entry"]["level"] == "error" => {
            Some(format!("console: {}", parameters["entry"]["text"]))
        }
        "Network.requestWillBeSent" => {
            let url = text(&parameters["request"]["url"]);
            let stays = ["file:", "data:", "about:"].iter().any(|scheme| url.starts_with(scheme));
            (!stays).then(|| format!("asks for {url}"))
        }
        "Network.loadingFailed" => {
            Some(format!("console: a file did not load: {}", parameters["errorText"]))
        }
        _ => None,
    }
}
