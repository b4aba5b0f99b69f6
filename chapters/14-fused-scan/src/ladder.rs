//! The kernels of the chapter, each loaded on a device.

use linrec::Error;
use linrec::contract::Domain;
use linrec::device::{Buffer, Device, Function, Launched, ScanInputs, ScanShape, Stream};
use linrec::kernels;
use linrec::simt::{Counters, Trace};

use crate::problem::{Order, Problem, STATES, Sizes};

/// A rung of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// A block for each channel, a scan for each state.
    BlockScan,
    /// A lane for each channel.
    Lane,
    /// Four lanes for two channels.
    Quad,
    /// The library's kernel: warps that help, decays ahead.
    Shipped,
    /// The library's kernel with exponentials that have the same bits everywhere.
    Exact,
}

impl Rung {
    /// All of them, in the order of the page.
    pub const ALL: [Rung; 5] =
        [Rung::BlockScan, Rung::Lane, Rung::Quad, Rung::Shipped, Rung::Exact];

    /// Its name in tables and records.
    pub fn name(self) -> &'static str {
        match self {
            Rung::BlockScan => "block_scan",
            Rung::Lane => "lane",
            Rung::Quad => "quad",
            Rung::Shipped => "shipped",
            Rung::Exact => "shipped, exact",
        }
    }

    /// Its source in `kernels`.
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

    /// Threads of a block, and its channels.
    fn block(self) -> (u32, usize) {
        match self {
            Rung::BlockScan => (128, 1),
            Rung::Lane => (64, 64),
            Rung::Quad => (128, 64),
            Rung::Shipped | Rung::Exact => (256, 64),
        }
    }

    /// Warps of a launch.
    pub fn warps(self, sizes: Sizes) -> usize {
        let (threads, per_block) = self.block();
        sizes.batch * sizes.channels.div_ceil(per_block) * (threads / 32) as usize
    }

    /// In which order it adds up.
    pub fn order(self, len: usize) -> Order {
        match self {
            Rung::BlockScan => Order { levels: Domain::tree_levels(len), additions: 17 },
            Rung::Lane => Order { levels: 0, additions: 17 },
            Rung::Quad | Rung::Shipped | Rung::Exact => Order { levels: 0, additions: 7 },
        }
    }

    /// Whether rows have to be made of whole vectors.
    pub fn needs_vectors(self) -> bool {
        matches!(self, Rung::BlockScan | Rung::Lane)
    }

    fn is_shipped(self) -> bool {
        matches!(self, Rung::Shipped | Rung::Exact)
    }
}

/// Shared memory of the library's kernel, with four warps that compute and no more than 16 states:
/// three tiles of u and one each of delta and z, of 64 channels; rows of B and C; pairs and
/// couplings for two tiles; sums of step sizes; restarts.
const SHARED_BYTES: u32 =
    (5 * 64 + 32) * 32 * 4 + 2 * 64 * 32 * 8 + 2 * 32 * 32 * 4 + 2 * 64 * 4 + 16;
/// What its last argument says: step sizes through softplus, and B and C that vary.
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
    /// u, delta, z, B, C, A, D.
    inputs: [Buffer<f32>; 7],
}

/// The names of the inputs, in the order in which [`Arrays`] has them.
pub const INPUTS: [&str; 7] = ["u", "delta", "z", "B", "C", "A", "D"];

impl Arrays {
    /// Uploads a problem, each array into memory of its own.
    ///
    /// # Errors
    ///
    /// If the device has not enough memory.
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

    /// Uploads a problem into one piece of memory, array behind array, so that addresses tell them
    /// apart.
    ///
    /// # Errors
    ///
    /// If the device has not enough memory.
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

    /// What the library's scan is given of them, and their shape.
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
    /// [`Error::Device`] if it can be neither had nor compiled, or the device refuses it.
    pub fn new(device: &Device, rung: Rung) -> Result<Kernel, Error> {
        Kernel::load(device, rung, rung.file())
    }

    /// Loads the kernel of another file in a rung's place.
    ///
    /// # Errors
    ///
    /// As [`Kernel::new`].
    pub fn load(device: &Device, rung: Rung, file: &str) -> Result<Kernel, Error> {
        let program = kernels::program(file).ok_or_else(|| {
            let message = format!("there is no kernels/{file}");
            Error::Device { device: device.label().to_owned(), message }
        })?;
        let module = device.program(&program.with_entries([rung.entry()]))?;
        Ok(Kernel { rung, device: device.clone(), function: module.function(rung.entry())? })
    }

    /// Queues a forward pass; the emulator writes into `trace` what it does.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the rows are not made of whole vectors where they have to be,
    /// [`Error::Device`] if the device fails, and [`Error::Kernel`] with what the emulator finds.
    pub fn launch(
        &self,
        arrays: &Arrays,
        out: &mut Buffer<f32>,
        trace: Option<&mut Trace>,
    ) -> Result<Launched, Error> {
        self.launch_on(&self.device.stream(), arrays, out, trace)
    }

    /// [`Kernel::launch`] on a certain stream.
    ///
    /// # Errors
    ///
    /// As [`Kernel::launch`].
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
            // No bias, no first states, no restarts; neither last states nor checkpoints are
            // wanted, and nothing is cut.
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

    /// Computes a problem: its outputs, and on the emulator what was counted.
    ///
    /// # Errors
    ///
    /// As [`Kernel::launch`].
    pub fn compute(&self, problem: &Problem) -> Result<(Vec<f32>, Counters), Error> {
        let arrays = Arrays::upload(&self.device, problem)?;
        let mut out = self.device.allocate_named("out", problem.sizes.elements())?;
        out.poison()?;
        let launched = self.launch(&arrays, &mut out, None)?;
        Ok((out.download()?, launched.counters().cloned().unwrap_or_default()))
    }
}
