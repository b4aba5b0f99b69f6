//! A recording that has begun: what it takes down, and what has to wait until it is over.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use super::Device;
use super::launch::Recorded;
use super::lock::lock;
use crate::Error;

thread_local! {
    /// Whether this thread is inside `Device::record`.
    static UNDER_WAY: Cell<bool> = const { Cell::new(false) };
}

/// What a recording has taken down so far; nothing any more once it is over.
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

    /// Takes down a launch.
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

    /// Ends the recording.
    pub(super) fn finish(&self) -> Vec<Recorded> {
        lock(&self.launches).take().unwrap_or_default()
    }
}

/// The time that this thread records in; it is over when this is dropped, after a panic as well.
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

/// An error if this thread is recording: a graph would not repeat the operation.
pub(super) fn refuse(device: &Device, operation: &str) -> Result<(), Error> {
    if !UNDER_WAY.get() {
        return Ok(());
    }
    let why = "not while launches are being recorded, as a graph repeats launches only; do it before the \
               recording, or between replays";
    Err(Error::device(device.label(), format!("{operation}: {why}")))
}

/// An error for a launch that is not on the recording's stream, if this thread is recording.
pub(super) fn refuse_other_stream(device: &Device, operation: &str) -> Result<(), Error> {
    if !UNDER_WAY.get() {
        return Ok(());
    }
    let why = "launches are being recorded, and this one is on another stream; give it the stream that \
               `Device::record` passes in";
    Err(Error::device(device.label(), format!("{operation}: {why}")))
}

/// An error for what the stream of a recording cannot do, now or later.
pub(super) fn records_only(device: &Device, operation: &str) -> Error {
    let why = "the stream of a recording takes launches and nothing else";
    Error::device(device.label(), format!("{operation}: {why}"))
}
