//! Turns of groups in one program that share devices.
//!
//! A pass by mail holds the multiprocessors of a device while it waits for another device. Two
//! passes would wait for each other without end if one came first on one device, and the other on
//! another device. So the ranks of one group queue their launches while no other group that has one
//! of their devices does, and each launch begins after the last pass of another group on its
//! device: all devices see the passes in one order. NCCL's kernels wait for another device as well,
//! and the driver waits for an idle device where memory that others reach is made or freed. Both
//! take turns with passes. Ranks in several processes have no such order.
//!
//! The turns also know which passes are under way on a device, so that the host may queue one
//! behind another. The tests are `groups_that_share_devices_take_turns` and those in `several_gpus`
//! in `tests/suite/group`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Group;
use super::rank::after;
use crate::Error;
use crate::device::backend::{Communicator, Transfer};
use crate::device::lock::lock;
use crate::device::stream::Event;
use crate::device::{Device, Stream};

/// The ranks of this process in one run of a group.
#[derive(Debug)]
pub(super) struct Party {
    number: u64,
    /// The device of each rank.
    devices: Vec<Device>,
}

/// The right of a rank to queue launches that wait for another device, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    party: Arc<Party>,
    stream: Stream,
    work: Work,
}

/// The work that takes turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Work {
    /// A pass by mail, which all ranks of the party have agreed to queue. Until the last of them
    /// has, a device waits for another one.
    Pass,
    /// Work that must not begin in between, and that is done when its turn ends: an operation of
    /// NCCL, or memory that other devices reach.
    Other,
}

/// A communicator whose operations take turns with passes by mail.
#[derive(Debug)]
pub(super) struct InTurn {
    party: Arc<Party>,
    device: Device,
    nccl: Arc<dyn Communicator>,
}

/// All parties that have a turn, or wait for one.
static TURNS: Mutex<Turns> = Mutex::new(Turns { parties: Vec::new(), passes: Vec::new() });
/// Signals that a party has gone.
static GONE: Condvar = Condvar::new();

struct Turns {
    /// In the order in which their first ranks came.
    parties: Vec<Waiting>,
    /// The passes by mail of each GPU.
    passes: Vec<Passes>,
}

/// The last two passes by mail on a GPU.
struct Passes {
    device: Device,
    /// The number of the last one's party.
    party: u64,
    /// The end of the pass before the last, and of the last.
    ends: [Arc<Event>; 2],
}

struct Waiting {
    party: Arc<Party>,
    /// The number of ranks that have not queued their part of a pass.
    to_come: usize,
    /// The number of turns for other work, and of those that wait for one.
    others: usize,
    other_waits: usize,
}

impl Party {
    pub(super) fn new(devices: &[Device]) -> Arc<Party> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Arc::new(Party { number: NUMBERS.fetch_add(1, Relaxed), devices: devices.to_vec() })
    }

    /// Waits until this rank may begin: for a pass, until no other party has a turn that has one of
    /// these devices; for other work, until none of them queues a pass. The stream then waits for
    /// earlier passes.
    ///
    /// # Errors
    ///
    /// If it takes longer than until `until`, or the device fails.
    pub(super) fn take_turn(
        self: &Arc<Party>,
        work: Work,
        stream: &Stream,
        until: Instant,
    ) -> Result<Turn, Error> {
        let mut turns = lock(&TURNS);
        turns.come(self, work);
        while turns.is_blocked(self, work) {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                turns.end(self, work, false);
                let why = "waiting for other groups of this program on the same devices: they were \
                           not done in time";
                return Err(Error::device(stream.device().label(), why));
            }
            turns = GONE.wait_timeout(turns, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        turns.begin(self, work);
        let turn = Turn { party: self.clone(), stream: stream.clone(), work };
        // Of one GPU's passes, each begins when the one before has ended, on any stream.
        let passes = turns.passes.iter().find(|passes| passes.device == *stream.device());
        let last = passes.map(|passes| passes.ends[1].clone());
        drop(turns);
        last.map_or(Ok(()), |last| stream.wait(&last)).map(|()| turn)
    }

    /// Ends its turn, and forgets its passes, which are done.
    pub(super) fn leave(&self) {
        let mut turns = lock(&TURNS);
        turns.parties.retain(|waiting| waiting.party.number != self.number);
        turns.passes.retain(|passes| passes.party != self.number);
        GONE.notify_all();
    }
}

