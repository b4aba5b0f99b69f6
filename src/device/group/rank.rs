//! One of the ranks of a computation, and the operations that ranks do together.
//!
//! Before an operation all ranks compare a description of it, so that a rank that is about to do
//! something else is an error on all of them instead of a wait without end. Then arrays go by the
//! rank's [`Link`]: through the host or by NCCL. The tests are `tests/suite/group`, of which
//! `together` has the operations one by one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytemuck::Pod;

use super::link::Link;
use super::mail::InFlight;
use super::meeting::Seat;
use super::peers;
use crate::Error;
use crate::device::{Buffer, Device, Launch, Launched, Stream, recording};

/// One of the ranks of a [`Group`](super::Group): a device, and a link to the others.
/// [`Group::run`](super::Group::run) passes it to each rank's work.
///
/// All ranks call the same operations in the same order, with arrays of the same length. They
/// compare their calls before anything moves, so that a rank that calls another operation is an
/// error on all of them. Every call returns when it is over on this rank, at the group's
/// [deadline](super::Group::with_deadline) at the latest. After an error every other call of any
/// rank is an error, too.
///
/// ```
/// use linrec::device::{Device, Group};
///
/// let group = Group::from_devices(&Device::emulated(3))?;
/// let sums = group.run(|rank| {
///     let mine = rank.device().upload(&[rank.number() as f32])?;
///     let mut all = rank.device().allocate::<f32>(rank.size())?;
///     rank.all_gather(&mine, &mut all)?;
///     Ok(all.download()?.iter().sum::<f32>())
/// })?;
/// assert_eq!(sums, [3.0, 3.0, 3.0]);
/// # Ok::<(), linrec::Error>(())
/// ```
#[derive(Debug)]
pub struct Rank {
    pub(super) device: Device,
    pub(super) deadline: Duration,
    pub(super) link: Arc<Link>,
    pub(super) in_flight: Arc<InFlight>,
}

/// The most bytes, of all ranks together, that ranks of one program exchange through the host. An
/// all-gather of 16 KiB by NCCL took 200 microseconds a call on two H100s (2026-11-25), of which
/// 170 are the host's: calls that can be ended at a deadline begin on a thread of NCCL. Ranks in
/// several processes meet by TCP, and there NCCL was as fast or faster.
const FEW: usize = 512 << 10;

/// Returns when a time that begins now is over.
pub(super) fn after(time: Duration) -> Instant {
    let now = Instant::now();
    // A wait without end is a wait of a century.
    now.checked_add(time).unwrap_or(now + Duration::from_secs(100 * 365 * 86_400))
}

