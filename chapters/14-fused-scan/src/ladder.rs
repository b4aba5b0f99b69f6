//! The kernels of the chapter, each loaded on a device.
//!
//! A rung is a kernel of `kernels/fused`, or the library's own one, launched here argument by
//! argument instead of through its interface: so all rungs take the same arrays, and the emulator
//! can trace each of them. The sizes of blocks and of shared memory repeat constants of the
//! kernels. `tests/suite.rs` compares every rung with its bound on every device, and the library's
//! kernels with the library bit by bit.

use linrec::Error;
use linrec::contract::Domain;
use linrec::device::{Buffer, Device, Function, Launched, ScanInputs, ScanShape, Stream};
use linrec::kernels;
use linrec::simt::{Counters, Trace};

use crate::problem::{Order, Problem, STATES, Sizes};

/// A rung of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// One block for each channel, and one scan for each state.
    BlockScan,
    /// One lane for each channel.
    Lane,
    /// Four lanes for two channels.
    Quad,
    /// The library's kernel, in which helper warps prepare the decays ahead of time.
    Shipped,
    /// The library's kernel with exponentials that have the same bits on every device.
    Exact,
}

impl Rung {
    /// All rungs, in the order of the page.
    pub const ALL: [Rung; 5] =
        [Rung::BlockScan, Rung::Lane, Rung::Quad, Rung::Shipped, Rung::Exact];

    /// Returns the name in tables and records.
    pub fn name(self) -> &'static str {
        match self {
            Rung::BlockScan => "block_scan",
            Rung::Lane => "lane",
            Rung::Quad => "quad",
            Rung::Shipped => "shipped",
            Rung::Exact => "shipped, exact",
        }
    }

    /// Returns the path of the source in `kernels`.
    pub fn file(self) -> &'static str {
        match self {
            Rung::BlockScan => "fused/block_scan.cu",
            Rung::Lane => "fused/lane.cu",
            Rung::Quad => "fused/quad.cu",
            Rung::Shipped | Rung::Exact => "selective_scan_fwd.cu",
        }
    }

    fn entry(self) -> &'static str {
        match self {
            Rung::BlockScan => "fused_block_scan<128>",
            Rung::Lane => "fused_lane<64>",
            Rung::Quad => "fused_quad<4>",
            Rung::Shipped => "selective_scan_fwd<float, 4, false, false>",
            Rung::Exact => "selective_scan_fwd<float, 4, false, true>",
        }
    }

    /// Returns the number of threads of a block, and the number of its channels.
    fn block(self) -> (u32, usize) {
        match self {
            Rung::BlockScan => (128, 1),
            Rung::Lane => (64, 64),
            Rung::Quad => (128, 64),
            Rung::Shipped | Rung::Exact => (256, 64),
        }
    }

    /// Returns the number of warps of a launch.
    pub fn warps(self, sizes: Sizes) -> usize {
        let (threads, per_block) = self.block();
        sizes.batch * sizes.channels.div_ceil(per_block) * (threads / 32) as usize
    }

    /// Returns the order in which the kernel adds.
    pub fn order(self, len: usize) -> Order {
        match self {
            Rung::BlockScan => Order { levels: Domain::tree_levels(len), additions: 17 },
            Rung::Lane => Order { levels: 0, additions: 17 },
            Rung::Quad | Rung::Shipped | Rung::Exact => Order { levels: 0, additions: 7 },
        }
    }

    /// Returns true if the length of rows has to be a multiple of a vector.
    pub fn needs_vectors(self) -> bool {
        matches!(self, Rung::BlockScan | Rung::Lane)
    }

    fn is_shipped(self) -> bool {
        matches!(self, Rung::Shipped | Rung::Exact)
    }
}

/// The bytes of shared memory of the library's kernel with four computing warps and at most 16
/// states: three tiles of u and one tile each of delta and z, for 64 channels; rows of B and C;
/// pairs and couplings for two tiles; sums of step sizes; restarts.
const SHARED_BYTES: u32 =
    (5 * 64 + 32) * 32 * 4 + 2 * 64 * 32 * 8 + 2 * 32 * 32 * 4 + 2 * 64 * 4 + 16;
/// The kernel's last argument: step sizes pass through softplus, and B and C vary.
const FLAGS: i32 = 1 + 2 + 4;

/// A rung, loaded on a device.
#[derive(Debug, Clone)]
pub struct Kernel {
    rung: Rung,
    device: Device,
    function: Function,
}

/// A problem in a device's memory.
#[derive(Debug)]
pub struct Arrays {
    sizes: Sizes,
    /// The arrays u, delta, z, B, C, A, D.
    inputs: [Buffer<f32>; 7],
}

/// The names of the inputs, in the order of [`Arrays`].
pub const INPUTS: [&str; 7] = ["u", "delta", "z", "B", "C", "A", "D"];

impl Arrays {
    /// Uploads a problem, each array into a separate buffer.
    ///
    /// # Errors
    ///
    /// Returns an error if the device has not enough memory.
    pub fn upload(device: &Device, problem: &Problem) -> Result<Arrays, Error> {
        let Problem { u, delta, z, b, c, a, d, .. } = problem;
        let upload = |name, values: &[f32]| -> Result<Buffer<f32>, Error> {
            let mut buffer = device.allocate_named(name, values.len())?;
            buffer.upload(values)?;
            Ok(buffer)
        };
        let [of_u, of_delta, of_z, of_b, of_c, of_a, of_d] = INPUTS;
        let inputs = [
            upload(of_u, u)?,
            upload(of_delta, delta)?,
            upload(of_z, z)?,
            upload(of_b, b)?,
            upload(of_c, c)?,
            upload(of_a, a)?,
            upload(of_d, d)?,
        ];
        Ok(Arrays { sizes: problem.sizes, inputs })
    }

