//! The backend that emulates a GPU on this machine's cores.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::Error;
use crate::device::attributes::Attributes;
use crate::device::function::{FunctionAttributes, Modules};
use crate::device::lock::lock;
use crate::simt::{Counters, Kernel, Launch, Memory, MemoryError, Module, Prepared, Report, Trace};

/// What all buffers together may be long; sparse ones cost little.
const CAPACITY: u64 = 256 << 30;
/// What may be touched of them: twice as much on the host, which also keeps who wrote what.
const RESIDENT: u64 = 2 << 30;
/// Ranges that a thread gets in a launch, so that a slow range does not keep the others waiting.
const RANGES_PER_THREAD: u64 = 8;

thread_local! {
    /// Whether this thread runs the blocks of its launches by itself.
    static BY_ITSELF: Cell<bool> = const { Cell::new(false) };
}

/// Lets this thread run the blocks of all its launches by itself, and deal none to the current
/// pool: it is one of several, and the pool's threads may be waiting for it.
pub(crate) fn run_by_itself() {
    BY_ITSELF.set(true);
}

/// An emulated device.
#[derive(Debug)]
pub(crate) struct Emulator {
    pub(crate) memory: Memory,
    pub(crate) modules: Modules<Module>,
    pub(crate) label: String,
    /// Which one it is, of several that run side by side.
    number: Option<usize>,
}

/// A launch, checked and ready to run.
pub(crate) struct Emulation<'a> {
    pub(crate) launch: Launch<'a>,
    pub(crate) blocks: Range<u64>,
    /// Whether the blocks may wait for each other, even if nothing in the kernel looks like it.
    pub(crate) cooperative: bool,
    pub(crate) trace: Option<&'a mut Trace>,
}

impl Emulator {
    pub(crate) const LABEL: &str = "simt";

    /// How many blocks it says that it holds at once, whatever the blocks. They take turns on one
    /// core, so that few of them are soon done; and eight are enough for a first block, a last one,
    /// and some between.
    pub(crate) const RESIDENT_BLOCKS: u32 = 8;

    /// How many blocks of so many threads can wait for each other.
    pub(crate) fn most_together(threads: u32) -> u64 {
        Launch::WARPS_TOGETHER / u64::from(threads.div_ceil(32).max(1))
    }

    /// The one that takes all cores.
    pub(crate) fn new() -> Emulator {
        Emulator::labelled(Self::LABEL.to_owned(), None)
    }

    /// One of several. It does its work on the thread that asks for it: that several run side by
    /// side is the doing of those who call them.
    #[cfg_attr(not(feature = "simt"), expect(dead_code))]
    pub(crate) fn numbered(number: usize) -> Emulator {
        Emulator::labelled(format!("{}:{number}", Self::LABEL), Some(number))
    }

    fn labelled(label: String, number: Option<usize>) -> Emulator {
        let memory = Memory::with_resident_limit(CAPACITY, RESIDENT);
        Emulator { memory, modules: Modules::default(), label, number }
    }

    pub(crate) fn attributes(&self) -> Attributes {
        let cores = if self.number.is_some() { 1 } else { rayon::current_num_threads() };
        Attributes {
            multiprocessors: u32::try_from(cores).unwrap_or(u32::MAX),
            warp_size: 32,
            max_threads_per_block: 1024,
            max_block: [1024, 1024, 64],
            max_grid: [i32::MAX as u32, 65535, 65535],
            shared_bytes: 48 << 10,
            // Of sm_90, the largest so far.
            shared_bytes_opt_in: 227 << 10,
            compute_capability: (8, 0),
            registers: None,
            threads_per_multiprocessor: None,
            l2_bytes: None,
            clock_khz: None,
            memory_clock_khz: None,
            memory_bus_bits: None,
            cuda_version: None,
            cooperative: true,
            reaches_host_memory: false,
        }
    }

