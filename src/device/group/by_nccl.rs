//! Arrays on their way from GPU to GPU, by NCCL.
//!
//! Ranks tell each other by the host what they are about to do, which also says when one has
//! failed: NCCL itself would wait for ever.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::Group;
use super::exchange::{Exchange, Post};
use super::rank::after;
use crate::Error;
use crate::device::argument::Slot;
use crate::device::buffer::{Allocation, Place};
use crate::device::cuda::{Communicator, GpuMemory, UniqueId};
use crate::device::lock::lock;
use crate::device::{Backend, Buffer, Device};

/// How often ranks that wait for each other ask whether one has failed.
const PULSE: Duration = Duration::from_millis(100);

/// An exchange between GPUs.
#[derive(Debug)]
pub(super) struct ByNccl {
    /// What the rank is called in messages.
    label: String,
    communicator: Arc<Communicator>,
    post: Box<dyn Post>,
}

impl ByNccl {
    pub(super) fn new(
        label: String,
        communicator: Arc<Communicator>,
        post: Box<dyn Post>,
    ) -> ByNccl {
        ByNccl { label, communicator, post }
    }

    /// Where an array lies.
    fn memory(&self, array: &Buffer<u8>, write: bool) -> Result<(Arc<Allocation>, u64), Error> {
        match array.slot(write) {
            Slot::Pointer { memory, start, .. } => Ok((memory, start)),
            _ => Err(Error::device(&self.label, "an array without elements is not exchanged")),
        }
    }

    fn on_gpu<'a>(&self, memory: &'a Allocation) -> Result<&'a GpuMemory, Error> {
        match &memory.place {
            Place::Cuda(memory) => Ok(memory),
            _ => Err(Error::device(&self.label, "the array is not on this rank's GPU")),
        }
    }
}

/// An answer to whether another rank has failed, which asks only now and then.
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

/// The communicators of ranks in this program, each with a GPU of its own.
///
/// # Errors
///
/// If there is no NCCL, or ranks do not meet in time.
pub(super) fn communicators(
    devices: &[Device],
    deadline: Duration,
) -> Result<Vec<Arc<Communicator>>, Error> {
    let id = UniqueId::new()?;
    let failed = Mutex::new(None);
    let met = Group::through_host(devices)?.with_deadline(deadline).run(|rank| {
        let at = (rank.number(), rank.size());
        let is_off = || lock(&failed).clone();
        let met = communicator(rank.device(), &id, at, &is_off, after(deadline));
        met.inspect_err(|error| *lock(&failed) = Some(error.to_string()))
    })?;
    Ok(met.into_iter().map(Arc::new).collect())
}

/// The communicator of a rank that has this process for itself, with the id that rank 0 makes and
/// tells.
///
/// # Errors
///
/// As for [`communicators`].
pub(super) fn communicator_of_process(
    device: &Device,
    (rank, size): (usize, usize),
    post: &dyn Post,
    until: Instant,
) -> Result<Communicator, Error> {
    let mine = match rank {
        0 => UniqueId::new()?.bytes().to_vec(),
        _ => Vec::new(),
    };
    let told = post.gather("telling NCCL's id", mine, until)?;
    let id = told.first().and_then(|bytes| UniqueId::from_bytes(bytes));
    let id = id.ok_or_else(|| Error::device("NCCL", "what rank 0 told is no id of NCCL's"))?;
    communicator(device, &id, (rank, size), &pulse(post), until)
}

fn communicator(
    device: &Device,
    id: &UniqueId,
    (rank, size): (usize, usize),
    is_off: &dyn Fn() -> Option<String>,
    until: Instant,
) -> Result<Communicator, Error> {
    match &device.backend {
        Backend::Cuda(gpu) => Communicator::new(gpu, id, rank, size, is_off, until),
        Backend::Simt(_) => Err(Error::device(device.label(), "NCCL takes GPUs alone")),
    }
}

impl Exchange for ByNccl {
    fn all_gather(
        &self,
        mine: &Buffer<u8>,
        all: &mut Buffer<u8>,
        until: Instant,
    ) -> Result<(), Error> {
        let (source, from) = self.memory(mine, false)?;
        let (target, to) = self.memory(all, true)?;
        let (source, target) = (self.on_gpu(&source)?, self.on_gpu(&target)?);
        let (is_off, len) = (pulse(&*self.post), mine.len());
        self.communicator.all_gather((source, from), (target, to), len, &is_off, until)
    }

    fn broadcast(
        &self,
        array: &mut Buffer<u8>,
        _is_mine: bool,
        from: usize,
        until: Instant,
    ) -> Result<(), Error> {
        let (memory, start) = self.memory(array, true)?;
        let (is_off, len) = (pulse(&*self.post), array.len());
        self.communicator.broadcast((self.on_gpu(&memory)?, start), len, from, &is_off, until)
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
        let (memory, start) = self.memory(array, false)?;
        let (is_off, len) = (pulse(&*self.post), array.len());
        self.communicator.send((self.on_gpu(&memory)?, start), len, to, &is_off, until)
    }

    fn receive(
        &self,
        array: &mut Buffer<u8>,
        from: usize,
        agreed: bool,
        until: Instant,
    ) -> Result<(), Error> {
        if !agreed {
            let told = self.post.fetch(from, until)?;
            if told != array.len().to_le_bytes() {
                let there = told.try_into().map_or(0, usize::from_le_bytes);
                let message =
                    format!("receive: there are {there} bytes for an array of {}", array.len());
                return Err(Error::device(&self.label, message));
            }
        }
        if array.is_empty() {
            return Ok(());
        }
        let (memory, start) = self.memory(array, true)?;
        let (is_off, len) = (pulse(&*self.post), array.len());
        self.communicator.receive((self.on_gpu(&memory)?, start), len, from, &is_off, until)
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
