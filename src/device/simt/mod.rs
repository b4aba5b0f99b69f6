//! The backend that emulates a GPU on the cores of this machine.
//!
//! Its work is over when a call returns, so that it has no streams, and nothing to wait for. The
//! blocks of a launch run on the threads of the current `rayon` pool, all at once if they wait for
//! each other, or one after the other if they are traced. The emulator itself is the crate `simt`;
//! this file gives it memory, threads and limits. The tests are `tests/suite/emulator`, and those
//! of every device in `tests/suite/device`.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use rayon::prelude::*;

use super::backend::{Attributes, Backend, DeviceMemory, Handle, HostArray, Users, read};
use super::function::{FunctionAttributes, LoadedKernel, LoadedModule, Modules};
use super::launch::{Bounds, Spec};
use super::lock::lock;
use super::signature::Packed;
use crate::Error;
use crate::simt::{
    Counters, Kernel, Launch, Memory, MemoryError, Module, Prepared, Report, ReportKind, Trace,
};

const LABEL: &str = "simt";
/// The bytes that all buffers together may have. Untouched pages cost nothing.
const CAPACITY: u64 = 256 << 30;
/// The bytes of them that may be touched. The host needs twice as many: it also keeps who wrote
/// what.
const RESIDENT: u64 = 2 << 30;
/// The number of ranges for each thread in a launch, so that a slow range does not keep the other
/// threads waiting.
const RANGES_PER_THREAD: u64 = 8;

/// The modules of all emulated devices: reading PTX takes longer than many a launch, and kernels
/// have no state.
static MODULES: Modules = Modules::new();

thread_local! {
    /// True if this thread runs the blocks of its launches by itself.
    static BY_ITSELF: Cell<bool> = const { Cell::new(false) };
}

/// An emulated device.
#[derive(Debug)]
pub(super) struct Emulator {
    memory: Memory,
    label: String,
    /// True if it is one of several that run side by side, each on the thread that calls it.
    is_one_of_several: bool,
}

/// A piece of an emulated device's memory.
#[derive(Debug)]
struct EmulatedMemory {
    emulator: Arc<Emulator>,
    address: u64,
}

/// A launch that has been checked and is ready to run.
struct Emulation<'a> {
    launch: Launch<'a>,
    blocks: Range<u64>,
    /// True if the blocks may wait for each other, even if nothing in the kernel shows it.
    cooperative: bool,
    trace: Option<&'a mut Trace>,
}

impl Emulator {
    /// The emulator that uses all cores or, with a number, one of several.
    pub(super) fn new(number: Option<usize>) -> Arc<Emulator> {
        Arc::new(Emulator {
            memory: Memory::with_resident_limit(CAPACITY, RESIDENT),
            label: number.map_or(LABEL.to_owned(), |number| format!("{LABEL}:{number}")),
            is_one_of_several: number.is_some(),
        })
    }

    fn run(&self, emulation: Emulation) -> Result<Counters, Error> {
        let Emulation { launch, blocks, cooperative, trace } = emulation;
        let together = cooperative || launch.kernel.communicates();
        let counted = launch.prepare(&self.memory).and_then(|launch| match trace {
            trace if together => launch.run_together(blocks, trace),
            Some(trace) => launch.run_traced(blocks, trace),
            None if self.is_one_of_several || BY_ITSELF.get() => launch.run(blocks),
            None => deal(&launch, blocks),
        });
        counted.map_err(|report| Error::Kernel(Box::new(report)))
    }
}

impl Backend for Emulator {
    fn label(&self) -> &str {
        &self.label
    }

    fn name(&self) -> &str {
        "emulator"
    }

    fn is_simt(&self) -> bool {
        true
    }

