//! The operations between ranks, over any kind of link.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

use super::meeting::Seat;
use crate::Error;
use crate::device::Buffer;

/// The length of the description that ranks compare before an operation, in bytes.
pub(super) const TOLD_BYTES: usize = 224;

/// The description of an operation that a rank is about to begin.
pub(super) type Told = [u8; TOLD_BYTES];

/// One rank's link to the others. Arrays are on its own device, and given as bytes.
///
/// Work that was queued on the arrays before is done first. Every method returns when it is over
/// for this rank, or with an error at `until` at the latest. After an error every other rank gets
/// one, too, from the call that it waits in and from every later call.
pub(super) trait Exchange: Debug + Send + Sync {
    /// Copies every rank's array to all ranks, in the order of ranks: `all` is as long as the
    /// arrays of all ranks together.
    fn all_gather(
        &self,
        mine: &Buffer<u8>,
        all: &mut Buffer<u8>,
        until: Instant,
    ) -> Result<(), Error>;

    /// Copies the array of the rank `from` to all ranks; `is_mine` is true on that rank.
    fn broadcast(
        &self,
        array: &mut Buffer<u8>,
        is_mine: bool,
        from: usize,
        until: Instant,
    ) -> Result<(), Error>;

    /// Sends an array to one other rank, which receives it. `agreed` is true if both know its
    /// length.
    fn send(
        &self,
        array: &Buffer<u8>,
        to: usize,
        agreed: bool,
        until: Instant,
    ) -> Result<(), Error>;

    /// Receives what another rank sends.
    fn receive(
        &self,
        array: &mut Buffer<u8>,
        from: usize,
        agreed: bool,
        until: Instant,
    ) -> Result<(), Error>;

    /// The link for bytes of the host.
    fn post(&self) -> &dyn Post;

    /// Takes no further part; with a reason after a failure, which all others get.
    fn leave(&self, why: Option<&str>);
}

/// One rank's link to the others for bytes of the host. Failures are as in [`Exchange`].
pub(super) trait Post: Debug + Send + Sync {
    /// Returns the bytes of every rank, in the order of ranks; lengths may differ. `what` is for
    /// messages.
    fn gather(&self, what: &str, mine: Vec<u8>, until: Instant) -> Result<Vec<Arc<[u8]>>, Error>;

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

impl dyn Post + '_ {
    /// Returns a few bytes of every rank, in the order of ranks.
    pub(super) fn tell(&self, mine: &Told, until: Instant) -> Result<Vec<Told>, Error> {
        let told = self.gather("meeting the other ranks", mine.to_vec(), until)?;
        // Bytes of another length become a text that differs from every description.
        Ok(told.iter().map(|bytes| Told::try_from(&**bytes).unwrap_or([0; TOLD_BYTES])).collect())
    }
}
