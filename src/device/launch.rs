//! Launches: a grid of blocks, and the arguments of its kernel.
//!
//! A [`Launch`] is put together call by call and checked when it runs: its extent against the
//! device's limits, its arguments against the kernel's parameters, and the number of its blocks
//! against what the device holds if they may wait for each other. Only then a backend is given its
//! [`Spec`]. A recording keeps the same `Spec`, so that a replay is the launch that was checked.
//! The tests are `launches`, `parameters`, `cooperative`, `bounds` and `graphs` in
//! `tests/suite/device`.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::argument::{Argument, Slot};
use super::buffer::Allocation;
use super::signature::{self, Value};
use super::stream::Queue;
use super::{Buffer, Function, Stream, recording};
use crate::Error;
use crate::kernels::KernelChoice;
use crate::simt::{Counters, Trace};

/// A grid's or a block's extent along each axis; made from a number, a tuple or an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dim(pub [u32; 3]);

macro_rules! dims {
    ($($from:ty: $extent:pat => $all:expr;)*) => {$(
        impl From<$from> for Dim {
            fn from($extent: $from) -> Dim {
                Dim($all)
            }
        }
    )*};
}

dims! {
    u32: x => [x, 1, 1];
    (u32, u32): (x, y) => [x, y, 1];
    (u32, u32, u32): (x, y, z) => [x, y, z];
    [u32; 3]: extent => extent;
}

/// The mailboxes of all sequences of a launch: the state before each sequence arrives in one, and
/// the state behind it leaves through the other.
#[derive(Debug)]
pub(super) struct Mail {
    pub(super) from: Option<Buffer<u8>>,
    pub(super) to: Option<Buffer<u8>>,
    /// The number of this pass; mail of other passes has other numbers.
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
    pub(super) spec: Spec,
    trace: Option<&'a mut Trace>,
}

/// A launch without its kernel and its trace. It borrows nothing and keeps the memory that its
/// arguments point to.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// The bytes of dynamic shared memory of each block.
    pub(super) shared_bytes: u32,
    /// True if all blocks are on the device at once.
    pub(super) cooperative: bool,
    slots: Vec<Slot>,
    /// The indices of arguments in memory that kernels of other devices use at the same time.
    peers: Vec<usize>,
    /// The blocks of the grid that run; all if it is `None`.
    pub(super) blocks: Option<Range<u64>>,
    pub(super) bounds: Bounds,
}

/// The limits that a launch was given; the others are those of
/// [`simt::Launch::new`](crate::simt::Launch::new).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) instructions: Option<u64>,
    pub(super) host_bytes: Option<u64>,
    pub(super) deadline: Option<Duration>,
}

impl<'a> Launch<'a> {
    pub(super) fn new(function: &'a Function, grid: Dim, block: Dim) -> Launch<'a> {
        let spec = Spec::new(grid.0, block.0, function.params().len());
        Launch { function, spec, trace: None }
    }

    /// Gives every block `bytes` bytes of dynamic shared memory, in addition to what the kernel
    /// declares.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.spec.shared_bytes = bytes;
        self
    }

