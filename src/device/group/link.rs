//! One rank's link to the others: arrays by NCCL or through the host, and bytes of the host.
//!
//! Through the host arrays work on any devices; emulated ones have no other way, and between GPUs
//! few bytes are sooner there than by NCCL. Before NCCL moves anything, ranks agree through the
//! host on what they are about to do. So it shows when one of them has failed, where NCCL itself
//! would wait without end. The tests are `tests/suite/group`: `together`, `processes` and `nccl`.

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::frame::shown;
use super::meeting::Seat;
use crate::Error;
use crate::device::backend::{Communicator, Piece, Transfer};
use crate::device::{Buffer, Device};

/// The time after which ranks that wait for each other ask again whether one has failed.
const PULSE: Duration = Duration::from_millis(100);

/// One rank's link to the others for bytes of the host.
///
/// Every method returns when it is over for this rank, or with an error at `until` at the latest.
/// After an error every other rank gets one, too, from the call that it waits in and from every
/// later call.
pub(super) trait Post: Debug + Send + Sync {
    /// Returns the bytes of every rank, in the order of ranks; lengths may differ. `what` is for
    /// messages.
    fn gather(&self, what: &str, mine: &[u8], until: Instant) -> Result<Vec<Arc<[u8]>>, Error>;

    /// Sends bytes to another rank, which need not fetch them at once.
    fn post(&self, to: usize, letter: Vec<u8>, until: Instant) -> Result<(), Error>;

    /// Returns the first bytes that another rank has posted and this rank has not fetched.
    fn fetch(&self, from: usize, until: Instant) -> Result<Vec<u8>, Error>;

    /// Returns why a rank has failed, if one has.
    fn failure(&self, until: Instant) -> Option<String>;

    /// The seat among the ranks of this program, if all ranks are in it.
    fn seat(&self) -> Option<&Seat> {
        None
    }

    /// Takes no further part; with a reason after a failure, which all others get.
    fn leave(&self, why: Option<&str>);
}

/// One rank's link to the others, with errors as in [`Post`]. Arrays are on its own device, and
/// given as bytes. Work that was queued on them before is done first.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) number: usize,
    pub(super) size: usize,
    pub(super) post: Box<dyn Post>,
    /// Moves arrays between GPUs; without it they go through the host.
    pub(super) nccl: Option<Arc<dyn Communicator>>,
}

/// Returns a rank's name in messages: `rank 1 of 4`.
pub(super) fn label(rank: usize, size: usize) -> String {
    format!("rank {rank} of {size}")
}

impl Link {
    /// Goes on if all ranks are about to do the same thing, which `what` describes.
    pub(super) fn agree(&self, what: &str, until: Instant) -> Result<(), Error> {
        let all = self.post.gather("meeting the other ranks", what.as_bytes(), until)?;
        match all.iter().position(|there| **there != *what.as_bytes()) {
            None => Ok(()),
            Some(other) => {
                let there = shown(&String::from_utf8_lossy(&all[other]));
                let why = format!("ranks disagree: `{what}` here, `{there}` on rank {other}");
                Err(self.error(why))
            }
        }
    }

    /// Returns what this rank has, if every rank has it. All or none, so that no rank waits for
    /// one that has given up.
    ///
    /// # Errors
    ///
    /// The reason of this rank, or of the first one without.
    pub(super) fn all_have<T>(
        &self,
        what: &str,
        mine: Result<T, String>,
        until: Instant,
    ) -> Result<Result<T, String>, Error> {
        let why = mine.as_ref().err().map_or("", String::as_str);
        let whys = self.post.gather(what, why.as_bytes(), until)?;
        let failed = whys.iter().enumerate().find(|(_, why)| !why.is_empty());
        Ok(match (mine, failed) {
            (Ok(_), Some((rank, why))) => {
                let why = shown(&String::from_utf8_lossy(why));
                Err(format!("{} reports: {why}", label(rank, self.size)))
            }
            (mine, _) => mine,
        })
    }

    /// Copies every rank's array to all ranks, in the order of ranks: `all` is as long as the
    /// arrays of all ranks together.
    pub(super) fn all_gather(
        &self,
        (mine, all): (&Buffer<u8>, &mut Buffer<u8>),
        through_host: bool,
        until: Instant,
    ) -> Result<(), Error> {
        if let Some(nccl) = self.nccl.as_deref().filter(|_| !through_host) {
            let transfer = Transfer::AllGather { mine: self.piece(mine)?, all: self.piece(all)? };
            return nccl.run(transfer, mine.len(), &pulse(&*self.post), until);
        }
        let parts = self.post.gather("all-gather", &mine.download()?, until)?;
        if parts.iter().any(|part| part.len() != mine.len()) {
            let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
            return Err(self.error(format!("all-gather: ranks have arrays of {lengths:?} bytes")));
        }
        self.fill("all-gather", all, &parts.concat())
    }

