//! Ranks that are threads of one program, and meet in its memory.
//!
//! One lock guards what ranks exchange, and a condition variable wakes those that wait. A rank that
//! waits spins first, because the others mostly come within microseconds. A failure, or a rank that
//! leaves while others wait for it, wakes all of them with the reason. Rank 0 of a job of processes
//! leaves last, because the others meet in its memory. The tests are `tests/suite/group`, with
//! emulated devices.

use std::collections::{BTreeMap, VecDeque};
use std::hint;
use std::mem;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::link::{Post, label};
use crate::Error;
use crate::device::launch::Recorded;
use crate::device::lock::lock;
use crate::device::{Buffer, Launch, Launched};

/// The shortest time that a rank spins before it sleeps. Ranks mostly come within microseconds of
/// each other, and waking a thread takes longer than a pass over a short stretch.
const AT_LEAST: Duration = Duration::from_micros(50);

/// The number of times that a spinning rank looks for a change before it lets other threads run.
const SPINS: usize = 200;

/// The memory in which the ranks of one computation meet.
#[derive(Debug)]
pub(super) struct Meeting {
    size: usize,
    /// The time that a rank spins before it sleeps.
    awake: Duration,
    /// The times that rank 0 waits for the others to leave, if they are in other processes, which
    /// it answers: after a failure, and otherwise.
    farewell: Option<[Duration; 2]>,
    state: Mutex<State>,
    /// The number of changes of the state, which ranks that spin watch: they would contend for the
    /// lock otherwise.
    changes: AtomicU64,
    /// Wakes the ranks that sleep until a change.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Why the ranks cannot go on.
    failed: Option<String>,
    /// The ranks that take no further part.
    left: Vec<usize>,
    /// The rounds of bytes that all ranks put together and that some rank has not read yet, and the
    /// number of the first of them.
    rounds: VecDeque<Round>,
    first_round: u64,
    /// The arrays that ranks lend each other, by rank: only until all of them have looked.
    lent: BTreeMap<usize, Buffer<u8>>,
    /// Launches that are to run side by side, and their outcomes.
    launches: BTreeMap<usize, Recorded>,
    launched: BTreeMap<usize, Result<Launched, Error>>,
    /// Bytes that were sent and not received, by sender and receiver.
    letters: BTreeMap<(usize, usize), VecDeque<Vec<u8>>>,
}

#[derive(Debug)]
struct Round {
    parts: Vec<Option<Arc<[u8]>>>,
    unread: usize,
}

/// One rank's access to a meeting.
#[derive(Debug)]
pub(super) struct Seat {
    meeting: Arc<Meeting>,
    rank: usize,
    /// The number of rounds that it has taken part in.
    rounds: AtomicU64,
}

impl Meeting {
    /// Makes a seat for each of the ranks of this program.
    pub(super) fn of_threads(size: usize) -> Vec<Seat> {
        Meeting::seats(size, Duration::ZERO, None)
    }

    /// Makes a seat for each of the ranks, which spin for this time when they wait, or for a short
    /// time at least.
    pub(super) fn seats(
        size: usize,
        awake: Duration,
        farewell: Option<[Duration; 2]>,
    ) -> Vec<Seat> {
        let (awake, state, changed) = (awake.max(AT_LEAST), Mutex::default(), Condvar::new());
        let changes = AtomicU64::new(0);
        let meeting = Arc::new(Meeting { size, awake, farewell, state, changes, changed });
        let seat = |rank| Seat { meeting: meeting.clone(), rank, rounds: AtomicU64::default() };
        (0..size).map(seat).collect()
    }

    /// Lets all ranks that wait look at the state again, which has changed.
    fn notify(&self) {
        self.changes.fetch_add(1, Release);
        self.changed.notify_all();
    }

    /// Spins until the state changes, for some microseconds at most.
    fn spin(&self, seen: u64) {
        for _ in 0..SPINS {
            if self.changes.load(Acquire) != seen {
                return;
            }
            hint::spin_loop();
        }
        thread::yield_now();
    }

