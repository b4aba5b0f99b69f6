//! A communicator: one rank's side of it.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::library::{self, BYTES, Config, Functions, Handle, ID_BYTES, RawId, Status, failure};
use crate::Error;
use crate::device::cuda::handles::RawEvent;
use crate::device::cuda::{Gpu, GpuMemory};
use crate::device::lock::lock;

/// By what the ranks of a communicator find each other: made by one of them, and told to the
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UniqueId([u8; ID_BYTES]);

/// How long a communicator may take to be taken down, before it is aborted.
const FAREWELL: Duration = Duration::from_secs(10);
/// For so long it is asked again at once; then there are pauses.
const EAGER: Duration = Duration::from_millis(2);
const PAUSE: Duration = Duration::from_micros(100);

/// One rank's side of a communicator, on a GPU.
pub(crate) struct Communicator {
    gpu: Arc<Gpu>,
    functions: &'static Functions,
    state: Mutex<State>,
}

/// Locked by whoever calls NCCL.
struct State {
    /// Where NCCL writes the handle: before `ncclCommInitRankConfig` returns, and once more from a
    /// thread of its own when the ranks have met, which may be after this has been dropped. So it
    /// is kept for good.
    place: &'static AtomicPtr<c_void>,
    /// Once it has been given back, there is nothing in the place.
    is_gone: bool,
    /// Why it is of no use any more.
    failed: Option<String>,
}

impl State {
    /// Null if there is none. It is used by one thread at a time, which holds the lock; NCCL ties
    /// it to no thread, but to the GPU that was current when it was made.
    fn handle(&self) -> Handle {
        if self.is_gone { ptr::null_mut() } else { self.place.load(Acquire) }
    }

    fn take(&mut self) -> Handle {
        let handle = self.handle();
        self.is_gone = true;
        handle
    }
}

impl UniqueId {
    /// A new one.
    ///
    /// # Errors
    ///
    /// If there is no NCCL, or it fails.
    pub(crate) fn new() -> Result<UniqueId, Error> {
        let functions = library::functions()?;
        let mut id = RawId([0; ID_BYTES]);
        // SAFETY: `id` may be written.
        let status = unsafe { (functions.unique_id)(&mut id) };
        match status {
            Status::SUCCESS => Ok(UniqueId(id.0)),
            status => Err(failure(format!("making an id failed: {}", functions.words(status)))),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// From what another rank told.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<UniqueId> {
        bytes.try_into().ok().map(UniqueId)
    }
}

impl Communicator {
    /// Meets the other ranks; all of them call this. `is_off` is asked from time to time whether
    /// another rank has failed, and why.
    ///
    /// # Errors
    ///
    /// If they do not all come before `until`, or NCCL fails.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        id: &UniqueId,
        rank: usize,
        size: usize,
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
    ) -> Result<Communicator, Error> {
        let functions = library::functions()?;
        let number = |number: usize| {
            c_int::try_from(number).map_err(|_| failure(format!("there is no rank {number}")))
        };
        let (rank, size) = (number(rank)?, number(size)?);
        let mut config = Config::unblocking();
        let place: &AtomicPtr<_> = Box::leak(Box::new(AtomicPtr::new(ptr::null_mut())));
        gpu.check("meeting the other ranks", gpu.context.bind())?;
        // SAFETY: (1) the place may be written at any time from now on, as it lives for ever; (2)
        // the configuration is one of NCCL 2.14, and is copied; (3) the context of the GPU is
        // current, which is the one that the CUDA runtime inside NCCL takes.
        let begun =
            unsafe { (functions.init)(place.as_ptr(), size, RawId(id.0), rank, &mut config) };
        let state = Mutex::new(State { place, is_gone: false, failed: None });
        let communicator = Communicator { gpu: gpu.clone(), functions, state };
        let mut state = lock(&communicator.state);
        let met = communicator.settle(&state, begun, is_off, until);
        let met =
            met.map_err(|why| communicator.give_up(&mut state, "meeting the other ranks", &why));
        drop(state);
        met.map(|()| communicator)
    }

    /// The bytes of every rank, in all ranks and in their order. Over when this returns.
    pub(crate) fn all_gather(
        &self,
        (mine, from): (&GpuMemory, u64),
        (all, to): (&GpuMemory, u64),
        bytes: usize,
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
    ) -> Result<(), Error> {
        let gather = self.functions.all_gather;
        let (source, target) = (mine.address(from), all.address(to));
        let memories = [(mine, false), (all, true)];
        self.run("all-gather", &memories, is_off, until, |handle, stream| {
            // SAFETY: (1) the communicator is live; (2) the memories are of its GPU, which is
            // current, and hold that many bytes from there, `all` as many for each rank: the caller
            // has looked; (3) they are given back only behind this work: `queue` sees to it; (4)
            // all ranks call this with the same number, as they have agreed.
            unsafe {
                gather(source as *const c_void, target as *mut c_void, bytes, BYTES, handle, stream)
            }
        })
    }

    /// The bytes of the rank `root`, in all ranks. Over when this returns.
    pub(crate) fn broadcast(
        &self,
        (array, at): (&GpuMemory, u64),
        bytes: usize,
        root: usize,
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
    ) -> Result<(), Error> {
        let broadcast = self.functions.broadcast;
        let place = array.address(at);
        let root =
            c_int::try_from(root).map_err(|_| failure(format!("there is no rank {root}")))?;
        self.run("broadcast", &[(array, true)], is_off, until, |handle, stream| {
            // SAFETY: as in `all_gather`; (5) where both pointers are the same, it works in place.
            unsafe {
                broadcast(
                    place as *const c_void,
                    place as *mut c_void,
                    bytes,
                    BYTES,
                    root,
                    handle,
                    stream,
                )
            }
        })
    }