    /// Has all blocks of the grid on the device at once, so that blocks may wait for each other: at
    /// a barrier of the whole grid, or for what another block writes. Without this call a launch
    /// may run its blocks in any order and one after the other, and a block that waits for a later
    /// one then waits without end.
    ///
    /// On a GPU, [`Launch::run`] refuses a grid of more blocks than [`Function::resident_blocks`].
    /// The emulator takes any number, as long as all blocks together have at most 8192 warps. A
    /// recorded launch is checked when it is recorded, and stays cooperative. Nothing ends a block
    /// that waits for what never comes: on a GPU it keeps the device busy without end, and the
    /// emulator reports it.
    ///
    /// ```
    /// # use linrec::device::Device;
    /// // Each block writes its number, waits for all others, and reads the next block's number.
    /// # let ptx = "
    /// # .version 8.0
    /// # .target sm_80
    /// # .address_size 64
    /// # .visible .entry next(.param .u64 arrived, .param .u64 numbers, .param .u64 found) {
    /// #     .reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .pred %p1;
    /// #     ld.param.u64 %rd1, [arrived]; ld.param.u64 %rd2, [numbers];
    /// #     ld.param.u64 %rd3, [found];
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
        self.spec.cooperative = true;
        self
    }

    /// Adds the next argument.
    pub fn arg(mut self, argument: impl Argument<'a>) -> Self {
        self.spec.slots.push(argument.into_slot());
        self
    }

    /// Adds the three arguments of a kernel that
    /// [takes mail](crate::kernels::KernelChoice::takes_mail), for sequences that are on this
    /// device alone: two null pointers, and 0.
    pub fn without_mail(self) -> Self {
        let none: Option<&Buffer<u8>> = None;
        self.arg(none).arg(none).arg(0_u32)
    }

    /// Adds the same three arguments for sequences that continue on other devices.
    pub(super) fn with_mail(self, mail: &'a mut Mail) -> Self {
        let Mail { from, to, epoch } = mail;
        self.peer_arg(from.as_ref()).peer_arg(to.as_mut()).arg(*epoch)
    }

    /// Adds an argument in memory that the device [reaches](super::Device::reach) and that kernels
    /// of other devices may use at the same time: the kernels order their accesses by themselves.
    fn peer_arg(mut self, argument: impl Argument<'a>) -> Self {
        self.spec.peers.push(self.spec.slots.len());
        self.arg(argument)
    }

    /// Runs only these blocks of the grid, which see the whole grid's size. On the emulator only.
    pub fn blocks(mut self, blocks: Range<u64>) -> Self {
        self.spec.blocks = Some(blocks);
        self
    }

    /// Records the values of the lanes at every shuffle, barrier and access. On the emulator only,
    /// which then runs the blocks one after the other.
    pub fn traced(mut self, trace: &'a mut Trace) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Lets the warps of all its blocks execute at most `most` instructions, instead of
    /// [`simt::Launch::INSTRUCTIONS`](crate::simt::Launch::INSTRUCTIONS). On the emulator only. A
    /// launch that passes the limit is an [`Error::Kernel`] that says where.
    pub fn instructions(mut self, most: u64) -> Self {
        self.spec.bounds.instructions = Some(most);
        self
    }

    /// Lets the emulator allocate at most `most` bytes of the host for the launch, instead of
    /// [`simt::Launch::HOST_BYTES`](crate::simt::Launch::HOST_BYTES). On the emulator only. A
    /// launch that passes the limit is an [`Error::Kernel`] that says what
    /// the bytes were needed for.
    pub fn host_bytes(mut self, most: u64) -> Self {
        self.spec.bounds.host_bytes = Some(most);
        self
    }

    /// Ends the launch some milliseconds after this time, if it is not over by then: an
    /// [`Error::Kernel`] of kind
    /// [`Cancelled`](crate::simt::ReportKind::Cancelled). On the emulator only. In a
    /// [`Graph`](super::Graph) the time starts anew with every replay.
    pub fn deadline(mut self, time: Duration) -> Self {
        self.spec.bounds.deadline = Some(time);
        self
    }

    /// Queues the launch on a stream; on the emulator it is over when this returns.
    ///
    /// The emulator finds a mistake of the kernel now ([`Error::Kernel`]). A GPU reports it in a
    /// later operation on the device, if it notices the mistake at all.
    ///
    /// On the stream that [`Device::record`](super::Device::record) passes in, the launch is
    /// checked and recorded, and runs when the graph is replayed.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the number of arguments is wrong, or an argument has the wrong size or
    /// is on another device; if grid, block or shared memory pass a limit; if the launch is
    /// cooperative, and its blocks do not fit on the device at once or the device takes no such
    /// launches; if the device refuses; if a launch on a GPU has blocks, bounds or a trace; if a
    /// recorded launch has a trace; or if launches are being recorded and this is another stream.
    /// [`Error::Kernel`] with what the emulator found.
    pub fn run(self, stream: &Stream) -> Result<Launched, Error> {
        let operation = format!("launching `{}`", self.function.name());
        let device = &self.function.device;
        device.must_be(&stream.device, &operation, "the stream")?;
        self.check_extent(&operation)?;
        self.check_arguments(&operation)?;
        self.check_resident(&operation)?;
        if let Queue::Recording(recorder) = &stream.queue {
            return recorder
                .add(self.record(&operation)?, &operation)
                .map(|()| Launched::new(None));
        }
        recording::refuse_other_stream(device, &operation)?;
        self.check_whole(&operation)?;
        let Launch { function, spec, trace } = self;
        let stream = stream.queue.handle();
        device.backend.launch(&function.kernel, &spec, trace, stream).map(Launched::new)
    }

    /// Runs launches of one kernel side by side, each with all its blocks, which may wait for what
    /// blocks of another launch write: like GPUs of one host that reach each other's memory. On the
    /// emulator only, where the launches are on one device and take turns. A release and an acquire
    /// at system scope must order what one launch writes and another reads, as between devices;
    /// otherwise the emulator reports a race. All launches are over when this returns.
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
        for launch in launches {
            device.must_be(&launch.function.device, &operation, "a launch")?;
            launch.check_extent(&operation)?;
            launch.check_arguments(&operation)?;
        }
        recording::refuse(device, &operation)?;
        let specs: Vec<_> =
            launches.iter().map(|launch| (&*launch.function.kernel, &launch.spec)).collect();
        let counters = device.backend.run_side_by_side(&specs)?.ok_or_else(|| {
            first.refused(&operation, "only the emulator does; use Device::simt()")
        })?;
        Ok(counters.into_iter().map(|counters| Launched::new(Some(counters))).collect())
    }

    fn refused(&self, operation: &str, why: impl std::fmt::Display) -> Error {
        Error::device(self.function.device.label(), format!("{operation}: {why}"))
    }

    fn check_extent(&self, operation: &str) -> Result<(), Error> {
        let limits = self.function.device.attributes();
        let Spec { grid, block, shared_bytes: shared, .. } = self.spec;
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
        self.function.check_shared(shared, limits.shared_bytes_opt_in).or_else(refused)
    }

    fn check_arguments(&self, operation: &str) -> Result<(), Error> {
        let Launch { function, spec, .. } = self;
        signature::check(function.params(), &spec.slots)
            .map_err(|why| self.refused(operation, why))?;
        for (index, memory, _) in spec.own_memories() {
            let what = format!("argument {}", index + 1);
            function.device.must_be(&memory.device, operation, &what)?;
        }
        Ok(())
    }

    /// Refuses a cooperative launch if some blocks would have to wait for others to end.
    fn check_resident(&self, operation: &str) -> Result<(), Error> {
        let Launch { function, spec, .. } = self;
        if !spec.cooperative {
            return Ok(());
        }
        // Block and grid have been checked: the first product is small, and the second a u64.
        let threads = spec.block.iter().product();
        let blocks: u64 = spec.grid.iter().map(|&extent| u64::from(extent)).product();
        let fit = match function.device.backend.most_together(threads) {
            Some(most) => most,
            None => function.resident_blocks(threads, spec.shared_bytes)?.into(),
        };
        if blocks <= fit {
            return Ok(());
        }
        let (grid, shared) = (spec.grid, spec.shared_bytes);
        Err(self.refused(
            operation,
            format!(
                "a cooperative launch has all its blocks on the device at once: the grid of {grid:?} has \
                 {blocks} blocks, and {fit} fit, of {threads} threads and {shared} bytes of dynamic shared \
                 memory each; launch at most {fit}"
            ),
        ))
    }

    /// Refuses what no GPU does with a launch.
    fn check_whole(&self, operation: &str) -> Result<(), Error> {
        let what = match (&self.trace, &self.spec.blocks) {
            _ if self.function.device.is_simt() => return Ok(()),
            (Some(_), _) => "traces a launch",
            (None, Some(_)) => "runs some blocks of a grid",
            (None, None) if self.spec.bounds != Bounds::default() => "bounds a launch",
            (None, None) => return Ok(()),
        };
        let why = format!("only the emulator {what}; use Device::simt() for it");
        Err(self.refused(operation, why))
    }

    /// Returns the launch as a graph keeps it.
    pub(super) fn record(self, operation: &str) -> Result<Recorded, Error> {
        self.check_whole(operation)?;
        if self.trace.is_some() {
            return Err(
                self.refused(operation, "a trace cannot be recorded; trace the launch by itself")
            );
        }
        Ok(Recorded { function: self.function.clone(), spec: self.spec })
    }
}