    /// Returns what was sent and not received, in a sentence.
    pub(super) fn unread(&self) -> Option<String> {
        let state = lock(&self.state);
        let mut unread = state.letters.iter().filter(|(_, letters)| !letters.is_empty());
        unread.next().map(|((from, to), letters)| {
            let count = letters.len();
            let arrays = if count == 1 { "an array" } else { "arrays" };
            format!("rank {to} has ended without receiving {arrays} that rank {from} has sent ({count} in all)")
        })
    }
}

impl State {
    /// Returns the round with this number, and begins it if necessary.
    fn round(&mut self, number: u64, size: usize) -> Option<&mut Round> {
        let index = usize::try_from(number.checked_sub(self.first_round)?).ok()?;
        while self.rounds.len() <= index {
            self.rounds.push_back(Round { parts: vec![None; size], unread: size });
        }
        self.rounds.get_mut(index)
    }

    /// Takes the bytes of a round if all ranks have put theirs, or returns the ranks that have not.
    fn take(&mut self, number: u64, size: usize) -> Result<Vec<Arc<[u8]>>, Vec<usize>> {
        let Some(round) = self.round(number, size) else { return Err(Vec::new()) };
        let parts: Vec<_> = round.parts.iter().flatten().cloned().collect();
        if parts.len() < size {
            let missing = (0..size).filter(|&rank| round.parts[rank].is_none());
            return Err(missing.collect());
        }
        round.unread -= 1;
        while self.rounds.front().is_some_and(|round| round.unread == 0) {
            self.rounds.pop_front();
            self.first_round += 1;
        }
        Ok(parts)
    }
}

impl Seat {
    /// The meeting that it belongs to.
    pub(super) fn meeting(&self) -> Arc<Meeting> {
        self.meeting.clone()
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::device(label(self.rank, self.meeting.size), message)
    }

    /// Waits until `ready` returns a value; until then it returns the missing ranks.
    ///
    /// # Errors
    ///
    /// If another rank has failed, if a missing rank has left, or if the time is over, which ends
    /// the others' waiting as well.
    fn wait<R>(
        &self,
        what: &str,
        until: Instant,
        mut ready: impl FnMut(&mut State) -> Result<R, Vec<usize>>,
    ) -> Result<R, Error> {
        let begun = Instant::now();
        let mut state = lock(&self.meeting.state);
        loop {
            // A complete round counts even if a rank has failed since, so that all ranks see the
            // same outcome.
            let missing = match ready(&mut state) {
                Ok(result) => return Ok(result),
                Err(missing) => missing,
            };
            if let Some(why) = &state.failed {
                return Err(self.error(format!("{what}: {why}")));
            }
            let gone = missing.iter().find(|rank| state.left.contains(rank));
            let left = until.saturating_duration_since(Instant::now());
            let why = match gone {
                Some(gone) => format!("rank {gone} has ended, and takes no part"),
                None if left.is_zero() => {
                    format!("{} did not come in time", named(&missing))
                }
                None if begun.elapsed() < self.meeting.awake => {
                    let seen = self.meeting.changes.load(Acquire);
                    drop(state);
                    self.meeting.spin(seen);
                    state = lock(&self.meeting.state);
                    continue;
                }
                None => {
                    let woken = self.meeting.changed.wait_timeout(state, left);
                    state = woken.unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
            };
            state.failed = Some(format!("rank {} failed: {what}: {why}", self.rank));
            self.meeting.notify();
            return Err(self.error(format!("{what}: {why}")));
        }
    }
}

impl Seat {
    /// Returns the arrays themselves of all ranks, in the order of ranks.
    pub(super) fn share(&self, mine: Buffer<u8>, until: Instant) -> Result<Vec<Buffer<u8>>, Error> {
        let what = "sharing arrays";
        lock(&self.meeting.state).lent.insert(self.rank, mine);
        self.gather(what, &[], until)?;
        let all: Result<_, _> =
            lock(&self.meeting.state).lent.values().map(|array| array.slice(..)).collect();
        // No rank replaces its array before all have looked.
        self.gather(what, &[], until)?;
        all
    }

