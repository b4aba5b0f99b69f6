//! Traces: records of the values in the lanes at every load, store, shuffle and barrier.

use std::sync::Arc;

use super::bounds::{Account, bytes_of};
use super::fault::Result;

/// The events of a launch, in the order in which the emulator executed them.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The recorded events.
    pub events: Vec<Event>,
    limit: usize,
    /// The number of events after the limit was reached.
    pub left_out: u64,
}

/// An action of one warp.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The block's number in the grid.
    pub block: u64,
    /// The warp's number in the block.
    pub warp: u32,
    /// The lanes that took part, lane 0 in the lowest bit. The values of other lanes are undefined.
    pub lanes: u32,
    /// The line of the PTX.
    pub line: u32,
    /// The file and line that it was compiled from.
    pub source: Option<(Arc<str>, u32)>,
    /// The kind of event, with its values.
    pub what: What,
}

/// A kind of event, with the lanes' values as bits.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A shuffle, with the value of every lane before and after.
    Shuffle {
        /// `up`, `down`, `bfly` or `idx`.
        mode: &'static str,
        /// The value that each lane provided.
        before: [u32; 32],
        /// The value that each lane received.
        after: [u32; 32],
        /// The lane that each value comes from; the lane itself if the shuffle had no source.
        sources: [u8; 32],
    },
    /// The warp arrived at a barrier of its block.
    Barrier,
    /// A load from memory.
    Load(Accessed),
    /// A store to memory.
    Store(Accessed),
    /// Copies from global to shared memory began (`cp.async`).
    Copy(Box<Copied>),
}

/// The source and destination of asynchronous copies.
#[derive(Debug, Clone, PartialEq)]
pub struct Copied {
    /// The number of bytes that each lane's copy fills.
    pub bytes: u32,
    /// The number of bytes that each lane reads; the rest is filled with zeros.
    pub read: [u32; 32],
    /// Global addresses.
    pub from: [u64; 32],
    /// Offsets in shared memory.
    pub to: [u64; 32],
}

/// The access of a load or a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Accessed {
    /// True for shared memory, false for global memory.
    pub shared: bool,
    /// The size of one value, in bytes.
    pub bytes: u32,
    /// The place of each lane's first value: a global address, or an offset in shared memory.
    pub addresses: [u64; 32],
    /// The values of a lane's access in order: one, two or four, each for all lanes.
    pub values: Vec<[u64; 32]>,
}

impl Trace {
    /// Returns an empty trace of at most `limit` events.
    pub fn new(limit: usize) -> Trace {
        Trace { events: Vec::new(), limit, left_out: 0 }
    }

    /// Records an event with `values` values for each lane. The launch pays for its bytes.
    pub(crate) fn push(
        &mut self,
        account: &mut Account<'_>,
        values: u8,
        event: impl FnOnce() -> Event,
    ) -> Result<()> {
        if self.events.len() < self.limit {
            account.room(&mut self.events, "a trace")?;
            account.take(bytes_of::<[u64; 32]>(values.into()), "a trace")?;
            self.events.push(event());
        } else {
            self.left_out += 1;
        }
        Ok(())
    }
}