    /// Copies the array of the rank `from` to all ranks.
    pub(super) fn broadcast(
        &self,
        array: &mut Buffer<u8>,
        from: usize,
        through_host: bool,
        until: Instant,
    ) -> Result<(), Error> {
        if let Some(nccl) = self.nccl.as_deref().filter(|_| !through_host) {
            let transfer = Transfer::Broadcast { array: self.piece(array)?, root: from };
            return nccl.run(transfer, array.len(), &pulse(&*self.post), until);
        }
        let is_mine = from == self.number;
        let mine = if is_mine { array.download()? } else { Vec::new() };
        let parts = self.post.gather("broadcast", &mine, until)?;
        match parts.get(from) {
            _ if is_mine => Ok(()),
            Some(bytes) => self.fill("broadcast", array, bytes),
            None => Err(self.error(format!("broadcast: there is no rank {from}"))),
        }
    }

    /// Sends an array to one other rank, which receives it.
    pub(super) fn send(&self, array: &Buffer<u8>, to: usize, until: Instant) -> Result<(), Error> {
        let Some(nccl) = self.nccl.as_deref() else {
            return self.post.post(to, array.download()?, until);
        };
        // NCCL would not notice that the other array has another length.
        self.post.post(to, array.len().to_le_bytes().to_vec(), until)?;
        if array.is_empty() {
            return Ok(());
        }
        let transfer = Transfer::Send { array: self.piece(array)?, to };
        nccl.run(transfer, array.len(), &pulse(&*self.post), until)
    }

    /// Receives what another rank sends.
    pub(super) fn receive(
        &self,
        array: &mut Buffer<u8>,
        from: usize,
        until: Instant,
    ) -> Result<(), Error> {
        let Some(nccl) = self.nccl.as_deref() else {
            return self.fill("receive", array, &self.post.fetch(from, until)?);
        };
        let sent = self.post.fetch(from, until)?;
        self.must_fit("receive", array, sent.try_into().map_or(0, usize::from_le_bytes))?;
        if array.is_empty() {
            return Ok(());
        }
        let transfer = Transfer::Receive { array: self.piece(array)?, from };
        nccl.run(transfer, array.len(), &pulse(&*self.post), until)
    }

    /// Takes no further part; with a reason after a failure, which all others get.
    pub(super) fn leave(&self, why: Option<&str>) {
        if let (Some(why), Some(nccl)) = (why, &self.nccl) {
            nccl.abort(why);
        }
        self.post.leave(why);
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::device(self.label(), message)
    }

    pub(super) fn label(&self) -> String {
        label(self.number, self.size)
    }

    /// Makes the communicator of a rank that has this process for itself, with the id that rank 0
    /// makes and sends.
    ///
    /// # Errors
    ///
    /// If NCCL is missing, or ranks do not meet in time.
    pub(super) fn connect(&mut self, device: &Device, until: Instant) -> Result<(), Error> {
        let mine = if self.number == 0 { device.backend.nccl_id()? } else { Vec::new() };
        let ids = self.post.gather("sending NCCL's id", &mine, until)?;
        let id = ids.first().map_or(&[][..], |id| id);
        let (backend, pulse) = (device.backend.clone(), pulse(&*self.post));
        let nccl = backend.communicator(id, self.number, self.size, &pulse, until)?;
        drop(pulse);
        self.nccl = Some(nccl);
        Ok(())
    }

    fn piece<'a>(&self, array: &'a Buffer<u8>) -> Result<Piece<'a>, Error> {
        let none = || self.error("an array without elements is not exchanged");
        array.piece().ok_or_else(none)
    }

    /// Writes the bytes of another rank into an array of this one.
    fn fill(&self, what: &str, array: &mut Buffer<u8>, bytes: &[u8]) -> Result<(), Error> {
        self.must_fit(what, array, bytes.len())?;
        array.upload(bytes)
    }

    fn must_fit(&self, what: &str, array: &Buffer<u8>, there: usize) -> Result<(), Error> {
        let here = array.len();
        let why = || format!("{what}: there are {there} bytes for an array of {here}");
        if here == there { Ok(()) } else { Err(self.error(why())) }
    }
}

/// Returns a function that says why another rank has failed, and asks only after every pulse.
fn pulse(post: &dyn Post) -> impl Fn() -> Option<String> {
    let next = Cell::new(Instant::now() + PULSE);
    move || {
        let now = Instant::now();
        if now < next.get() {
            return None;
        }
        next.set(now + PULSE);
        post.failure(now + PULSE)
    }
}
