//! A communicator: one rank's side of it.
//!
//! A call that NCCL queues on the GPU ends when every rank has made it. So whoever waits looks at
//! the clock, and at whether another rank has failed, and aborts the communicator if either is the
//! case: afterwards it returns the first failure for every call. The tests are
//! `tests/suite/group/nccl`, with an NCCL that fails on purpose, and `several_gpus` beside it.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::handles::RawEvent;
use super::memory::GpuMemory;
use super::nccl::{self, BYTES, Comm, Config, Functions, ID_BYTES, RawId, Status, failure};
use super::sys::CUstream;
use super::{Gpu, error};
use crate::Error;
use crate::device::backend::{Communicator, Piece, Transfer};
use crate::device::lock::lock;

/// The time in which a communicator must be taken down before it is aborted.
const FAREWELL: Duration = Duration::from_secs(10);
/// The time to spin while waiting. Later looks have pauses between them.
const SPIN: Duration = Duration::from_millis(2);
const PAUSE: Duration = Duration::from_micros(100);

/// One rank's side of a communicator, on a GPU.
pub(super) struct GpuCommunicator {
    gpu: Arc<Gpu>,
    functions: &'static Functions,
    state: Mutex<State>,
}

/// The state of a communicator. Callers of NCCL lock it.
struct State {
    /// The place where NCCL writes the handle: before `ncclCommInitRankConfig` returns, and once
    /// more from another thread when the ranks have met, which may be after this has been dropped.
    /// So it is kept for good.
    place: &'static AtomicPtr<c_void>,
    /// True once the handle has been given back.
    is_gone: bool,
    /// Why it cannot be used any more.
    failed: Option<String>,
}

impl State {
    /// Returns the handle, or null. Only the thread that holds the lock uses it. NCCL ties it to
    /// the GPU that was current when it was made, and to no thread.
    fn handle(&self) -> Comm {
        if self.is_gone { ptr::null_mut() } else { self.place.load(Acquire) }
    }

    fn take(&mut self) -> Comm {
        let handle = self.handle();
        self.is_gone = true;
        handle
    }
}

/// Makes an id for a new communicator.
///
/// # Errors
///
/// If NCCL is missing, or fails.
pub(super) fn new_id() -> Result<Vec<u8>, Error> {
    let functions = nccl::functions()?;
    let mut id = RawId([0; ID_BYTES]);
    // SAFETY: `id` may be written.
    let status = unsafe { (functions.unique_id)(&mut id) };
    match status {
        Status::SUCCESS => Ok(id.0.to_vec()),
        status => Err(failure(format!("making an id failed: {}", functions.words(status)))),
    }
}

/// Converts a rank for NCCL.
fn number(rank: usize) -> Result<c_int, Error> {
    c_int::try_from(rank).map_err(|_| failure(format!("there is no rank {rank}")))
}

/// Returns the memory of a piece, and the address of its first byte.
fn on_gpu<'a>((memory, offset): Piece<'a>) -> Result<(&'a GpuMemory, u64), Error> {
    let on_gpu = (memory as &dyn Any).downcast_ref::<GpuMemory>();
    let on_gpu = on_gpu.ok_or_else(|| failure("the array is not on this rank's GPU"))?;
    Ok((on_gpu, memory.address() + offset))
}

impl GpuCommunicator {
    /// Meets the other ranks; all of them call this. `is_off` returns why another rank has failed.
    ///
    /// # Errors
    ///
    /// If they do not all come before `until`, or NCCL fails.
    pub(super) fn new(
        gpu: Arc<Gpu>,
        id: &[u8],
        rank: usize,
        size: usize,
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
    ) -> Result<GpuCommunicator, Error> {
        let id = id
            .try_into()
            .map_err(|_| failure("the id that rank 0 sent has another length than NCCL's"))?;
        let functions = nccl::functions()?;
        let (rank, size) = (number(rank)?, number(size)?);
        let mut config = Config::unblocking();
        let place: &AtomicPtr<_> = Box::leak(Box::new(AtomicPtr::new(ptr::null_mut())));
        gpu.check("meeting the other ranks", gpu.context.bind())?;
        // SAFETY: (1) the place may be written at any time from now on, as it is never freed; (2)
        // the configuration is one of NCCL 2.14, and is copied; (3) the context of the GPU is
        // current, and the CUDA runtime inside of NCCL takes the current one.
        let begun = unsafe { (functions.init)(place.as_ptr(), size, RawId(id), rank, &mut config) };
        let state = Mutex::new(State { place, is_gone: false, failed: None });
        let communicator = GpuCommunicator { gpu, functions, state };
        let mut state = lock(&communicator.state);
        let met = communicator.settle(&state, begun, is_off, until);
        let met =
            met.map_err(|why| communicator.give_up(&mut state, "meeting the other ranks", &why));
        drop(state);
        met.map(|()| communicator)
    }

