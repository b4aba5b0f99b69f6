//! Arrays on their way through the memory of the host.
//!
//! It replaces NCCL for emulated devices, and works for any devices. A few bytes go through the
//! host between GPUs as well.

use std::time::Instant;

use super::exchange::{Exchange, Post};
use crate::Error;
use crate::device::Buffer;

/// An exchange that copies arrays to the host and back.
#[derive(Debug)]
pub(super) struct ByHost {
    /// The rank's name in messages.
    pub(super) label: String,
    pub(super) post: Box<dyn Post>,
}

/// Copies every rank's array to all ranks, as [`Exchange::all_gather`].
pub(super) fn all_gather(
    label: &str,
    post: &dyn Post,
    (mine, all): (&Buffer<u8>, &mut Buffer<u8>),
    until: Instant,
) -> Result<(), Error> {
    let what = "all-gather";
    let parts = post.gather(what, mine.download()?, until)?;
    if parts.iter().any(|part| part.len() != mine.len()) {
        let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
        return Err(Error::device(
            label,
            format!("{what}: ranks have arrays of {lengths:?} bytes"),
        ));
    }
    fill(label, what, all, &parts.concat())
}

/// Copies the array of the rank `from` to all ranks, as [`Exchange::broadcast`].
pub(super) fn broadcast(
    label: &str,
    post: &dyn Post,
    (array, is_mine): (&mut Buffer<u8>, bool),
    from: usize,
    until: Instant,
) -> Result<(), Error> {
    let what = "broadcast";
    let mine = if is_mine { array.download()? } else { Vec::new() };
    let parts = post.gather(what, mine, until)?;
    match parts.get(from) {
        _ if is_mine => Ok(()),
        Some(bytes) => fill(label, what, array, bytes),
        None => Err(Error::device(label, format!("{what}: there is no rank {from}"))),
    }
}

/// Writes the bytes of another rank into an array of this one.
fn fill(label: &str, what: &str, array: &mut Buffer<u8>, bytes: &[u8]) -> Result<(), Error> {
    if array.len() != bytes.len() {
        let (here, there) = (array.len(), bytes.len());
        let message = format!("{what}: there are {there} bytes for an array of {here}");
        return Err(Error::device(label, message));
    }
    array.upload(bytes)
}

impl Exchange for ByHost {
    fn all_gather(
        &self,
        mine: &Buffer<u8>,
        all: &mut Buffer<u8>,
        until: Instant,
    ) -> Result<(), Error> {
        all_gather(&self.label, &*self.post, (mine, all), until)
    }

    fn broadcast(
        &self,
        array: &mut Buffer<u8>,
        is_mine: bool,
        from: usize,
        until: Instant,
    ) -> Result<(), Error> {
        broadcast(&self.label, &*self.post, (array, is_mine), from, until)
    }

    fn send(
        &self,
        array: &Buffer<u8>,
        to: usize,
        _agreed: bool,
        until: Instant,
    ) -> Result<(), Error> {
        self.post.post(to, array.download()?, until)
    }

    fn receive(
        &self,
        array: &mut Buffer<u8>,
        from: usize,
        _agreed: bool,
        until: Instant,
    ) -> Result<(), Error> {
        fill(&self.label, "receive", array, &self.post.fetch(from, until)?)
    }

    fn post(&self) -> &dyn Post {
        &*self.post
    }

    fn leave(&self, why: Option<&str>) {
        self.post.leave(why);
    }
}
