//! A launch on the emulator: its memory, and its blocks on all cores.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use simt::{Counters, Memory, Prepared, Report, Trace};

use crate::object::Object;
use crate::plan::{Piece, Plan};

/// What all buffers together may be long; what is touched of them counts against the launch.
const CAPACITY: u64 = 256 << 30;
/// Ranges that a core gets, so that a slow one does not keep the others waiting.
const RANGES_PER_CORE: u64 = 8;

/// The buffers of a plan in a memory.
pub struct Placed {
    pub memory: Memory,
    pub addresses: Vec<u64>,
    /// Of each buffer the handle of what has it as texels, or 0.
    handles: Vec<u64>,
}

impl Placed {
    /// Makes the buffers, with what is in them at first.
    pub fn new(plan: &Plan) -> Result<Placed, String> {
        let memory = Memory::new(CAPACITY);
        let mut addresses = Vec::new();
        for buffer in &plan.buffers {
            let made = memory.allocate(&buffer.name, buffer.bytes as u64);
            addresses.push(made.map_err(|error| format!("allocating `{}`: {error}", buffer.name))?);
        }
        let mut handles = Vec::new();
        for (buffer, &address) in plan.buffers.iter().zip(&addresses) {
            let make = |object: &Object| object.make(&memory, &buffer.name, address);
            handles.push(buffer.object.as_ref().map_or(Ok(0), make)?);
        }
        let placed = Placed { memory, addresses, handles };
        for (buffer, &address) in plan.buffers.iter().zip(&placed.addresses) {
            let Some(contents) = &buffer.contents else { continue };
            let piece = Piece { bytes: contents.clone(), align: 1, holes: buffer.holes.clone() };
            let written = placed.memory.write(address, &piece.filled(&placed));
            written.map_err(|error| format!("writing `{}`: {error}", buffer.name))?;
        }
        Ok(placed)
    }

    /// What is in a buffer now.
    pub fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, String> {
        let mut read = Vec::new();
        read.try_reserve_exact(bytes)
            .map_err(|_| format!("there is no memory for {bytes} bytes"))?;
        read.resize(bytes, 0);
        self.memory.read(address, &mut read).map_err(|error| error.to_string())?;
        Ok(read)
    }
}

impl Piece {
    /// The bytes, with addresses and handles in the holes.
    pub fn filled(mut self, placed: &Placed) -> Vec<u8> {
        for hole in &self.holes {
            let address = match hole.handle {
                true => placed.handles[hole.buffer],
                false => placed.addresses[hole.buffer].wrapping_add(hole.offset),
            };
            self.bytes[hole.at..hole.at + 8].copy_from_slice(&address.to_le_bytes());
        }
        self.bytes
    }
}

/// Runs blocks of a launch: together if they wait for each other, in order if they are traced, else
/// on all cores.
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

/// Runs blocks that do not wait for each other; of what several ranges find, the first in the order
/// of the grid.
fn deal(launch: &Prepared<'_>, blocks: Range<u64>) -> Result<Counters, Report> {
    let cores = thread::available_parallelism().map_or(1, usize::from) as u64;
    let length = blocks.end.saturating_sub(blocks.start);
    // As many as the launch has memory for at the same time, beside the pages that they touch.
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
