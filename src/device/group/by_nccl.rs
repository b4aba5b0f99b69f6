//! Arrays on their way from GPU to GPU, by NCCL.
//!
//! Ranks agree through the host on what they are about to do, which also shows when one of them
//! has failed: NCCL itself would wait without end.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::exchange::{Exchange, Post};
use crate::Error;
use crate::device::backend::{Communicator, Piece, Transfer};
use crate::device::{Buffer, Device};

/// The time after which ranks that wait for each other ask again whether one has failed.
const PULSE: Duration = Duration::from_millis(100);

/// An exchange between GPUs.
#[derive(Debug)]
pub(super) struct ByNccl {
    /// The rank's name in messages.
    label: String,
    communicator: Arc<dyn Communicator>,
    post: Box<dyn Post>,
}

impl ByNccl {
    pub(super) fn new(
        label: String,
        communicator: Arc<dyn Communicator>,
        post: Box<dyn Post>,
    ) -> ByNccl {
        ByNccl { label, communicator, post }
    }

    /// Makes the transfer of an array's bytes.
    fn run(&self, transfer: Transfer, bytes: usize, until: Instant) -> Result<(), Error> {
        self.communicator.run(transfer, bytes, &pulse(&*self.post), until)
    }

    fn piece<'a>(&self, array: &'a Buffer<u8>) -> Result<Piece<'a>, Error> {
        array
            .piece()
            .ok_or_else(|| Error::device(&self.label, "an array without elements is not exchanged"))
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

/// Makes the communicator of a rank that has this process for itself, with the id that rank 0 makes
/// and sends.
///
/// # Errors
///
/// If NCCL is missing, or ranks do not meet in time.
pub(super) fn communicator_of_process(
    device: &Device,
    (rank, size): (usize, usize),
    post: &dyn Post,
    until: Instant,
) -> Result<Arc<dyn Communicator>, Error> {
    let mine = if rank == 0 { device.backend.nccl_id()? } else { Vec::new() };
    let ids = post.gather("sending NCCL's id", mine, until)?;
    let id = ids.first().map_or(&[][..], |id| id);
    device.backend.clone().communicator(id, rank, size, &pulse(post), until)
}

impl Exchange for ByNccl {
    fn all_gather(
        &self,
        mine: &Buffer<u8>,
        all: &mut Buffer<u8>,
        until: Instant,
    ) -> Result<(), Error> {
        let transfer = Transfer::AllGather { mine: self.piece(mine)?, all: self.piece(all)? };
        self.run(transfer, mine.len(), until)
    }

    fn broadcast(
        &self,
        array: &mut Buffer<u8>,
        _is_mine: bool,
        from: usize,
        until: Instant,
    ) -> Result<(), Error> {
        let transfer = Transfer::Broadcast { array: self.piece(array)?, root: from };
        self.run(transfer, array.len(), until)
    }

    fn send(
        &self,
        array: &Buffer<u8>,
        to: usize,
        agreed: bool,
        until: Instant,
    ) -> Result<(), Error> {
        if !agreed {
            // NCCL would not notice that the other array has another length.
            self.post.post(to, array.len().to_le_bytes().to_vec(), until)?;
        }
        if array.is_empty() {
            return Ok(());
        }
        self.run(Transfer::Send { array: self.piece(array)?, to }, array.len(), until)
    }

    fn receive(
        &self,
        array: &mut Buffer<u8>,
        from: usize,
        agreed: bool,
        until: Instant,
    ) -> Result<(), Error> {
        if !agreed {
            let sent = self.post.fetch(from, until)?;
            if sent != array.len().to_le_bytes() {
                let there = sent.try_into().map_or(0, usize::from_le_bytes);
                let message =
                    format!("receive: there are {there} bytes for an array of {}", array.len());
                return Err(Error::device(&self.label, message));
            }
        }
        if array.is_empty() {
            return Ok(());
        }
        self.run(Transfer::Receive { array: self.piece(array)?, from }, array.len(), until)
    }

    fn post(&self) -> &dyn Post {
        &*self.post
    }

    fn leave(&self, why: Option<&str>) {
        if let Some(why) = why {
            self.communicator.abort(why);
        }
        self.post.leave(why);
    }
}