    /// Runs the launches of all ranks side by side, on the thread of rank 0.
    pub(super) fn run_side_by_side(
        &self,
        launch: Recorded,
        until: Instant,
    ) -> Result<Launched, Error> {
        let what = "launching side by side";
        lock(&self.meeting.state).launches.insert(self.rank, launch);
        self.gather(what, &[], until)?;
        if self.rank == 0 {
            let recorded = mem::take(&mut lock(&self.meeting.state).launches);
            let launches: Vec<_> = recorded.values().map(Recorded::launch).collect();
            let launched = Launch::run_side_by_side(&launches);
            let each: Vec<_> = match launched {
                Ok(launched) => launched.into_iter().map(Ok).collect(),
                Err(error) => recorded.keys().map(|_| Err(error.clone())).collect(),
            };
            lock(&self.meeting.state).launched = recorded.into_keys().zip(each).collect();
        }
        self.gather(what, &[], until)?;
        let launched = lock(&self.meeting.state).launched.remove(&self.rank);
        launched.unwrap_or_else(|| Err(self.error(format!("{what}: it was not launched"))))
    }
}

impl Post for Seat {
    fn gather(&self, what: &str, mine: &[u8], until: Instant) -> Result<Vec<Arc<[u8]>>, Error> {
        let number = self.rounds.fetch_add(1, Relaxed);
        let size = self.meeting.size;
        if let Some(round) = lock(&self.meeting.state).round(number, size) {
            round.parts[self.rank] = Some(mine.into());
        }
        self.meeting.notify();
        self.wait(what, until, |state| state.take(number, size))
    }

    fn post(&self, to: usize, letter: Vec<u8>, until: Instant) -> Result<(), Error> {
        let mut letter = Some(letter);
        // The sender does not wait for the receiver: the bytes stay here until then.
        self.wait("send", until, |state| {
            if state.failed.is_some() || state.left.contains(&to) {
                return Err(vec![to]);
            }
            state.letters.entry((self.rank, to)).or_default().extend(letter.take());
            Ok(())
        })?;
        self.meeting.notify();
        Ok(())
    }

    fn fetch(&self, from: usize, until: Instant) -> Result<Vec<u8>, Error> {
        self.wait("receive", until, |state| {
            let letters = state.letters.get_mut(&(from, self.rank));
            letters.and_then(VecDeque::pop_front).ok_or_else(|| vec![from])
        })
    }

    fn seat(&self) -> Option<&Seat> {
        self.meeting.farewell.is_none().then_some(self)
    }

    fn failure(&self, _until: Instant) -> Option<String> {
        lock(&self.meeting.state).failed.clone()
    }

    fn leave(&self, why: Option<&str>) {
        let mut state = lock(&self.meeting.state);
        if state.left.contains(&self.rank) {
            return;
        }
        state.left.push(self.rank);
        if let Some(why) = why {
            state.failed.get_or_insert_with(|| format!("rank {} failed: {why}", self.rank));
        }
        self.meeting.notify();
        if let (0, Some([after_failure, usual])) = (self.rank, self.meeting.farewell) {
            let farewell = if state.failed.is_some() { after_failure } else { usual };
            let others =
                |state: &mut State| (1..self.meeting.size).any(|rank| !state.left.contains(&rank));
            drop(self.meeting.changed.wait_timeout_while(state, farewell, others));
        }
    }
}

/// `rank 3`, `ranks 1, 2`.
pub(super) fn named(ranks: &[usize]) -> String {
    let list: Vec<_> = ranks.iter().map(ToString::to_string).collect();
    format!("rank{} {}", if ranks.len() == 1 { "" } else { "s" }, list.join(", "))
}