    /// The bytes to the rank `to`, which receives as many. Over when this returns.
    pub(crate) fn send(
        &self,
        (array, at): (&GpuMemory, u64),
        bytes: usize,
        to: usize,
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
    ) -> Result<(), Error> {
        let (send, place) = (self.functions.send, array.address(at));
        let to = c_int::try_from(to).map_err(|_| failure(format!("there is no rank {to}")))?;
        self.run("send", &[(array, false)], is_off, until, |handle, stream| {
            // SAFETY: as in `all_gather`, but for (4): the other rank receives; if it does not,
            // this ends at the deadline.
            unsafe { send(place as *const c_void, bytes, BYTES, to, handle, stream) }
        })
    }

    /// The bytes that the rank `from` sends. Over when this returns.
    pub(crate) fn receive(
        &self,
        (array, at): (&GpuMemory, u64),
        bytes: usize,
        from: usize,
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
    ) -> Result<(), Error> {
        let (receive, place) = (self.functions.receive, array.address(at));
        let from =
            c_int::try_from(from).map_err(|_| failure(format!("there is no rank {from}")))?;
        self.run("receive", &[(array, true)], is_off, until, |handle, stream| {
            // SAFETY: as in `send`.
            unsafe { receive(place as *mut c_void, bytes, BYTES, from, handle, stream) }
        })
    }

    /// Ends whatever is under way, here and by that in all ranks.
    pub(crate) fn abort(&self, why: &str) {
        let mut state = lock(&self.state);
        if !state.handle().is_null() {
            self.give_up(&mut state, "ending the group", why);
        }
    }

    /// Queues an operation and waits for it.
    fn run(
        &self,
        operation: &str,
        memories: &[(&GpuMemory, bool)],
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
        work: impl FnOnce(Handle, cudarc::driver::sys::CUstream) -> Status,
    ) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if let Some(why) = &state.failed {
            return Err(failure(format!("{operation}: {why}")));
        }
        let done = self.gpu.check(operation, RawEvent::new(&self.gpu.context, false))?;
        let mut begun = Ok(());
        let stream = self.gpu.default_stream();
        self.gpu.queue(&stream, operation, memories, None, |stream| {
            begun = self.settle(&state, work(state.handle(), stream.stream.raw()), is_off, until);
            done.record(&stream.stream)
        })?;
        let outcome = begun.and_then(|()| {
            self.wait(until, || match done.is_reached() {
                Ok(true) => Ok(true),
                Ok(false) => match (self.asked(&state)?, is_off()) {
                    (_, Some(why)) => Err(why),
                    (Status::SUCCESS | Status::IN_PROGRESS, None) => Ok(false),
                    (status, None) => Err(self.functions.words(status)),
                },
                Err(failure) => Err(crate::device::cuda::error::describe(&failure)),
            })
        });
        outcome.map_err(|why| self.give_up(&mut state, operation, &why))
    }

    /// Waits until a call that has returned `status` is done.
    fn settle(
        &self,
        state: &State,
        status: Status,
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
    ) -> Result<(), String> {
        match status {
            Status::SUCCESS => return Ok(()),
            Status::IN_PROGRESS => {}
            status => return Err(self.functions.words(status)),
        }
        self.wait(until, || match self.asked(state)? {
            Status::SUCCESS => Ok(true),
            Status::IN_PROGRESS => is_off().map_or(Ok(false), Err),
            status => Err(self.functions.words(status)),
        })
    }

    /// How it is with the communicator.
    fn asked(&self, state: &State) -> Result<Status, String> {
        let handle = state.handle();
        if handle.is_null() {
            return Ok(Status::IN_PROGRESS);
        }
        let mut now = Status::SUCCESS;
        // SAFETY: (1) the communicator is live; (2) `now` may be written, and any number is one.
        let asked = unsafe { (self.functions.state)(handle, &mut now) };
        if asked == Status::SUCCESS { Ok(now) } else { Err(self.functions.words(asked)) }
    }

    /// Waits until `is_done`, or an error, or the time is over.
    fn wait(
        &self,
        until: Instant,
        mut is_done: impl FnMut() -> Result<bool, String>,
    ) -> Result<(), String> {
        let start = Instant::now();
        while !is_done()? {
            let now = Instant::now();
            if now >= until {
                return Err(String::from("not all ranks came in time"));
            }
            if now - start > EAGER { thread::sleep(PAUSE) } else { thread::yield_now() }
        }
        Ok(())
    }

    /// Aborts the communicator.
    fn give_up(&self, state: &mut State, operation: &str, why: &str) -> Error {
        let handle = state.take();
        let sentence = format!("{operation} failed: {why}");
        if !handle.is_null() && self.gpu.context.bind().is_ok() {
            // SAFETY: (1) the communicator is live, and not used again; (2) its GPU is current.
            // What it returns says only whether it had gone already.
            let _ = unsafe { (self.functions.abort)(handle) };
        }
        state.failed.get_or_insert_with(|| sentence.clone());
        failure(sentence)
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        let handle = state.handle();
        if handle.is_null() || self.gpu.context.bind().is_err() {
            return;
        }
        // SAFETY: (1) the communicator is live; (2) its GPU is current; (3) nothing else is called
        // on it but what follows.
        let begun = unsafe { (self.functions.finalize)(handle) };
        match self.settle(&state, begun, &|| None, Instant::now() + FAREWELL) {
            Ok(()) => {
                let handle = state.take();
                // SAFETY: as above; it is finalized, and not used again.
                let _ = unsafe { (self.functions.destroy)(handle) };
            }
            Err(why) => drop(self.give_up(&mut state, "taking the communicator down", &why)),
        }
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "communicator on {}", self.gpu.label())
    }
}