impl Turns {
    fn come(&mut self, party: &Arc<Party>, work: Work) {
        if self.of(party).is_none() {
            let (to_come, others, other_waits) = (0, 0, 0);
            self.parties.push(Waiting { party: party.clone(), to_come, others, other_waits });
        }
        let Some(own) = self.of(party) else { return };
        match work {
            Work::Pass if own.to_come == 0 => own.to_come = party.devices.len(),
            Work::Pass => {}
            Work::Other => own.other_waits += 1,
        }
    }

    /// True if the party must wait. For a pass: while another party that came before has one of its
    /// devices, or other work is under way on one. For other work: while a party that came before
    /// queues a pass; but work of several ranks that has begun on one goes on.
    fn is_blocked(&self, party: &Party, work: Work) -> bool {
        let is_own = |other: &&Waiting| other.party.number == party.number;
        let shares = |other: &&Waiting| {
            other.party.devices.iter().any(|device| party.devices.contains(device))
        };
        let mut before = self.parties.iter().take_while(|other| !is_own(other)).filter(shares);
        match work {
            Work::Pass => {
                let mut others = self.parties.iter().filter(|other| !is_own(other));
                before.next().is_some() || others.any(|other| other.others > 0 && shares(&other))
            }
            Work::Other => {
                let has_begun = self.parties.iter().find(is_own).is_some_and(|own| own.others > 0);
                !has_begun && before.any(|other| other.to_come > 0)
            }
        }
    }

    fn begin(&mut self, party: &Party, work: Work) {
        let Some(own) = self.of(party).filter(|_| work == Work::Other) else { return };
        own.other_waits -= 1;
        own.others += 1;
    }

    /// Ends a turn, or the wait for one.
    fn end(&mut self, party: &Party, work: Work, has_begun: bool) {
        if let Some(own) = self.of(party) {
            let count = match work {
                Work::Pass => &mut own.to_come,
                Work::Other if has_begun => &mut own.others,
                Work::Other => &mut own.other_waits,
            };
            *count = count.saturating_sub(1);
        }
        let has_work = |one: &Waiting| one.to_come + one.others + one.other_waits > 0;
        self.parties.retain(has_work);
        GONE.notify_all();
    }

    fn of(&mut self, party: &Party) -> Option<&mut Waiting> {
        self.parties.iter_mut().find(|waiting| waiting.party.number == party.number)
    }

    /// Marks the end of the party's pass on the stream's device.
    fn mark(&mut self, party: &Party, stream: &Stream) -> Result<(), Error> {
        let device = stream.device();
        if device.is_simt() {
            return Ok(());
        }
        let place = self.passes.iter().position(|passes| passes.device == *device);
        let passes = match place {
            Some(place) => &mut self.passes[place],
            None => {
                let ends = [Arc::new(device.event()?), Arc::new(device.event()?)];
                self.passes.push(Passes { device: device.clone(), party: party.number, ends });
                self.passes.last_mut().expect("it has one now")
            }
        };
        passes.party = party.number;
        passes.ends.swap(0, 1);
        passes.ends[1].record(stream)
    }
}

/// Waits until the device has at most one pass by mail before it.
///
/// # Errors
///
/// [`Error::Device`] if the device fails.
pub(super) fn wait_for_the_one_before_the_last(device: &Device) -> Result<(), Error> {
    let of_device = |passes: &&Passes| passes.device == *device;
    let end = lock(&TURNS).passes.iter().find(of_device).map(|passes| passes.ends[0].clone());
    end.map_or(Ok(()), |end| end.synchronize())
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut turns = lock(&TURNS);
        if self.work == Work::Pass {
            // A device that fails here fails in the next call as well, which reports it.
            drop(turns.mark(&self.party, &self.stream));
        }
        turns.end(&self.party, self.work, true);
    }
}

impl InTurn {
    /// Returns the communicator of the party's rank on this device.
    pub(super) fn of(
        party: &Arc<Party>,
        device: &Device,
        nccl: Arc<dyn Communicator>,
    ) -> Arc<dyn Communicator> {
        Arc::new(InTurn { party: party.clone(), device: device.clone(), nccl })
    }
}

impl Communicator for InTurn {
    fn run(
        &self,
        transfer: Transfer,
        bytes: usize,
        is_off: &dyn Fn() -> Option<String>,
        until: Instant,
    ) -> Result<(), Error> {
        let _turn = self.party.take_turn(Work::Other, &self.device.stream(), until)?;
        self.nccl.run(transfer, bytes, is_off, until)
    }

    fn abort(&self, why: &str) {
        // NCCL frees memory that other GPUs reach.
        let until = after(Group::DEADLINE);
        let _turn = self.party.take_turn(Work::Other, &self.device.stream(), until);
        self.nccl.abort(why);
    }
}
