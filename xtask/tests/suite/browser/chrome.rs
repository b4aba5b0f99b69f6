//! A Chromium without a window, driven over the DevTools protocol.
//!
//! The tests need few methods of the protocol. The crates chromiumoxide 0.9 and headless_chrome 1.0
//! would save some 90 lines here, for 35 and 32 new crates, among them a generated client (of
//! chromiumoxide 111,000 lines) that the gate would compile twice.

use std::collections::VecDeque;
use std::env;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};
use xtask::workspace;

const NAMES: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

/// The most time that the browser may take for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The browser's program: the one that `CHROMIUM` names, or the first on the `PATH`.
pub fn find() -> Option<PathBuf> {
    env::var_os("CHROMIUM").map(PathBuf::from).or_else(|| workspace::find(&NAMES))
}

/// A running browser with one page.
pub struct Chrome {
    process: Child,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    last_id: u64,
    events: VecDeque<Value>,
    // Removed last, when the browser has ended.
    _profile: TempDir,
}

impl Chrome {
    pub fn start(program: &Path) -> Result<Self> {
        let profile = tempfile::tempdir()?;
        let process = Command::new(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-port=0",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let socket = connect(profile.path())?;
        let mut chrome = Self {
            process,
            socket,
            session: None,
            last_id: 0,
            events: VecDeque::new(),
            _profile: profile,
        };
        chrome.open_page()?;
        Ok(chrome)
    }

    fn open_page(&mut self) -> Result<()> {
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let attached = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.call("Target.attachToTarget", attached)?;
        self.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(())
    }

    /// Calls a method of the protocol and gives its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.last_id += 1;
        let mut request = json!({"id": self.last_id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(request.to_string()))?;
        loop {
            let message = self.read()?;
            if message["id"] == json!(self.last_id) {
                if !message["error"].is_null() {
                    bail!("{method}: {}", message["error"]);
                }
                return Ok(message["result"].clone());
            }
            if message["method"].is_string() {
                self.events.push_back(message);
            }
        }
    }

    /// Opens `url`, and waits until the page and all files that it requests are loaded.
    pub fn open(&mut self, url: &str) -> Result<()> {
        self.events.clear();
        self.call("Page.navigate", json!({"url": url}))?;
        let start = Instant::now();
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.read()?;
            self.events.push_back(event);
            if start.elapsed() > PATIENCE {
                bail!("{url} does not load");
            }
        }
        Ok(())
    }

    /// The value of a JavaScript expression in the page; waits for a promise.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value> {
        let parameters =
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.call("Runtime.evaluate", parameters)?;
        if !result["exceptionDetails"].is_null() {
            bail!("in the page: {}", result["exceptionDetails"]);
        }
        Ok(result["result"]["value"].clone())
    }

    /// The value of an expression in the page, which must have this type.
    #[track_caller]
    pub fn get<T: DeserializeOwned>(&mut self, expression: &str) -> T {
        let value = self.evaluate(expression).unwrap();
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error} in {value}"))
    }

    /// Sets the colour scheme and the width of the window, in pixels. A narrow window is a phone's.
    pub fn set_screen(&mut self, scheme: &str, width: u32) -> Result<()> {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}),
        )?;
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}))?;
        Ok(())
    }

    /// The part `clip` of the open page as a PNG.
    ///
    /// Chromium waits for the next frame, which on a busy machine may never come. A second request
    /// draws another one, and the answer to the first is then passed over.
    pub fn picture(&mut self, clip: &Value) -> Result<Vec<u8>> {
        let options = json!({"format": "png", "clip": clip, "captureBeyondViewport": true});
        self.socket.get_ref().set_read_timeout(Some(PATIENCE / 4))?;
        let first = self.call("Page.captureScreenshot", options.clone());
        self.socket.get_ref().set_read_timeout(Some(PATIENCE))?;
        let picture = first.or_else(|_| {
            eprintln!("asking for a picture again");
            self.call("Page.bringToFront", json!({}))?;
            self.call("Page.captureScreenshot", options)
        })?;
        let data = picture["data"].as_str().context("a picture without data")?;
        Ok(base64::engine::general_purpose::STANDARD.decode(data)?)
    }

    /// The events of the browser since the page was opened.
    pub fn events(&self) -> impl Iterator<Item = &Value> {
        self.events.iter()
    }

    fn read(&mut self) -> Result<Value> {
        loop {
            if let Message::Text(text) = self.socket.read().context("the browser is silent")? {
                return Ok(serde_json::from_str(&text)?);
            }
        }
    }
}

impl Drop for Chrome {
    fn drop(&mut self) {
        // On request the browser ends all of its processes and stops writing to its profile.
        self.session = None;
        if self.call("Browser.close", json!({})).is_err() {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

/// Connects to the browser, which writes its port and path into its profile when it is ready.
fn connect(profile: &Path) -> Result<WebSocket<TcpStream>> {
    let start = Instant::now();
    let (port, path) = loop {
        match fs::read_to_string(profile.join("DevToolsActivePort")) {
            Ok(text) if text.lines().count() == 2 => {
                let mut lines = text.lines().map(str::to_owned);
                break (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ if start.elapsed() > PATIENCE => bail!("the browser does not start"),
            _ => sleep(Duration::from_millis(20)),
        }
    };
    let stream = TcpStream::connect(("127.0.0.1", port.parse::<u16>()?))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let (socket, _) = tungstenite::client(format!("ws://127.0.0.1:{port}{path}"), stream)
        .map_err(|error| io::Error::other(error.to_string()))?;
    Ok(socket)
}