impl Spec {
    /// A launch with room for `params` arguments.
    pub(super) fn new(grid: [u32; 3], block: [u32; 3], params: usize) -> Spec {
        Spec {
            grid,
            block,
            shared_bytes: 0,
            cooperative: false,
            slots: Vec::with_capacity(params),
            peers: Vec::new(),
            blocks: None,
            bounds: Bounds::default(),
        }
    }

    /// Returns the value of every argument, as the kernel sees it.
    pub(super) fn values(&self) -> Vec<Value> {
        let address = |slot: &Slot| match slot {
            Slot::Pointer { memory, start, .. } => memory.address(*start),
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

    /// The memories that it points into, with the index of the argument and whether the kernel
    /// writes there. Memory of peers is left out.
    pub(super) fn own_memories(&self) -> impl Iterator<Item = (usize, &Arc<Allocation>, bool)> {
        let own = |&(index, _): &(usize, _)| !self.peers.contains(&index);
        self.slots.iter().enumerate().filter(own).flat_map(|(index, slot)| {
            slot.memories().map(move |(memory, write)| (index, memory, write))
        })
    }
}

/// A launch that has been checked, and that keeps everything it needs.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) function: Function,
    pub(super) spec: Spec,
}

impl Recorded {
    /// Returns the launch, to be run once more; without a trace.
    pub(super) fn launch(&self) -> Launch<'_> {
        Launch { function: &self.function, spec: self.spec.clone(), trace: None }
    }

