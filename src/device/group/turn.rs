//! Turns of groups in one program that share devices.
//!
//! A pass by mail holds the multiprocessors of a device while it waits for another device. Two
//! passes would wait for each other without end if one came first on one device, and the other on
//! another device. So the ranks of one group queue their launches while no other group that has one
//! of their devices does, and each launch begins after the last pass of another group on its
//! device: all devices see the passes in one order. Ranks in several processes have no such order.
//! The turns also know which passes are under way on a device, so that the host may queue one behind
//! another. The tests are `groups_that_share_devices_take_turns` and those in `several_gpus` in
//! `tests/suite/group`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Error;
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

/// The right of a rank to queue passes by mail on a stream, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    party: Arc<Party>,
    stream: Stream,
}

/// All parties that queue passes by mail, or wait until they may.
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
    /// The number of ranks that have queued their launches.
    done: usize,
}

impl Party {
    pub(super) fn new(devices: &[Device]) -> Arc<Party> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Arc::new(Party { number: NUMBERS.fetch_add(1, Relaxed), devices: devices.to_vec() })
    }

    /// Waits until no other party has a turn that has one of these devices, and lets the stream
    /// wait for the passes of other parties. All ranks of the party have agreed to come.
    ///
    /// # Errors
    ///
    /// If it takes longer than until `until`, or the device fails.
    pub(super) fn take_turn(
        self: &Arc<Party>,
        stream: &Stream,
        until: Instant,
    ) -> Result<Turn, Error> {
        let mut turns = lock(&TURNS);
        if !turns.parties.iter().any(|waiting| waiting.party.number == self.number) {
            turns.parties.push(Waiting { party: self.clone(), done: 0 });
        }
        while turns.is_blocked(self) {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                let why = "waiting for the passes by mail of other groups of this program on the \
                           same devices: they were not queued in time";
                return Err(Error::device(stream.device().label(), why));
            }
            turns = GONE.wait_timeout(turns, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        // Of one GPU's passes, each begins when the one before has ended, on any stream.
        if let Some(passes) = turns.passes.iter().find(|passes| passes.device == *stream.device()) {
            stream.wait(&passes.ends[1])?;
        }
        Ok(Turn { party: self.clone(), stream: stream.clone() })
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
    /// True if a party that came before this one has one of its devices.
    fn is_blocked(&self, party: &Party) -> bool {
        let before = self.parties.iter().take_while(|other| other.party.number != party.number);
        let mut devices = before.flat_map(|other| &other.party.devices);
        devices.any(|device| party.devices.contains(device))
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
        // A device that fails here fails in the next call as well, which reports it.
        drop(turns.mark(&self.party, &self.stream));
        let (number, ranks) = (self.party.number, self.party.devices.len());
        turns.parties.retain_mut(|waiting| {
            waiting.done += usize::from(waiting.party.number == number);
            waiting.done < ranks || waiting.party.number != number
        });
        GONE.notify_all();
    }
}
