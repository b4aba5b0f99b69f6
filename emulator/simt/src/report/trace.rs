//! A record of what the lanes held: at every load, store, shuffle and barrier.

use std::sync::Arc;

use super::bounds::{Account, bytes_of};
use super::fault::Result;

/// Events of a launch, in the order in which the emulator executed them.
#[derive(Debug, Clone)]
pub struct Trace {
    /// What was recorded.
    pub events: Vec<Event>,
    limit: usize,
    /// Events that came after the limit.
    pub left_out: u64,
}

/// What one warp did.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The block's number in the grid.
    pub block: u64,
    /// The warp's number in the block.
    pub warp: u32,
    /// The lanes that took part, lane 0 in the lowest bit. The values of others mean nothing.
    pub lanes: u32,
    /// The line of the PTX.
    pub line: u32,
    /// The file and line it was compiled from.
    pub source: Option<(Arc<str>, u32)>,
    /// What happened.
    pub what: What,
}

/// What happened, with the lanes' values as bits.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A shuffle: every lane's value before and after.
    Shuffle {
        /// `up`, `down`, `bfly` or `idx`.
        mode: &'static str,
        /// What each lane gave.
        before: [u32; 32],
        /// What each lane got.
        after: [u32; 32],
        /// The lane that it is from: its own number where the shuffle had none for it.
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

/// What asynchronous copies go from and to.
#[derive(Debug, Clone, PartialEq)]
pub struct Copied {
    /// What each lane's copy fills, in bytes.
    pub bytes: u32,
    /// How many of them each lane reads; the rest becomes zero.
    pub read: [u32; 32],
    /// Global addresses.
    pub from: [u64; 32],
    /// Offsets in shared memory.
    pub to: [u64; 32],
}

/// What a load or a store accessed.
#[derive(Debug, Clone, PartialEq)]
pub struct Accessed {
    /// True if it was shared memory; global otherwise.
    pub shared: bool,
    /// The size of one value, in bytes.
    pub bytes: u32,
    /// Where each lane's first value lies: a global address, or an offset in shared memory.
    pub addresses: [u64; 32],
    /// The values of a lane's access one after the other: one, two or four, each of all lanes.
    pub values: Vec<[u64; 32]>,
}

impl Trace {
    /// An empty record of at most `limit` events.
    pub fn new(limit: usize) -> Trace {
        Trace { events: Vec::new(), limit, left_out: 0 }
    }

    /// Records an event with `values` values of all lanes, whose bytes the launch pays for.
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