    fn attributes(&self) -> Attributes {
        let cores = if self.is_one_of_several { 1 } else { rayon::current_num_threads() };
        Attributes {
            multiprocessors: u32::try_from(cores).unwrap_or(u32::MAX),
            warp_size: 32,
            max_threads_per_block: 1024,
            max_block: [1024, 1024, 64],
            max_grid: [i32::MAX as u32, 65535, 65535],
            shared_bytes: 48 << 10,
            // The value of sm_90, the largest so far.
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

    fn memory(&self) -> Result<(u64, u64), Error> {
        let capacity = self.memory.capacity();
        Ok((capacity.saturating_sub(self.memory.used()), capacity))
    }

    fn modules(&self) -> &Modules {
        &MODULES
    }

    /// Loads a module of which at least one kernel can run, if it has any.
    fn load(&self, ptx: &str) -> Result<LoadedModule, Error> {
        let module = Module::parse(ptx).and_then(|module| {
            let none_runs = module.kernels().next().is_none();
            if none_runs { module.complete() } else { Ok(module) }
        });
        let module = module.map_err(|error| failed(format!("loading PTX: {error}")))?;
        let loaded = |kernel: &Arc<Kernel>| LoadedKernel {
            name: kernel.name().into(),
            params: kernel.params().to_vec(),
            attributes: FunctionAttributes {
                registers: None,
                local_bytes: kernel.local_bytes() as u32,
                shared_bytes: kernel.shared_bytes() as u32,
                max_threads_per_block: kernel.max_threads_per_block() as u32,
            },
            code: kernel.clone(),
        };
        let refused = module.refusals().map(|(name, why)| (name.to_owned(), why.to_string()));
        Ok(LoadedModule {
            kernels: module.kernels().map(loaded).map(Arc::new).collect(),
            refused: refused.collect(),
        })
    }

    fn allocate(
        self: Arc<Self>,
        name: &str,
        bytes: u64,
        _users: Users,
    ) -> Result<Box<dyn DeviceMemory>, Error> {
        let address = self.memory.allocate(name, bytes).map_err(memory_error)?;
        Ok(Box::new(EmulatedMemory { emulator: self, address }))
    }

    /// Runs the blocks of a launch.
    fn launch(
        &self,
        kernel: &LoadedKernel,
        spec: &Spec,
        trace: Option<&mut Trace>,
        _stream: Option<&Handle>,
    ) -> Result<Option<Counters>, Error> {
        let refused = |why: String| {
            Error::device(&*self.label, format!("launching `{}`: {why}", kernel.name))
        };
        let packed = Packed::new(&kernel.params, &spec.values(), 0);
        let code = read::<Kernel>(&kernel.code, &self.label)?;
        let mut launch = Launch::new(code, spec.grid, spec.block, packed.bytes());
        launch.dynamic_shared = spec.shared_bytes;
        let Bounds { instructions, host_bytes, deadline } = spec.bounds;
        launch.instructions = instructions.unwrap_or(launch.instructions);
        launch.host_bytes = host_bytes.unwrap_or(launch.host_bytes);
        let all = 0..launch.blocks();
        let blocks = spec.blocks.clone().unwrap_or(all.clone());
        if blocks.start > blocks.end || blocks.end > all.end {
            return Err(refused(format!("blocks {blocks:?} are not in the grid's {all:?}")));
        }
        let emulation = Emulation { launch, blocks, cooperative: spec.cooperative, trace };
        let Some(deadline) = deadline else { return self.run(emulation).map(Some) };
        let counters = within(deadline, |over| {
            let mut emulation = emulation;
            emulation.launch.cancel = Some(over);
            self.run(emulation)
        });
        match counters.map_err(|error| refused(error.to_string()))? {
            Ok(counters) => Ok(Some(counters)),
            Err(Error::Kernel(mut report)) if report.kind == ReportKind::Cancelled => {
                report.message =
                    format!("passes its deadline of {deadline:?}: it {}", report.message);
                Err(Error::Kernel(report))
            }
            Err(error) => Err(error),
        }
    }

    fn event(&self) -> Result<Handle, Error> {
        Ok(Arc::new(Mutex::new(Instant::now())))
    }

    fn record(&self, event: &Handle, _stream: Option<&Handle>) -> Result<(), Error> {
        *lock(read::<Mutex<Instant>>(event, &self.label)?) = Instant::now();
        Ok(())
    }

    fn elapsed_ms(&self, start: &Handle, end: &Handle) -> Result<f64, Error> {
        let [start, end] = [start, end].map(|event| read::<Mutex<Instant>>(event, &self.label));
        // They may be the same event, so that only one is locked at a time.
        let start = *lock(start?);
        let end = *lock(end?);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        Ok(if end >= start { ms(end - start) } else { -ms(start - end) })
    }

    fn most_together(&self, threads: u32) -> Option<u64> {
        Some(Launch::WARPS_TOGETHER / u64::from(threads.div_ceil(32).max(1)))
    }

    fn run_side_by_side(
        &self,
        launches: &[(&LoadedKernel, &Spec)],
    ) -> Result<Option<Vec<Counters>>, Error> {
        let packed = launches.iter().map(|(kernel, spec)| {
            let code = read::<Kernel>(&kernel.code, &self.label)?;
            Ok((code, spec, Packed::new(&kernel.params, &spec.values(), 0)))
        });
        let packed = packed.collect::<Result<Vec<_>, Error>>()?;
        let prepared = packed.iter().map(|(kernel, spec, packed)| {
            let mut launch = Launch::new(kernel, spec.grid, spec.block, packed.bytes());
            launch.dynamic_shared = spec.shared_bytes;
            launch.prepare(&self.memory)
        });
        let counted = prepared.collect::<Result<Vec<_>, _>>();
        let counted = counted.and_then(|launches| Prepared::run_side_by_side(&launches));
        counted.map(Some).map_err(|report| Error::Kernel(Box::new(report)))
    }

    fn run_by_itself(&self) {
        BY_ITSELF.set(true);
    }
}

impl DeviceMemory for EmulatedMemory {
    fn address(&self) -> u64 {
        self.address
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.emulator.memory.write(self.address + offset, bytes).map_err(memory_error)
    }

    fn read(&self, offset: u64, host: &mut dyn HostArray) -> Result<(), Error> {
        self.emulator.memory.read(self.address + offset, host.bytes()).map_err(memory_error)
    }

    fn fill(&self, offset: u64, bytes: u64, byte: u8) -> Result<(), Error> {
        self.emulator.memory.fill(self.address + offset, bytes, byte).map_err(memory_error)
    }
}

impl Drop for EmulatedMemory {
    fn drop(&mut self) {
        // The emulator returned the address, and nothing else frees it.
        let _ = self.emulator.memory.free(self.address);
    }
}

/// Runs blocks that are independent of each other on the threads of the current pool.
fn deal(launch: &Prepared, blocks: Range<u64>) -> Result<Counters, Report> {
    // As many as the launch has memory for at once, in addition to the pages that they touch.
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

/// Returns the range `number` of `count` ranges of nearly the same length.
fn part(blocks: &Range<u64>, number: u64, count: u64) -> Range<u64> {
    let length = u128::from(blocks.end - blocks.start);
    let at = |number: u64| blocks.start + (length * u128::from(number) / u128::from(count)) as u64;
    at(number)..at(number + 1)
}

/// Calls `work` with a flag that is set when the time is over.
///
/// # Errors
///
/// If no thread can be started to wait for the time.
fn within<T>(time: Duration, work: impl FnOnce(&AtomicBool) -> T) -> io::Result<T> {
    let over = AtomicBool::new(time.is_zero());
    thread::scope(|scope| {
        let (done, waiting) = mpsc::channel::<()>();
        let over = &over;
        thread::Builder::new().spawn_scoped(scope, move || {
            if waiting.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                over.store(true, Relaxed);
            }
        })?;
        let result = work(over);
        drop(done);
        Ok(result)
    })
}

fn memory_error(error: MemoryError) -> Error {
    failed(error.to_string())
}

fn failed(message: String) -> Error {
    Error::device(LABEL, message)
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
