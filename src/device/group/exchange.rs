//! What ranks can do with each other, whatever lies between them.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

use super::meeting::Seat;
use crate::Error;
use crate::device::Buffer;

/// How many bytes ranks tell each other before they do something together.
pub(super) const TOLD_BYTES: usize = 224;

/// What every rank says that it is about to do.
pub(super) type Told = [u8; TOLD_BYTES];

/// One rank's way to the others. Arrays are those of its own device, given as bytes.
///
/// Work on the arrays that is queued before is done first. All of these return when they are over
/// for this rank, or with an error at `until` at the latest; after an error every other rank gets
/// one, too, from what it waits for and from whatever it asks for next.
pub(super) trait Exchange: Debug + Send + Sync {
    /// Every rank's array in all ranks, in the order of ranks: `all` is as many times as long as
    /// `mine`.
    fn all_gather(
        &self,
        mine: &Buffer<u8>,
        all: &mut Buffer<u8>,
        until: Instant,
    ) -> Result<(), Error>;

    /// The array of the rank `from` in all ranks; `is_mine` says whether that is this one.
    fn broadcast(
        &self,
        array: &mut Buffer<u8>,
        is_mine: bool,
        from: usize,
        until: Instant,
    ) -> Result<(), Error>;

    /// An array to one other rank, which receives it. `agreed` says that both know its length.
    fn send(
        &self,
        array: &Buffer<u8>,
        to: usize,
        agreed: bool,
        until: Instant,
    ) -> Result<(), Error>;

    /// What another rank sends.
    fn receive(
        &self,
        array: &mut Buffer<u8>,
        from: usize,
        agreed: bool,
        until: Instant,
    ) -> Result<(), Error>;

    /// The way for bytes of the host.
    fn post(&self) -> &dyn Post;

    /// Takes no further part; with a reason if something has gone wrong, which all others are told.
    fn leave(&self, why: Option<&str>);
}

/// One rank's way to the others for bytes of the host. How it ends is as [`Exchange`] says.
pub(super) trait Post: Debug + Send + Sync {
    /// Everybody's bytes, in the order of ranks; there need not be as many of each. `what` is for
    /// messages.
    fn gather(&self, what: &str, mine: Vec<u8>, until: Instant) -> Result<Vec<Arc<[u8]>>, Error>;

    /// Bytes for another rank, which need not fetch them at once.
    fn post(&self, to: usize, letter: Vec<u8>, until: Instant) -> Result<(), Error>;

    /// What another rank has posted first, of what has not been fetched.
    fn fetch(&self, from: usize, until: Instant) -> Result<Vec<u8>, Error>;

    /// Why nothing goes on any more, if a rank has failed.
    fn failure(&self, until: Instant) -> Option<String>;

    /// The place among ranks of this program, if all ranks are here.
    fn seat(&self) -> Option<&Seat> {
        None
    }

    /// Takes no further part; with a reason if something has gone wrong, which all others are told.
    fn leave(&self, why: Option<&str>);
}

impl dyn Post + '_ {
    /// A few bytes of every rank, in the order of ranks.
    pub(super) fn tell(&self, mine: &Told, until: Instant) -> Result<Vec<Told>, Error> {
        let told = self.gather("meeting the other ranks", mine.to_vec(), until)?;
        // What is no such text differs from every one of them.
        Ok(told.iter().map(|bytes| Told::try_from(&**bytes).unwrap_or([0; TOLD_BYTES])).collect())
    }
}