    /// Queues an operation and waits for it.
    fn queue(
        &self,
        operation: &str,
        memories: &[(&GpuMemory, bool)],
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
        work: impl FnOnce(Comm, CUstream) -> Status,
    ) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if let Some(why) = &state.failed {
            return Err(failure(format!("{operation}: {why}")));
        }
        let done = self.gpu.check(operation, RawEvent::new(&self.gpu.context, false))?;
        let mut begun = Ok(());
        self.gpu.queue(&self.gpu.home, operation, memories, None, |stream| {
            begun = self.settle(&state, work(state.handle(), stream.raw), is_off, until);
            done.record(stream)
        })?;
        let outcome = begun.and_then(|()| {
            self.wait(until, || match done.is_reached() {
                Ok(true) => Ok(true),
                Ok(false) => match (self.asked(&state)?, is_off()) {
                    (_, Some(why)) => Err(why),
                    (Status::SUCCESS | Status::IN_PROGRESS, None) => Ok(false),
                    (status, None) => Err(self.functions.words(status)),
                },
                Err(failure) => Err(error::describe(&failure)),
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

    /// Returns the state of the communicator.
    fn asked(&self, state: &State) -> Result<Status, String> {
        let handle = state.handle();
        if handle.is_null() {
            return Ok(Status::IN_PROGRESS);
        }
        let mut now = Status::SUCCESS;
        // SAFETY: (1) the communicator is live; (2) `now` may be written, and any number is valid.
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
            if now - start > SPIN { thread::sleep(PAUSE) } else { thread::yield_now() }
        }
        Ok(())
    }

    /// Aborts the communicator.
    fn give_up(&self, state: &mut State, operation: &str, why: &str) -> Error {
        let handle = state.take();
        let sentence = format!("{operation} failed: {why}");
        if !handle.is_null() && self.gpu.context.bind().is_ok() {
            // SAFETY: (1) the communicator is live, and not used again; (2) its GPU is current.
            // Its result only says whether the communicator had gone already.
            let _ = unsafe { (self.functions.abort)(handle) };
        }
        state.failed.get_or_insert_with(|| sentence.clone());
        failure(sentence)
    }
}

impl Communicator for GpuCommunicator {
    fn run(
        &self,
        transfer: Transfer,
        bytes: usize,
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
    ) -> Result<(), Error> {
        let Functions { all_gather, broadcast, send, receive, .. } = *self.functions;
        // SAFETY, for each: (1) the communicator is live; (2) the memories are of its GPU, which is
        // current, and hold that many bytes from there, `all` as many for each rank: the caller has
        // checked it; (3) they are freed only behind this work: `Gpu::queue` ensures it.
        match transfer {
            Transfer::AllGather { mine, all } => {
                let ((mine, from), (all, to)) = (on_gpu(mine)?, on_gpu(all)?);
                let memories = [(mine, false), (all, true)];
                self.queue("all-gather", &memories, is_off, until, |comm, stream| {
                    let (from, to) = (from as *const c_void, to as *mut c_void);
                    // SAFETY: as above; (4) all ranks call this with the same number, as they have
                    // agreed.
                    unsafe { all_gather(from, to, bytes, BYTES, comm, stream) }
                })
            }
            Transfer::Broadcast { array, root } => {
                let ((array, at), root) = (on_gpu(array)?, number(root)?);
                self.queue("broadcast", &[(array, true)], is_off, until, |comm, stream| {
                    let (from, to) = (at as *const c_void, at as *mut c_void);
                    // SAFETY: as for an all-gather; (5) if both pointers are the same, NCCL works
                    // in place.
                    unsafe { broadcast(from, to, bytes, BYTES, root, comm, stream) }
                })
            }
            Transfer::Send { array, to } => {
                let ((array, at), to) = (on_gpu(array)?, number(to)?);
                self.queue("send", &[(array, false)], is_off, until, |comm, stream| {
                    // SAFETY: as above; (4) the other rank receives, or this ends at the deadline.
                    unsafe { send(at as *const c_void, bytes, BYTES, to, comm, stream) }
                })
            }
            Transfer::Receive { array, from } => {
                let ((array, at), from) = (on_gpu(array)?, number(from)?);
                self.queue("receive", &[(array, true)], is_off, until, |comm, stream| {
                    // SAFETY: as above; (4) the other rank sends, or this ends at the deadline.
                    unsafe { receive(at as *mut c_void, bytes, BYTES, from, comm, stream) }
                })
            }
        }
    }

    fn abort(&self, why: &str) {
        let mut state = lock(&self.state);
        if !state.handle().is_null() {
            self.give_up(&mut state, "ending the group", why);
        }
    }
}

impl Drop for GpuCommunicator {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        let handle = state.handle();
        if handle.is_null() || self.gpu.context.bind().is_err() {
            return;
        }
        // SAFETY: (1) the communicator is live; (2) its GPU is current; (3) only the calls below
        // use it from now on.
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

impl fmt::Debug for GpuCommunicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "communicator on {}", self.gpu.label)
    }
}
