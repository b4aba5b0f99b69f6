//! Launches: a grid of blocks, and what each kernel is given.

use std::ops::Range;
use std::sync::Arc;

use super::argument::{Argument, Slot};
use super::bounds::{self, Bounds};
use super::buffer::{Allocation, Place};
use super::cuda::{Gpu, GpuKernel, GpuLaunch, GpuMemory, GpuStream};
use super::emulator::{Emulation, Emulator};
use super::function::Code;
use super::signature::{self, Packed, Value};
use super::stream::Queue;
use super::{Backend, Buffer, Function, Launched, Stream, recording};
use crate::Error;
use crate::simt::{self, Kernel, ReportKind, Trace};

/// A grid's or a block's extent along each axis; made from a number, a tuple or an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dim(pub [u32; 3]);

impl From<u32> for Dim {
    fn from(x: u32) -> Dim {
        Dim([x, 1, 1])
    }
}

impl From<(u32, u32)> for Dim {
    fn from((x, y): (u32, u32)) -> Dim {
        Dim([x, y, 1])
    }
}

impl From<(u32, u32, u32)> for Dim {
    fn from((x, y, z): (u32, u32, u32)) -> Dim {
        Dim([x, y, z])
    }
}

impl From<[u32; 3]> for Dim {
    fn from(extent: [u32; 3]) -> Dim {
        Dim(extent)
    }
}

/// Mailboxes of all sequences of a launch: in one of them comes the state before each, by the other
/// the one behind it goes on.
#[derive(Debug)]
pub(super) struct Mail {
    pub(super) from: Option<Buffer<u8>>,
    pub(super) to: Option<Buffer<u8>>,
    /// The number of this pass, which mail of others does not have.
    pub(super) epoch: u32,
}

/// A launch that is being put together: see [`Function::launch`].
///
/// ```
/// # use linrec::device::Device;
/// # let ptx = "
/// # .version 8.0
/// # .target sm_80
/// # .address_size 64
/// # .visible .entry scale(.param .u64 p, .param .f32 f, .param .u32 n) {
/// #     .reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .pred %p1;
/// #     ld.param.u64 %rd1, [p]; ld.param.f32 %f1, [f]; ld.param.u32 %r1, [n];
/// #     mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
/// #     mad.lo.s32 %r5, %r2, %r3, %r4; setp.ge.u32 %p1, %r5, %r1; @%p1 bra DONE;
/// #     cvta.to.global.u64 %rd2, %rd1; mad.wide.u32 %rd3, %r5, 4, %rd2;
/// #     ld.global.f32 %f2, [%rd3]; mul.rn.f32 %f3, %f2, %f1; st.global.f32 [%rd3], %f3;
/// #     DONE: ret;
/// # }";
/// # let device = Device::simt();
/// let scale = device.module(ptx)?.function("scale")?; // float* values, float factor, unsigned len
/// let mut values = device.upload(&[1.0_f32, 2.0, 3.0])?;
/// scale.launch(1, 32).arg(&mut values).arg(10.0_f32).arg(3_u32).run(&device.stream())?;
/// assert_eq!(values.download()?, [10.0, 20.0, 30.0]);
/// # Ok::<(), linrec::Error>(())
/// ```
#[must_use = "a launch runs when `run` is called"]
#[derive(Debug)]
pub struct Launch<'a> {
    function: &'a Function,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    cooperative: bool,
    slots: Vec<Slot>,
    /// Which of these lie on other devices, and are used by their kernels at the same time.
    peers: Vec<usize>,
    blocks: Option<Range<u64>>,
    trace: Option<&'a mut Trace>,
    pub(super) bounds: Bounds,
}