impl Rank {
    /// Its number, from 0.
    pub fn number(&self) -> usize {
        self.link.number
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.link.size
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until every rank is here.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if a rank fails, ends, does something else, or does not come in time.
    pub fn barrier(&self) -> Result<(), Error> {
        self.agree("barrier")
    }

    /// Copies every rank's array to all ranks: `all` holds `mine` of rank 0, of rank 1, and so on.
    /// Its length is that of `mine` times the number of ranks.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] if `all` has another length; [`Error::Device`] if ranks have arrays
    /// of different lengths or types of other sizes, if one fails, ends, does something else or
    /// does not come in time, or if the device fails.
    pub fn all_gather<T: Pod>(&self, mine: &Buffer<T>, all: &mut Buffer<T>) -> Result<(), Error> {
        if mine.len().checked_mul(self.size()) != Some(all.len()) {
            let arrays = vec![("mine", vec![mine.len()]), ("all", vec![all.len()])];
            return Err(Error::ShapeMismatch { operation: "all_gather", arrays });
        }
        self.agree(&format!("all_gather of {} x {} bytes", mine.len(), size_of::<T>()))?;
        self.gather_by(mine, all, false)
    }

    /// Copies the array of the rank `from` to all ranks.
    ///
    /// # Errors
    ///
    /// As for [`Rank::all_gather`], and if there is no such rank.
    pub fn broadcast<T: Pod>(&self, array: &mut Buffer<T>, from: usize) -> Result<(), Error> {
        self.must_exist(from, "broadcast")?;
        let (len, bytes) = (array.len(), size_of::<T>());
        self.agree(&format!("broadcast of {len} x {bytes} bytes from rank {from}"))?;
        self.spread_by(array, from, false)
    }

    /// Sends an array to another rank, which [receives](Rank::receive) it. Several arrays to one
    /// rank arrive in their order. This may or may not wait for the other rank: two ranks that send
    /// to each other before they receive may wait for each other until the deadline.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is no such other rank, if a rank fails, if the other ends or does
    /// not come in time, or if the device fails.
    pub fn send<T: Pod>(&self, array: &Buffer<T>, to: usize) -> Result<(), Error> {
        self.must_be_another(to, "send")?;
        self.must_be_here(array)?;
        recording::refuse(&self.device, "exchanging arrays")?;
        self.link.send(&array.bytes(), to, self.until())
    }

    /// Receives an array of the same size that another rank [sends](Rank::send).
    ///
    /// # Errors
    ///
    /// As for [`Rank::send`], and if what comes has another size.
    pub fn receive<T: Pod>(&self, array: &mut Buffer<T>, from: usize) -> Result<(), Error> {
        self.must_be_another(from, "receive")?;
        self.must_be_here(array)?;
        recording::refuse(&self.device, "exchanging arrays")?;
        self.link.receive(&mut array.bytes(), from, self.until())
    }

    /// Goes on if all ranks are about to do the same thing, which `what` describes.
    pub(in crate::device) fn agree(&self, what: &str) -> Result<(), Error> {
        recording::refuse(&self.device, "meeting other ranks")?;
        self.link.agree(what, self.until())
    }

    /// As [`Rank::all_gather`], once ranks have agreed on it; [few](Rank::few) bytes go through the
    /// host.
    pub(in crate::device) fn gather<T: Pod>(
        &self,
        mine: &Buffer<T>,
        all: &mut Buffer<T>,
    ) -> Result<(), Error> {
        self.gather_by(mine, all, self.few(all))
    }

    fn gather_by<T: Pod>(
        &self,
        mine: &Buffer<T>,
        all: &mut Buffer<T>,
        through_host: bool,
    ) -> Result<(), Error> {
        self.must_be_here(mine)?;
        self.must_be_here(all)?;
        if all.is_empty() {
            return Ok(());
        }
        self.link.all_gather((&mine.bytes(), &mut all.bytes()), through_host, self.until())
    }

    /// As [`Rank::broadcast`], once ranks have agreed on it; [few](Rank::few) bytes go through the
    /// host.
    pub(super) fn spread<T: Pod>(&self, array: &mut Buffer<T>, from: usize) -> Result<(), Error> {
        self.spread_by(array, from, self.few(array))
    }

    fn spread_by<T: Pod>(
        &self,
        array: &mut Buffer<T>,
        from: usize,
        through_host: bool,
    ) -> Result<(), Error> {
        self.must_be_here(array)?;
        if array.is_empty() {
            return Ok(());
        }
        self.link.broadcast(&mut array.bytes(), from, through_host, self.until())
    }

    /// True if the array reaches all ranks sooner through the host's memory than by NCCL ([`FEW`]).
    fn few<T: Pod>(&self, array: &Buffer<T>) -> bool {
        let bytes = array.bytes().len().saturating_mul(self.size());
        self.link.post.seat().is_some() && bytes <= FEW
    }

    /// Returns an error with the way out if ranks cannot [share](Rank::share) arrays.
    pub(super) fn must_share(&self) -> Result<(), Error> {
        if self.device.is_simt() { self.seat().map(drop) } else { Ok(()) }
    }

    /// Returns the arrays themselves of all ranks, which each rank reaches: in this program, or in
    /// processes with GPUs of one host.
    pub(super) fn share(&self, mine: Buffer<u8>) -> Result<Vec<Buffer<u8>>, Error> {
        self.must_share()?;
        let Some(seat) = self.link.post.seat() else {
            return peers::of_processes(&self.link, &mine, self.until());
        };
        let all = seat.share(mine, self.until())?;
        let others = all.iter().enumerate().filter(|(rank, _)| *rank != self.number());
        let reached = others.map(|(rank, array)| self.reach(rank, array.device()));
        let reached = reached.collect::<Result<(), _>>();
        let outcome = reached.as_ref().map(|()| all).map_err(ToString::to_string);
        let outcome = self.link.all_have("reaching mailboxes", outcome, self.until())?;
        outcome.map_err(|why| Error::Unsupported {
            engine: self.link.label(),
            what: format!("mailboxes, as {why}"),
        })
    }

    /// Makes the memory of another rank's device reachable.
    fn reach(&self, rank: usize, there: &Device) -> Result<(), Error> {
        if *there == self.device && !self.device.is_simt() {
            // Their launches would be in one queue, and the first might wait for the second.
            let what = format!("mailboxes between ranks of one GPU, as this one and rank {rank}");
            return Err(Error::Unsupported { engine: self.link.label(), what });
        }
        self.device.reach(there)
    }

    /// Queues a launch whose blocks wait for those of other ranks' launches, which all ranks queue
    /// at once.
    pub(super) fn run_beside(&self, launch: Launch, stream: &Stream) -> Result<Launched, Error> {
        if self.device.is_simt() {
            let recorded = launch.record("launching side by side")?;
            return self.seat()?.run_side_by_side(recorded, self.until());
        }
        launch.run(stream)
    }

    /// Returns its seat among the ranks of this program.
    fn seat(&self) -> Result<&Seat, Error> {
        self.link.post.seat().ok_or_else(|| Error::Unsupported {
            engine: self.link.label(),
            what: String::from(
                "mailboxes between processes with emulated devices; take another way, or one process",
            ),
        })
    }

    pub(super) fn until(&self) -> Instant {
        after(self.deadline)
    }

    /// Returns an error for an array of another device, which would be taken for this rank's.
    fn must_be_here<T>(&self, array: &Buffer<T>) -> Result<(), Error> {
        self.device.must_be(array.device(), "exchanging arrays", "an array")
    }

    fn must_exist(&self, rank: usize, operation: &str) -> Result<(), Error> {
        let what =
            || format!("{operation}: there is no rank {rank}, the last is {}", self.size() - 1);
        if rank < self.size() { Ok(()) } else { Err(self.link.error(what())) }
    }

    fn must_be_another(&self, rank: usize, operation: &str) -> Result<(), Error> {
        self.must_exist(rank, operation)?;
        let what = || format!("{operation}: rank {rank} is this one");
        if rank != self.number() { Ok(()) } else { Err(self.link.error(what())) }
    }
}