    /// Uploads a problem into one piece of memory, in which addresses identify the arrays.
    ///
    /// # Errors
    ///
    /// Returns an error if the device has not enough memory.
    pub fn in_one_piece(device: &Device, problem: &Problem) -> Result<Arrays, Error> {
        let Problem { u, delta, z, b, c, a, d, .. } = problem;
        let parts = [u, delta, z, b, c, a, d];
        let all: Vec<f32> = parts.into_iter().flatten().copied().collect();
        let all = device.upload(&all)?;
        let mut begin = 0;
        let mut next = |part: &Vec<f32>| {
            begin += part.len();
            all.slice(begin - part.len()..begin)
        };
        let inputs = [next(u)?, next(delta)?, next(z)?, next(b)?, next(c)?, next(a)?, next(d)?];
        Ok(Arrays { sizes: problem.sizes, inputs })
    }

    /// Returns the inputs and the shape for the library's scan.
    pub fn for_the_library(&self) -> (ScanInputs<'_, f32>, ScanShape) {
        let [u, delta, z, b, c, a, d] = &self.inputs;
        let Sizes { batch, channels, len } = self.sizes;
        let shape = ScanShape { batch, channels, seq_len: len, states: STATES, groups: 1 };
        let inputs = ScanInputs {
            u,
            delta,
            a,
            b: b.into(),
            c: c.into(),
            d: Some(d),
            z: Some(z),
            delta_bias: None,
            softplus: true,
            initial: None,
            restarts: None,
        };
        (inputs, shape)
    }
}

impl Kernel {
    /// Loads a rung.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if the kernel cannot be found, compiled or loaded.
    pub fn new(device: &Device, rung: Rung) -> Result<Kernel, Error> {
        Kernel::load(device, rung, rung.file())
    }

    /// Loads the kernel of another file in place of a rung's.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Kernel::new`].
    pub fn load(device: &Device, rung: Rung, file: &str) -> Result<Kernel, Error> {
        let program = kernels::program(file).ok_or_else(|| {
            let message = format!("there is no kernels/{file}");
            Error::Device { device: device.label().to_owned(), message }
        })?;
        let module = device.program(&program.with_entries([rung.entry()]))?;
        Ok(Kernel { rung, device: device.clone(), function: module.function(rung.entry())? })
    }

    /// Queues a forward pass; the emulator records it in `trace`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Unsupported`] if the kernel needs rows of whole vectors and gets others,
    /// [`Error::Device`] if the device fails, and [`Error::Kernel`] with what the emulator finds.
    pub fn launch(
        &self,
        arrays: &Arrays,
        out: &mut Buffer<f32>,
        trace: Option<&mut Trace>,
    ) -> Result<Launched, Error> {
        self.launch_on(&self.device.stream(), arrays, out, trace)
    }

    /// Does the same as [`Kernel::launch`] on a given stream.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Kernel::launch`].
    // ANCHOR: launch
    pub fn launch_on(
        &self,
        stream: &Stream,
        arrays: &Arrays,
        out: &mut Buffer<f32>,
        trace: Option<&mut Trace>,
    ) -> Result<Launched, Error> {
        let Sizes { batch, channels, len } = arrays.sizes;
        if self.rung.needs_vectors() && !len.is_multiple_of(4) {
            let what = format!("{len} steps, which are no multiple of four");
            return Err(Error::Unsupported { engine: self.rung.name().into(), what });
        }
        let [u, delta, z, b, c, a, d] = &arrays.inputs;
        let (threads, per_block) = self.rung.block();
        let blocks = (batch * channels.div_ceil(per_block)) as u32;
        let launch = self.function.launch(blocks, threads);
        let (channels, len) = (channels as i32, len as i64);
        let launch = if self.rung.is_shipped() {
            let none = None::<&Buffer<f32>>;
            let launch = launch.shared(SHARED_BYTES).arg(u).arg(delta).arg(a).arg(b).arg(c).arg(d);
            // No bias, initial states or restarts; no last states or checkpoints; one chunk.
            let launch = launch.arg(z).arg(none).arg(none).arg(none).arg(out).arg(none).arg(none);
            let launch = launch.arg(none).arg(none).arg(batch as i32).arg(channels).arg(1_i32);
            let chunk_steps = (len as u64).next_multiple_of(32) as i64;
            launch.arg(STATES as i32).arg(len).arg(chunk_steps).arg(FLAGS)
        } else {
            let launch = launch.arg(u).arg(delta).arg(a).arg(b).arg(c).arg(d).arg(z);
            launch.arg(out).arg(channels).arg(len)
        };
        let launch = match trace {
            Some(trace) => launch.traced(trace),
            None => launch,
        };
        launch.run(stream)
    }
    // ANCHOR_END: launch

    /// Computes the outputs of a problem, and on the emulator the counters.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Kernel::launch`].
    pub fn compute(&self, problem: &Problem) -> Result<(Vec<f32>, Counters), Error> {
        let arrays = Arrays::upload(&self.device, problem)?;
        let mut out = self.device.allocate_named("out", problem.sizes.elements())?;
        out.poison()?;
        let launched = self.launch(&arrays, &mut out, None)?;
        Ok((out.download()?, launched.counters().cloned().unwrap_or_default()))
    }
}
