//! The device layer, on every device of this machine: the same test bodies for all.

mod arrays;
mod auto;
mod bounds;
mod cooperative;
mod graphs;
mod large;
mod launches;
mod loading;
mod logarithms;
mod parameters;
pub mod programs;
mod recurrence;
mod streams;

use std::fs;
use std::path::Path;

use linrec::Error;
use linrec::device::{Device, under_test};

/// Returns the GPUs of this machine, for a test that needs one.
pub fn gpus() -> Vec<Device> {
    let mut devices = Device::all();
    devices.retain(|device| !device.is_simt());
    assert!(!devices.is_empty(), "there is no GPU: `tour doctor` says why");
    devices
}

/// Runs a body on every device.
fn on_every_device(body: impl Fn(&Device) -> Result<(), Error>) {
    for device in under_test() {
        body(&device).unwrap_or_else(|error| panic!("on {}: {error}", device.label()));
    }
}

/// Panics unless the result is an error with all the `parts` in its text.
fn assert_error<T: std::fmt::Debug>(result: Result<T, Error>, parts: &[&str]) {
    let text = result.expect_err("an error is expected").to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// The lint `unsafe_code` refuses it elsewhere, and clippy every block without its conditions.
#[test]
fn unsafe_code_is_allowed_in_these_files_alone() {
    const ALLOWED: [&str; 3] =
        ["src/cpu/machine.rs", "src/device/cuda/mod.rs", "src/device/handle.rs"];
    fn search(folder: &Path, found: &mut Vec<String>, root: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                search(&path, found, root);
            } else if path.extension().is_some_and(|end| end == "rs")
                && fs::read_to_string(&path).unwrap().contains("[allow(unsafe_code)]")
            {
                found.push(path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/"));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    search(&root.join("src"), &mut found, &root);
    found.sort();
    assert_eq!(found, ALLOWED);
}