    /// The memories that it points into, peers' included, and whether the kernel writes there.
    pub(super) fn memories(&self) -> impl Iterator<Item = (&Arc<Allocation>, bool)> {
        self.spec.slots.iter().flat_map(Slot::memories)
    }
}

/// A launch that has been queued, and on the emulator run; or one that has been recorded.
#[derive(Debug, Clone)]
pub struct Launched {
    counters: Option<Counters>,
    choice: Option<KernelChoice>,
}

impl Launched {
    /// A launch that was queued or recorded.
    pub(super) fn new(counters: Option<Counters>) -> Launched {
        Launched { counters, choice: None }
    }

    /// No launch, because there was nothing to compute.
    pub(super) fn nothing(function: &Function) -> Launched {
        Launched::new(function.device.is_simt().then(Counters::default))
    }

    /// Adds the kernel of the catalogue that it was: [`Launched::choice`].
    pub(super) fn of(self, choice: KernelChoice) -> Launched {
        Launched { choice: Some(choice), ..self }
    }

    /// Adds the counters of launches that belong to it.
    pub(super) fn and(self, others: &Launched) -> Launched {
        let counters = self.counters.zip(others.counters.as_ref()).map(|(mut sum, others)| {
            sum += others;
            sum
        });
        Launched { counters, ..self }
    }

    /// The emulator's counters; `None` on a GPU, and for a launch that was only recorded.
    pub fn counters(&self) -> Option<&Counters> {
        self.counters.as_ref()
    }

    /// The kernel of the catalogue, if a [`Recurrence`](super::Recurrence) launched it.
    pub fn choice(&self) -> Option<KernelChoice> {
        self.choice
    }
}