    /// Runs the blocks of a launch: dealt to the threads of the current pool, or all together if
    /// they wait for each other, or one after the other if they are traced or if it is one of
    /// several.
    pub(crate) fn run(&self, emulation: Emulation) -> Result<Counters, Error> {
        let Emulation { launch, blocks, cooperative, trace } = emulation;
        let together = cooperative || launch.kernel.communicates();
        let counted = launch.prepare(&self.memory).and_then(|launch| match trace {
            trace if together => launch.run_together(blocks, trace),
            Some(trace) => launch.run_traced(blocks, trace),
            None if self.number.is_some() || BY_ITSELF.get() => launch.run(blocks),
            None => deal(&launch, blocks),
        });
        counted.map_err(|report| Error::Kernel(Box::new(report)))
    }

    /// Runs launches side by side, on this thread.
    pub(crate) fn run_side_by_side(&self, launches: Vec<Launch>) -> Result<Vec<Counters>, Error> {
        let prepared = launches.into_iter().map(|launch| launch.prepare(&self.memory));
        let counted = prepared.collect::<Result<Vec<_>, _>>();
        let counted = counted.and_then(|launches| Prepared::run_side_by_side(&launches));
        counted.map_err(|report| Error::Kernel(Box::new(report)))
    }
}

/// Runs blocks that are independent of each other on the threads of the current pool.
fn deal(launch: &Prepared, blocks: Range<u64>) -> Result<Counters, Report> {
    // As many as the launch has memory for at the same time, beside the pages that they touch.
    let possible = launch.launch().host_bytes / 2 / launch.range_bytes().max(1);
    let count = (rayon::current_num_threads() as u64 * RANGES_PER_THREAD)
        .min(possible)
        .min(blocks.end - blocks.start)
        .max(1);
    // Once a range has failed, later ones need not run; earlier ones may hold the first finding.
    let failed = AtomicU64::new(u64::MAX);
    let sum = Mutex::new(Counters::default());
    let results: Vec<Result<(), Report>> = (0..count)
        .into_par_iter()
        .map(|number| {
            if number > failed.load(Relaxed) {
                return Ok(());
            }
            match launch.run(part(&blocks, number, count)) {
                Ok(counters) => *lock(&sum) += &counters,
                Err(report) => {
                    failed.fetch_min(number, Relaxed);
                    return Err(report);
                }
            }
            Ok(())
        })
        .collect();
    results.into_iter().collect::<Result<(), Report>>()?;
    Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The range number `number` of `count` ranges of nearly the same length.
fn part(blocks: &Range<u64>, number: u64, count: u64) -> Range<u64> {
    let length = u128::from(blocks.end - blocks.start);
    let at = |number: u64| blocks.start + (length * u128::from(number) / u128::from(count)) as u64;
    at(number)..at(number + 1)
}

pub(crate) fn function_attributes(kernel: &Kernel) -> FunctionAttributes {
    FunctionAttributes {
        registers: None,
        local_bytes: kernel.local_bytes() as u32,
        shared_bytes: kernel.shared_bytes() as u32,
        max_threads_per_block: kernel.max_threads_per_block() as u32,
    }
}

/// A module of which at least one kernel can run, if it has any.
pub(crate) fn load(ptx: &str) -> Result<Module, Error> {
    let module = Module::parse(ptx).and_then(|module| {
        let none_runs = module.kernels().next().is_none();
        if none_runs { module.complete() } else { Ok(module) }
    });
    module.map_err(|error| failed(format!("loading PTX: {error}")))
}

pub(crate) fn memory_error(error: MemoryError) -> Error {
    failed(error.to_string())
}

fn failed(message: String) -> Error {
    Error::device(Emulator::LABEL, message)
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_cover_every_block_once() {
        for (blocks, count) in [(5..5, 1), (3..4, 1), (0..7, 3), (10..1010, 16), (0..u64::MAX, 7)] {
            let mut next = blocks.start;
            for number in 0..count {
                let part = part(&blocks, number, count);
                assert_eq!(part.start, next);
                next = part.end;
            }
            assert_eq!(next, blocks.end);
        }
    }
}
