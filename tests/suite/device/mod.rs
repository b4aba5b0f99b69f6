//! Tests of the device layer, with the same bodies on every device of this machine.

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

use linrec::Error;
use linrec::device::{Device, under_test};

/// Returns the GPUs of this machine, for a test that needs one.
pub fn gpus() -> Vec<Device> {
    let mut devices = Device::all();
    devices.retain(|device| !device.is_simt());
    assert!(!devices.is_empty(), "there is no GPU: `tour doctor` says why");
    devices
}

/// Runs `body` on every device.
fn on_every_device(body: impl Fn(&Device) -> Result<(), Error>) {
    for device in under_test() {
        body(&device).unwrap_or_else(|error| panic!("on {}: {error}", device.label()));
    }
}

/// Asserts that the result is an error whose sentence contains all the `parts`.
fn says<T: std::fmt::Debug>(result: Result<T, Error>, parts: &[&str]) {
    let text = result.expect_err("an error is expected").to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}
