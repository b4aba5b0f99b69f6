//! Looking at one page: sizes, fonts, colours, width, console, requests.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::chrome::Chrome;

/// What is wrong with the page in `file`.
pub fn at(chrome: &mut Chrome, file: &Path) -> Result<Vec<String>> {
    let url = address(file);
    let mut problems = Vec::new();

    let light = visit(chrome, &url, "light", 1280, &mut problems)?;
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

/// Opens the page in a colour scheme and at a width; gives its colours.
fn visit(
    chrome: &mut Chrome,
    url: &str,
    scheme: &str,
    width: u32,
    problems: &mut Vec<String>,
) -> Result<Value> {
    chrome.call(
        "Emulation.setDeviceMetricsOverride",
        json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}),
    )?;
    let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
    chrome.call("Emulation.setEmulatedMedia", json!({"features": features}))?;
    chrome.open(url)?;
    let seen = chrome.evaluate(include_str!("look.js"))?;
    let found = seen["problems"].as_array().context("no answer from the page")?;
    problems.extend(found.iter().filter_map(Value::as_str).map(str::to_owned));
    problems.extend(chrome.events().filter_map(complaint));
    Ok(seen["colours"].clone())
}

/// The address of a page that is opened from disk.
pub fn address(file: &Path) -> String {
    let path = file.to_string_lossy().replace('\\', "/");
    format!("file:///{}", path.trim_start_matches('/'))
}

/// An event that should not have been: an error in the console, a request that leaves the book.
pub fn complaint(event: &Value) -> Option<String> {
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