impl<'a> Launch<'a> {
    pub(super) fn new(function: &'a Function, grid: Dim, block: Dim) -> Launch<'a> {
        Launch {
            function,
            grid: grid.0,
            block: block.0,
            shared_bytes: 0,
            cooperative: false,
            slots: Vec::with_capacity(function.params().len()),
            peers: Vec::new(),
            blocks: None,
            trace: None,
            bounds: Bounds::default(),
        }
    }

    /// Gives every block `bytes` bytes of dynamic shared memory, beside what the kernel declares.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Has all blocks of the grid on the device at once, so that blocks may wait for each other: at
    /// a barrier of the whole grid, or for what another block writes. A launch that does not say
    /// this may run its blocks in any order and one after the other, and a block that waits for a
    /// later one then waits for ever.
    ///
    /// On a GPU, [`Launch::run`] refuses a grid of more blocks than [`Function::resident_blocks`];
    /// the emulator takes any number, as long as all blocks together have 8192 warps at most. What
    /// is recorded is checked when it is recorded, and stays cooperative. Nothing ends a block that
    /// waits for what never comes: on a GPU it keeps the device busy for ever, and the emulator
    /// reports it.
    ///
    /// ```
    /// # use linrec::device::Device;
    /// // Each block writes its number, waits until all have, and reads that of the next block.
    /// # let ptx = "
    /// # .version 8.0
    /// # .target sm_80
    /// # .address_size 64
    /// # .visible .entry next(.param .u64 arrived, .param .u64 numbers, .param .u64 found) {
    /// #     .reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .pred %p1;
    /// #     ld.param.u64 %rd1, [arrived]; ld.param.u64 %rd2, [numbers]; ld.param.u64 %rd3, [found];
    /// #     mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x;
    /// #     mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd2, %rd4; st.global.u32 [%rd5], %r1;
    /// #     atom.acq_rel.gpu.global.add.u32 %r3, [%rd1], 1;
    /// #     WAIT: ld.acquire.gpu.global.u32 %r4, [%rd1]; setp.lt.u32 %p1, %r4, %r2; @%p1 bra WAIT;
    /// #     add.s32 %r5, %r1, 1; rem.u32 %r6, %r5, %r2;
    /// #     mul.wide.u32 %rd6, %r6, 4; add.s64 %rd6, %rd2, %rd6; ld.global.u32 %r7, [%rd6];
    /// #     add.s64 %rd7, %rd3, %rd4; st.global.u32 [%rd7], %r7;
    /// #     ret;
    /// # }";
    /// # let device = Device::simt();
    /// let next = device.module(ptx)?.function("next")?; // unsigned *arrived, *numbers, *found
    /// let blocks = next.resident_blocks(1, 0)?.min(5);
    /// let mut arrived = device.zeros::<u32>(1)?;
    /// let mut numbers = device.allocate::<u32>(blocks as usize)?;
    /// let mut found = device.allocate::<u32>(blocks as usize)?;
    /// let launch = next.launch(blocks, 1).arg(&mut arrived).arg(&mut numbers).arg(&mut found);
    /// launch.cooperative().run(&device.stream())?;
    /// assert_eq!(found.download()?, [1, 2, 3, 4, 0]);
    /// # Ok::<(), linrec::Error>(())
    /// ```
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// The next argument.
    pub fn arg(mut self, argument: impl Argument<'a>) -> Self {
        self.slots.push(argument.into_slot());
        self
    }

    /// The three arguments of a kernel that [takes mail](crate::kernels::KernelChoice::takes_mail),
    /// for sequences that lie on this device alone: two pointers that are null, and 0.
    pub fn without_mail(self) -> Self {
        let none: Option<&Buffer<u8>> = None;
        self.arg(none).arg(none).arg(0_u32)
    }

    /// The same for sequences of which other devices have the rest.
    pub(super) fn with_mail(self, mail: &'a mut Mail) -> Self {
        let Mail { from, to, epoch } = mail;
        self.peer_arg(from.as_ref()).peer_arg(to.as_mut()).arg(*epoch)
    }

    /// The next argument, in memory that the device [reaches](super::Device::reach) and that
    /// kernels of other devices may use at the same time: whatever order that needs is the kernels'
    /// own.
    fn peer_arg(mut self, argument: impl Argument<'a>) -> Self {
        self.peers.push(self.slots.len());
        self.arg(argument)
    }

    /// Runs only these blocks of the grid, which see the whole grid's size. On the emulator only.
    pub fn blocks(mut self, blocks: Range<u64>) -> Self {
        self.blocks = Some(blocks);
        self
    }

    /// Records the values of the lanes at every shuffle, barrier and access. On the emulator only,
    /// which then runs the blocks one after the other.
    pub fn traced(mut self, trace: &'a mut Trace) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Queues the launch on a stream; on the emulator it has run when this returns.
    ///
    /// A mistake of the kernel is found by the emulator now ([`Error::Kernel`]), and by a GPU, if
    /// it is one that a GPU notices, in a later operation on the device.
    ///
    /// On the stream that [`Device::record`](super::Device::record) passes in, the launch is
    /// checked and recorded, and runs when the graph is replayed.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there are too many or too few arguments, or some of the wrong size or
    /// on another device; if grid, block or shared memory pass a limit; if the launch is
    /// cooperative, and its blocks do not fit on the device at once or the device takes no such
    /// launches; if the device refuses; or if blocks, bounds or a trace are asked of a GPU, or a
    /// trace of a recording; or if launches are being recorded and this is another stream.
    /// [`Error::Kernel`] with what the emulator found.
    pub fn run(self, stream: &Stream) -> Result<Launched, Error> {
        let operation = format!("launching `{}`", self.function.name());
        self.function.device.must_be(&stream.device, &operation, "the stream")?;
        self.check_extent(&operation)?;
        self.check_arguments(&operation)?;
        self.check_resident(&operation)?;
        if let Queue::Recording(recorder) = &stream.queue {
            return recorder
                .add(self.record(&operation)?, &operation)
                .map(|()| Launched::new(None));
        }
        recording::refuse_other_stream(&stream.device, &operation)?;
        match (&self.function.code, &stream.queue, &self.function.device.backend) {
            (Code::Cuda(gpu, kernel), Queue::Cuda(stream), _) => {
                self.run_on_gpu(gpu, kernel, stream, &operation)
            }
            (Code::Simt(kernel), _, Backend::Simt(emulator)) => self.emulate(emulator, kernel),
            _ => Err(self.refused(&operation, "the stream is of another kind of device")),
        }
    }

    /// Runs launches of one kernel side by side, each with all its blocks, which may wait for what
    /// those of another write: as GPUs of one host do that reach each other's memory. On the
    /// emulator only, where the launches are on one device, and take turns; what a launch writes
    /// and another reads has to be ordered as between devices (a release and an acquire of the
    /// whole system), or is reported. Over when this returns.
    ///
    /// # Errors
    ///
    /// As for [`Launch::run`]; [`Error::Device`] if a launch is on a GPU or another device than the
    /// first one, or differs from it in kernel or grid; [`Error::Kernel`] with what the emulator
    /// found, in which the kernel's name is followed by the launch, counted from 0.
    pub fn run_side_by_side(launches: &[Launch<'_>]) -> Result<Vec<Launched>, Error> {
        let Some(first) = launches.first() else { return Ok(Vec::new()) };
        let operation = format!("launching `{}` side by side", first.function.name());
        let device = &first.function.device;
        let Backend::Simt(emulator) = &device.backend else {
            return Err(first.refused(&operation, "only the emulator does; use Device::simt()"));
        };
        let mut arguments = Vec::with_capacity(launches.len());
        for launch in launches {
            device.must_be(&launch.function.device, &operation, "a launch")?;
            launch.check_extent(&operation)?;
            launch.check_arguments(&operation)?;
            let Code::Simt(kernel) = &launch.function.code else {
                return Err(launch.refused(&operation, "a launch is of another kind of device"));
            };
            arguments.push((kernel, Packed::new(kernel.params(), &launch.values(), 0)));
        }
        recording::refuse(device, &operation)?;
        let prepared = launches.iter().zip(&arguments).map(|(launch, (kernel, packed))| {
            let bytes = packed.bytes();
            let mut all = simt::Launch::new(kernel, launch.grid, launch.block, bytes);
            all.dynamic_shared = launch.shared_bytes;
            all
        });
        let counters = emulator.run_side_by_side(prepared.collect())?;
        Ok(counters.into_iter().map(|counters| Launched::new(Some(counters))).collect())
    }

    fn refused(&self, operation: &str, why: impl std::fmt::Display) -> Error {
        Error::device(self.function.device.label(), format!("{operation}: {why}"))
    }

    fn check_extent(&self, operation: &str) -> Result<(), Error> {
        let limits = self.function.device.attributes();
        let (grid, block) = (self.grid, self.block);
        let refused = |why: String| Err(self.refused(operation, why));
        if grid.contains(&0) || block.contains(&0) {
            return refused(format!(
                "a grid of {grid:?} blocks of {block:?} threads is empty; launch at least one \
                 thread, or nothing at all"
            ));
        }
        if (0..3).any(|axis| grid[axis] > limits.max_grid[axis]) {
            return refused(format!(
                "a grid of {grid:?} blocks is too large; the largest is {:?}",
                limits.max_grid
            ));
        }
        let threads = block.iter().map(|&extent| u64::from(extent)).fold(1, u64::saturating_mul);
        let most =
            limits.max_threads_per_block.min(self.function.attributes().max_threads_per_block);
        if (0..3).any(|axis| block[axis] > limits.max_block[axis]) || threads > u64::from(most) {
            return refused(format!(
                "a block of {block:?} threads is too large; the kernel takes {most} threads, and \
                 at most {:?} along each axis",
                limits.max_block
            ));
        }
        let fixed = self.function.attributes().shared_bytes;
        let (shared, most) = (self.shared_bytes, limits.shared_bytes_opt_in);
        if u64::from(shared) + u64::from(fixed) > u64::from(most) {
            return refused(format!(
                "{shared} bytes of shared memory beside the kernel's own {fixed} are too many; a \
                 block has {most} at most"
            ));
        }
        Ok(())
    }

    fn check_arguments(&self, operation: &str) -> Result<(), Error> {
        signature::check(self.function.params(), &self.slots)
            .map_err(|why| self.refused(operation, why))?;
        for (number, slot) in (1..).zip(&self.slots) {
            if self.peers.contains(&(number - 1)) {
                continue;
            }
            for (memory, _) in slot.memories() {
                let device = &self.function.device;
                device.must_be(&memory.device, operation, &format!("argument {number}"))?;
            }
        }
        Ok(())
    }

    /// Refuses a cooperative launch of which some blocks would have to wait for others to end.
    fn check_resident(&self, operation: &str) -> Result<(), Error> {
        if !self.cooperative {
            return Ok(());
        }
        // Of a block and a grid that have been checked, the first product is small, and the second
        // a u64.
        let threads = self.block.iter().product();
        let blocks: u64 = self.grid.iter().map(|&extent| u64::from(extent)).product();
        let fit = match self.function.code {
            Code::Cuda(..) => self.function.resident_blocks(threads, self.shared_bytes)?.into(),
            Code::Simt(_) => Emulator::most_together(threads),
        };
        if blocks <= fit {
            return Ok(());
        }
        let (grid, shared) = (self.grid, self.shared_bytes);
        Err(self.refused(
            operation,
            format!(
                "a cooperative launch has all its blocks on the device at once: the grid of {grid:?} has \
                 {blocks} blocks, and {fit} fit, of {threads} threads and {shared} bytes of dynamic shared \
                 memory each; launch at most so many"
            ),
        ))
    }

    fn run_on_gpu(
        &self,
        gpu: &Gpu,
        kernel: &GpuKernel,
        stream: &GpuStream,
        operation: &str,
    ) -> Result<Launched, Error> {
        self.check_whole(operation)?;
        let mut memories: Vec<(&GpuMemory, bool)> = Vec::new();
        for (index, slot) in self.slots.iter().enumerate() {
            if self.peers.contains(&index) {
                continue;
            }
            for (memory, write) in slot.memories() {
                if let Place::Cuda(memory) = &memory.place {
                    memories.push((memory, write));
                }
            }
        }
        gpu.launch(stream, &self.for_gpu(kernel), &memories)?;
        Ok(Launched::new(None))
    }

    /// Refuses what no GPU does with a launch.
    fn check_whole(&self, operation: &str) -> Result<(), Error> {
        let what = match (&self.trace, &self.blocks) {
            (Some(_), _) => "traces a launch",
            (None, Some(_)) => "runs some blocks of a grid",
            (None, None) if self.bounds != Bounds::default() => "bounds a launch",
            (None, None) => return Ok(()),
        };
        let why = format!("only the emulator {what}; use Device::simt() for it");
        Err(self.refused(operation, why))
    }

    /// The launch as the driver is given it.
    pub(super) fn for_gpu<'b>(&self, kernel: &'b GpuKernel) -> GpuLaunch<'b> {
        let Launch { grid, block, shared_bytes, cooperative, .. } = *self;
        let params = Packed::new(&kernel.params, &self.values(), kernel.room);
        GpuLaunch { kernel, grid, block, shared_bytes, cooperative, params }
    }

    /// The launch as a graph keeps it: it borrows nothing.
    pub(super) fn record(self, operation: &str) -> Result<Recorded, Error> {
        if !self.function.device.is_simt() {
            self.check_whole(operation)?;
        }
        if self.trace.is_some() {
            return Err(
                self.refused(operation, "a trace cannot be recorded; trace the launch by itself")
            );
        }
        let Launch {
            function,
            grid,
            block,
            shared_bytes,
            cooperative,
            slots,
            peers,
            blocks,
            bounds,
            ..
        } = self;
        let function = function.clone();
        Ok(Recorded {
            function,
            grid,
            block,
            shared_bytes,
            cooperative,
            slots,
            peers,
            blocks,
            bounds,
        })
    }

    fn emulate(mut self, emulator: &Emulator, kernel: &Kernel) -> Result<Launched, Error> {
        let packed = Packed::new(kernel.params(), &self.values(), 0);
        let mut launch = simt::Launch::new(kernel, self.grid, self.block, packed.bytes());
        launch.dynamic_shared = self.shared_bytes;
        let Bounds { instructions, host_bytes, deadline } = self.bounds;
        launch.instructions = instructions.unwrap_or(launch.instructions);
        launch.host_bytes = host_bytes.unwrap_or(launch.host_bytes);
        let (all, cooperative) = (0..launch.blocks(), self.cooperative);
        let blocks = match self.blocks {
            Some(ref blocks) if blocks.start > blocks.end || blocks.end > all.end => {
                let operation = format!("launching `{}`", kernel.name());
                let why = format!("blocks {blocks:?} are not in the grid's {all:?}");
                return Err(self.refused(&operation, why));
            }
            Some(ref blocks) => blocks.clone(),
            None => all,
        };
        let Some(deadline) = deadline else {
            let counters =
                emulator.run(Emulation { launch, blocks, cooperative, trace: self.trace })?;
            return Ok(Launched::new(Some(counters)));
        };
        let operation = format!("launching `{}`", kernel.name());
        let trace = self.trace.take();
        let counters = bounds::within(deadline, |over| {
            emulator.run(Emulation {
                launch: simt::Launch { cancel: Some(over), ..launch },
                blocks,
                cooperative,
                trace,
            })
        });
        match counters.map_err(|error| self.refused(&operation, error))? {
            Ok(counters) => Ok(Launched::new(Some(counters))),
            Err(Error::Kernel(mut report)) if report.kind == ReportKind::Cancelled => {
                report.message =
                    format!("passes its deadline of {deadline:?}: it {}", report.message);
                Err(Error::Kernel(report))
            }
            Err(error) => Err(error),
        }
    }

    /// What the kernel sees of every argument.
    fn values(&self) -> Vec<Value> {
        let address = |slot: &Slot| match slot {
            Slot::Pointer { memory, start, .. } => match &memory.place {
                Place::Nowhere => 0,
                Place::Cuda(memory) => memory.address(*start),
                Place::Simt { address, .. } => address + start,
            },
            _ => 0,
        };
        let value = |slot: &Slot| match slot {
            Slot::Number { value, .. } => Value::Words(*value),
            Slot::Null | Slot::Pointer { .. } => Value::Words([address(slot), 0]),
            Slot::Bytes { bytes, pointers } => {
                let mut bytes = bytes.to_vec();
                for (at, slot) in pointers.iter() {
                    bytes[*at..*at + 8].copy_from_slice(&address(slot).to_le_bytes());
                }
                Value::Bytes(bytes)
            }
        };
        self.slots.iter().map(value).collect()
    }
}

/// A launch that has been checked, and that keeps everything it needs.
#[derive(Debug)]
pub(super) struct Recorded {
    function: Function,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    cooperative: bool,
    slots: Vec<Slot>,
    peers: Vec<usize>,
    blocks: Option<Range<u64>>,
    bounds: Bounds,
}

impl Recorded {
    pub(super) fn function(&self) -> &Function {
        &self.function
    }

    /// The launch that was recorded, to be run once more; without a trace.
    pub(super) fn launch(&self) -> Launch<'_> {
        let Recorded { grid, block, shared_bytes, cooperative, bounds, .. } = *self;
        let (function, slots, blocks) = (&self.function, self.slots.clone(), self.blocks.clone());
        let (peers, trace) = (self.peers.clone(), None);
        Launch {
            function,
            grid,
            block,
            shared_bytes,
            cooperative,
            slots,
            peers,
            blocks,
            trace,
            bounds,
        }
    }

    /// What it reads and, where it says so, writes.
    pub(super) fn memories(&self) -> impl Iterator<Item = (&Arc<Allocation>, bool)> {
        self.slots.iter().flat_map(Slot::memories)
    }
}
