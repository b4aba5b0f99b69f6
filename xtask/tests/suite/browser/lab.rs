//! A notebook in JupyterLab, in a real browser and with the real kernel.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use xtask::lab::{self, Lab};

use super::browser;
use super::chrome::Chrome;

const NOTEBOOK: &str = "notebooks/01-sequential-loop.ipynb";
const TOKEN: &str = "only-for-this-test";

/// The most time until the server answers, and until the notebook has run.
const START: Duration = Duration::from_secs(60);
const RUN: Duration = Duration::from_secs(600);

/// JupyterLab, until it is dropped.
struct Server {
    process: Child,
    port: u16,
    // Removed last.
    _settings: TempDir,
}

impl Server {
    fn start(lab: &Lab) -> Result<Self> {
        // The system names a free port, which is free again when the listener is dropped.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        // The test must not change the notebook's file, nor the layout of the next reader.
        let settings = tempfile::tempdir()?;
        let folder = settings.path().join("@jupyterlab/docmanager-extension");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("plugin.jupyterlab-settings"), r#"{"autosave": false}"#)?;
        let mut command = lab::command(lab, port);
        command
            .env("JUPYTERLAB_SETTINGS_DIR", settings.path())
            .env("JUPYTERLAB_WORKSPACES_DIR", settings.path())
            .args(["--no-browser", "--allow-root", "--ServerApp.port_retries=0"])
            .arg(format!("--IdentityProvider.token={TOKEN}"))
            // The page's own commands can then be called from outside.
            .arg("--LabApp.expose_app_in_browser=True")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let server = Server { process: command.spawn()?, port, _settings: settings };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(start.elapsed() < START, "JupyterLab does not answer");
            sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/lab/tree/{path}?token={TOKEN}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The page has asked the server to end, with its kernels. Otherwise it is killed.
        let start = Instant::now();
        while self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            if start.elapsed() > Duration::from_secs(20) {
                let _ = self.process.kill();
            }
            sleep(Duration::from_millis(100));
        }
    }
}

/// Evaluates the expression in the page until it is true.
fn wait_for(chrome: &mut Chrome, expression: &str, patience: Duration) -> Result<()> {
    let start = Instant::now();
    while chrome.evaluate(expression)? != json!(true) {
        if start.elapsed() > patience {
            let shown = chrome.evaluate("document.body.innerText.slice(-2000)")?;
            bail!("`{expression}` does not come true; the page shows:\n{shown}");
        }
        sleep(Duration::from_millis(250));
    }
    Ok(())
}

/// Opens the notebook, runs all of its cells, and returns what the page shows.
fn run_all(chrome: &mut Chrome, server: &Server) -> Result<Value> {
    chrome.set_screen("light", 1280)?;
    chrome.open(&server.url(NOTEBOOK))?;
    chrome.evaluate(include_str!("lab.js"))?;
    wait_for(chrome, "lab.isReady()", START)?;
    chrome.evaluate("lab.clear()")?;
    let before = chrome.evaluate("lab.seen()")?;
    ensure!(before["figures"] == json!(0), "figures of an earlier run are left: {before}");
    chrome.evaluate("lab.run()")?;
    wait_for(chrome, "lab.isDone()", RUN)?;
    chrome.evaluate("lab.seen()")
}

#[test]
#[ignore = "needs the lab (cargo lab --prepare) and a browser"]
fn a_notebook_runs_in_jupyterlab() {
    let lab = Lab::found(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let lab = lab.expect("there is no lab: `cargo lab --prepare` makes one");
    let mut chrome = browser();
    let path = lab.root().join(NOTEBOOK);
    let before = fs::read_to_string(&path).expect("the notebook is there");
    let server = Server::start(&lab).expect("JupyterLab starts");
    let seen = run_all(&mut chrome, &server);
    if let Some(file) = env::var_os("LINREC_SCREENSHOT") {
        let picture = chrome.call("Page.captureScreenshot", json!({})).expect("a picture");
        fs::write(file, picture["data"].as_str().unwrap_or_default()).expect("a file to write");
    }
    let stopped = chrome.evaluate(&format!("lab.stop({TOKEN:?})"));
    let seen = seen.context("in JupyterLab").unwrap();
    stopped.unwrap();
    drop(server);
    // Every code cell has run, the last one too; no output is an error; figures are drawn, and have
    // a size.
    assert_eq!(seen["unfinished"], json!(0), "{seen}");
    assert_eq!(seen["errors"], json!([]), "{seen}");
    assert!(seen["figures"].as_u64() >= Some(2), "{seen}");
    assert!(seen["tables"].as_u64() >= Some(1), "{seen}");
    let after = fs::read_to_string(&path).expect("the notebook is there");
    assert!(after == before, "the test has changed {}", path.display());
}
