//! A launch on the emulator: its memory, and its blocks on all cores.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use simt::{Counters, Memory, Prepared, Report, Trace};

use crate::plan::{Hole, Plan};

/// The size that all buffers together may have. Only the pages that are touched take memory, and
/// count against the launch.
const CAPACITY: u64 = 256 << 30;
/// The number of ranges for each core, so that a slow range does not hold up the other cores.
const RANGES_PER_CORE: u64 = 8;

/// The buffers of a plan in a memory.
pub struct Placed {
    pub memory: Memory,
    pub addresses: Vec<u64>,
    /// The handle of the texture or surface over each buffer, or 0.
    handles: Vec<u64>,
}

impl Placed {
    /// Makes the buffers of a plan, with their contents.
    pub fn new(plan: &Plan) -> Result<Placed, String> {
        let mut placed =
            Placed { memory: Memory::new(CAPACITY), addresses: Vec::new(), handles: Vec::new() };
        for buffer in &plan.buffers {
            let made = placed.memory.allocate(&buffer.name, buffer.bytes as u64);
            let wrong = |error| format!("allocating `{}`: {error}", buffer.name);
            placed.addresses.push(made.map_err(wrong)?);
        }
        for (buffer, &address) in plan.buffers.iter().zip(&placed.addresses) {
            let object = buffer.object.as_ref();
            let handle = object.map(|object| object.make(&placed.memory, &buffer.name, address));
            placed.handles.push(handle.transpose()?.unwrap_or(0));
        }
        for (buffer, &address) in plan.buffers.iter().zip(&placed.addresses) {
            let Some(contents) = &buffer.contents else { continue };
            let written = placed.memory.write(address, &placed.filled(contents, &buffer.holes));
            written.map_err(|error| format!("writing `{}`: {error}", buffer.name))?;
        }
        Ok(placed)
    }

    /// Returns bytes with addresses and handles in their holes.
    pub fn filled(&self, bytes: &[u8], holes: &[Hole]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for hole in holes {
            let value = match hole.is_handle {
                true => self.handles[hole.buffer],
                false => self.addresses[hole.buffer].wrapping_add(hole.offset),
            };
            bytes[hole.at..hole.at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// Reads the bytes that a buffer or variable holds now.
    pub fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, String> {
        let mut read = Vec::new();
        read.try_reserve_exact(bytes)
            .map_err(|_| format!("there is no memory for {bytes} bytes"))?;
        read.resize(bytes, 0);
        self.memory.read(address, &mut read).map_err(|error| error.to_string())?;
        Ok(read)
    }
}

/// Runs blocks of a launch: together if they wait for each other, in order if they are traced, and
/// otherwise on all cores.
pub fn run(
    launch: &Prepared<'_>,
    blocks: Range<u64>,
    together: bool,
    trace: Option<&mut Trace>,
) -> Result<Counters, Report> {
    match trace {
        trace if together => launch.run_together(blocks, trace),
        Some(trace) => launch.run_traced(blocks, trace),
        None => deal(launch, blocks),
    }
}

/// Runs blocks that do not wait for each other. If several ranges have a report, returns the report
/// of the first in the order of the grid.
fn deal(launch: &Prepared<'_>, blocks: Range<u64>) -> Result<Counters, Report> {
    let cores = thread::available_parallelism().map_or(1, usize::from) as u64;
    let length = blocks.end.saturating_sub(blocks.start);
    // No more ranges at a time than the launch has memory for, not counting the pages they touch.
    let possible = launch.launch().host_bytes / 2 / launch.range_bytes().max(1);
    let cores = cores.min(possible).clamp(1, length.max(1));
    let count = (cores * RANGES_PER_CORE).min(length).max(1);
    let at = |number: u64| {
        blocks.start + (u128::from(length) * u128::from(number) / u128::from(count)) as u64
    };
    let (next, found) = (AtomicU64::new(0), Mutex::new((Counters::default(), None)));
    let work = || {
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= count {
                return;
            }
            let result = launch.run(at(number)..at(number + 1));
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            match result {
                Ok(counters) => found.0 += &counters,
                Err(report) => {
                    next.store(count, Relaxed);
                    if found.1.as_ref().is_none_or(|(first, _)| number < *first) {
                        found.1 = Some((number, report));
                    }
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..cores {
            scope.spawn(work);
        }
        work();
    });
    match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        (_, Some((_, report))) => Err(report),
        (counters, None) => Ok(counters),
    }
}
