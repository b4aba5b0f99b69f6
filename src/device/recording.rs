//! A recording that has begun: the launches so far, and the operations that it refuses.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use super::Device;
use super::launch::Recorded;
use super::lock::lock;
use crate::Error;

thread_local! {
    /// True while this thread is inside of `Device::record`.
    static UNDER_WAY: Cell<bool> = const { Cell::new(false) };
}

/// The launches of a recording so far; `None` once it is over.
#[derive(Debug)]
pub(super) struct Recorder {
    launches: Mutex<Option<Vec<Recorded>>>,
    label: String,
}

impl Recorder {
    fn new(device: &Device) -> Recorder {
        let label = device.label().to_owned();
        Recorder { launches: Mutex::new(Some(Vec::new())), label }
    }

    /// Adds a launch.
    pub(super) fn add(&self, launch: Recorded, operation: &str) -> Result<(), Error> {
        match &mut *lock(&self.launches) {
            Some(launches) => {
                launches.push(launch);
                Ok(())
            }
            None => {
                let why = "the recording that this stream belongs to is over; take another stream";
                Err(Error::device(&*self.label, format!("{operation}: {why}")))
            }
        }
    }

    /// Ends the recording and returns its launches.
    pub(super) fn finish(&self) -> Vec<Recorded> {
        lock(&self.launches).take().unwrap_or_default()
    }
}

/// This thread records until this is dropped, also by a panic.
pub(super) struct UnderWay {
    pub(super) recorder: Arc<Recorder>,
}

impl UnderWay {
    pub(super) fn begin(device: &Device) -> Result<UnderWay, Error> {
        refuse(device, "recording")?;
        UNDER_WAY.set(true);
        Ok(UnderWay { recorder: Arc::new(Recorder::new(device)) })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.set(false);
        self.recorder.finish();
    }
}

/// Returns an error if this thread is recording: a graph would not repeat the operation.
pub(super) fn refuse(device: &Device, operation: &str) -> Result<(), Error> {
    let why = "not while launches are being recorded, as a graph repeats launches only; do it before the \
               recording, or between replays";
    refuse_because(device, operation, why)
}

/// Returns an error if this thread is recording, for a launch on another stream.
pub(super) fn refuse_other_stream(device: &Device, operation: &str) -> Result<(), Error> {
    let why = "launches are being recorded, and this one is on another stream; give it the stream that \
               `Device::record` passes in";
    refuse_because(device, operation, why)
}

fn refuse_because(device: &Device, operation: &str, why: &str) -> Result<(), Error> {
    if !UNDER_WAY.get() {
        return Ok(());
    }
    Err(Error::device(device.label(), format!("{operation}: {why}")))
}

/// Returns the error for an operation that the stream of a recording never takes.
pub(super) fn records_only(device: &Device, operation: &str) -> Error {
    let why = "the stream of a recording takes launches and nothing else";
    Error::device(device.label(), format!("{operation}: {why}"))
}
