//! The first three ways of the chapter, each loaded on a device.
//!
//! Each [`Way`] divides one sequence into tiles, one for each block, and differs in how the state
//! passes from tile to tile: through three launches, through a chain of messages, or by looking
//! back over several messages. A [`Kernel`] launches a way over one sequence with a workspace for
//! the messages. On the emulator, a [`Watch`] delays blocks or runs them in a chosen order, which
//! no GPU offers. The tests in `tests/suite.rs` run every way through the test contract on every
//! device.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bench::field::Forward;
use linrec::contract::Domain;
use linrec::device::{Buffer, Device, Function, Launched, Stream};
use linrec::kernels;
use linrec::simt::{Counters, Trace};
use linrec::{Direction, Engine, Error, Gradients, Options, Outputs, validate};
use ndarray::{Array1, Array2, ArrayView2};

/// A way to compute one long sequence with many blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Three launches: the transition of each tile, the state before each tile, the outputs.
    Three,
    /// One launch, in which each block waits for the state after the tile before its own.
    Chained,
    /// One launch, in which each block looks back over the messages of the blocks before it.
    Decoupled,
}

impl Way {
    /// All ways, in the order of the page.
    pub const ALL: [Way; 3] = [Way::Three, Way::Chained, Way::Decoupled];

    /// Returns the name, which is also the name of its file in `kernels/long`.
    pub fn name(self) -> &'static str {
        match self {
            Way::Three => "three",
            Way::Chained => "chained",
            Way::Decoupled => "decoupled",
        }
    }
}

/// The size of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// The number of 16-byte vectors per thread.
    pub vectors: u32,
    /// The number of threads per block.
    pub threads: u32,
}

impl Size {
    /// The shipped size: tiles of 256 steps, so that the emulator can run many of them.
    pub const SHIPPED: Size = Size { vectors: 1, threads: 64 };

    /// Returns the number of steps of a tile.
    pub fn steps(self) -> usize {
        (4 * self.vectors * self.threads) as usize
    }
}

/// A way, loaded on a device.
#[derive(Debug, Clone)]
pub struct Kernel {
    way: Way,
    size: Size,
    device: Device,
    functions: Vec<Function>,
    name: String,
}

/// The number of threads of the block that scans over the tiles in [`Way::Three`].
const SCANNING: u32 = 1024;

/// The 32-bit words per tile in the workspace of [`Way::Chained`] and [`Way::Decoupled`], 128
/// bytes. The workspace has one such slot more than tiles.
const WORDS: usize = 32;

/// The arrays of a launch over one sequence.
#[derive(Debug)]
pub struct Arrays<'a> {
    /// The inputs.
    pub inputs: &'a Buffer<f32>,
    /// The coefficients.
    pub coeffs: &'a Buffer<f32>,
    /// The outputs.
    pub outputs: &'a mut Buffer<f32>,
    /// The state before the sequence; zero if `None`.
    pub initial: Option<&'a Buffer<f32>>,
    /// The buffer for the state after the sequence, if wanted.
    pub final_state: Option<&'a mut Buffer<f32>>,
}

/// The way in which the emulator runs [`Way::Chained`] and [`Way::Decoupled`].
#[derive(Debug, Default)]
pub struct Watch<'a> {
    /// Ranges of blocks that run one after the other, as if the device could hold only one range at
    /// a time. By default, all blocks run at once.
    pub blocks: Option<&'a [Range<u64>]>,
    /// For each tile, how long its block is delayed once it knows its tile's transition.
    pub delays: Option<&'a [i32]>,
    /// The trace that records the launch.
    pub trace: Option<&'a mut Trace>,
}

impl Kernel {
    /// Loads or compiles a way.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if it is neither shipped nor can be compiled, or if the device
    /// refuses it.
    pub fn new(device: &Device, way: Way, size: Size) -> Result<Kernel, Error> {
        Kernel::load(device, way, size, &format!("long/{}.cu", way.name()))
    }

    /// Loads the kernel of another file in place of this way's.
    ///
    /// # Errors
    ///
    /// Same as [`Kernel::new`].
    pub fn load(device: &Device, way: Way, size: Size, file: &str) -> Result<Kernel, Error> {
        let Size { vectors, threads } = size;
        let sized = |name: &str| format!("long_{name}<{vectors}, {threads}>");
        let entries = match way {
            Way::Three => vec![sized("reduce"), format!("long_scan<{SCANNING}>"), sized("apply")],
            way => vec![sized(way.name())],
        };
        let program = kernels::program(file).ok_or_else(|| {
            let message = format!("there is no kernels/{file}");
            Error::Device { device: device.label().to_owned(), message }
        })?;
        let module = device.program(&program.with_entries(entries.clone()))?;
        let functions: Result<_, _> = entries.iter().map(|entry| module.function(entry)).collect();
        let name = format!("{}:{vectors}x{threads}@{}", way.name(), device.label());
        Ok(Kernel { way, size, device: device.clone(), functions: functions?, name })
    }

    /// Returns the name in records: `decoupled:4x512`.
    pub fn label(&self) -> &str {
        self.name.split('@').next().unwrap_or_default()
    }

    /// Returns the way.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Returns the number of tiles of a sequence, which is one even without steps.
    pub fn tiles(&self, seq_len: usize) -> usize {
        seq_len.div_ceil(self.size.steps()).max(1)
    }

    /// Allocates the workspace for launches over sequences of up to `seq_len` steps. Only one
    /// launch may use it at a time; each leaves it ready for the next.
    ///
    /// # Errors
    ///
    /// Returns an error if the device does not have enough memory.
    // ANCHOR: workspace
    pub fn workspace(&self, seq_len: usize) -> Result<Buffer<u32>, Error> {
        let tiles = self.tiles(seq_len);
        let words = match self.way {
            // A transition and a state.
            Way::Three => 3 * tiles,
            Way::Chained | Way::Decoupled => WORDS * (tiles + 1),
        };
        let mut workspace = self.device.allocate_named("workspace", words)?;
        workspace.zero()?;
        Ok(workspace)
    }
    // ANCHOR_END: workspace

    /// Queues a forward pass over one sequence. Returns a record of each launch.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Unsupported`] if an array does not begin at a multiple of 16 bytes,
    /// [`Error::Device`] if the workspace is too small or the device fails, and [`Error::Kernel`]
    /// if the emulator finds a mistake.
    pub fn launch(
        &self,
        arrays: Arrays,
        workspace: &mut Buffer<u32>,
        stream: &Stream,
    ) -> Result<Vec<Launched>, Error> {
        self.watched(arrays, workspace, stream, Watch::default())
    }

    /// Does the same as [`Kernel::launch`], watched by the emulator.
    ///
    /// # Errors
    ///
    /// Same as [`Kernel::launch`], and [`Error::Device`] on a GPU if anything is to be watched.
    // ANCHOR: launch
    pub fn watched(
        &self,
        arrays: Arrays,
        workspace: &mut Buffer<u32>,
        stream: &Stream,
        watch: Watch,
    ) -> Result<Vec<Launched>, Error> {
        let Arrays { inputs: x, coeffs: c, outputs: y, initial, final_state } = arrays;
        if ![x, c, &*y].iter().all(|array| array.is_aligned_to(16)) {
            let what = String::from("an array that begins within a 16-byte vector");
            return Err(Error::Unsupported { engine: self.name.clone(), what });
        }
        let (seq_len, tiles, threads) = (y.len() as i64, self.tiles(y.len()), self.size.threads);
        match &self.functions[..] {
            [reduce, scan, apply] => {
                let mut does = workspace.slice(..2 * tiles)?;
                let mut states = workspace.slice(2 * tiles..3 * tiles)?;
                let blocks = tiles as u32;
                let first = reduce.launch(blocks, threads).arg(x).arg(c).arg(seq_len);
                let first = first.arg(&mut does).run(stream)?;
                let second = scan.launch(1, SCANNING).arg(&does).arg(initial);
                let second = second.arg(&mut states).arg(tiles as i32).run(stream)?;
                let third = apply.launch(blocks, threads).arg(x).arg(c).arg(y).arg(&states);
                let third = third.arg(final_state).arg(seq_len).run(stream)?;
                Ok(vec![first, second, third])
            }
            functions => {
                let Watch { blocks, delays, mut trace } = watch;
                let delays = delays.map(|delays| self.device.upload(delays)).transpose()?;
                let (all, mut final_state) = (0..tiles as u64, final_state);
                let ranges = blocks.unwrap_or(std::slice::from_ref(&all));
                let mut launched = Vec::new();
                for kernel in functions {
                    for range in ranges {
                        let launch = kernel.launch(tiles as u32, threads).arg(x).arg(c);
                        let launch = launch.arg(&mut *y).arg(initial);
                        let launch = launch.arg(final_state.as_deref_mut()).arg(seq_len);
                        let mut launch = launch.arg(&mut *workspace).arg(delays.as_ref());
                        if blocks.is_some() {
                            launch = launch.blocks(range.clone());
                        }
                        if let Some(trace) = trace.as_deref_mut() {
                            launch = launch.traced(trace);
                        }
                        launched.push(launch.run(stream)?);
                    }
                }
                Ok(launched)
            }
        }
    }
    // ANCHOR_END: launch

    /// Computes one sequence on copies. Returns its outputs, its final state, and the counters.
    ///
    /// # Errors
    ///
    /// Same as [`Kernel::watched`].
    pub fn compute(
        &self,
        inputs: &[f32],
        coeffs: &[f32],
        initial: Option<f32>,
        watch: Watch,
    ) -> Result<(Vec<f32>, f32, Counters), Error> {
        let upload = |name, values: &[f32]| -> Result<Buffer<f32>, Error> {
            let mut buffer = self.device.allocate_named(name, values.len())?;
            buffer.upload(values)?;
            Ok(buffer)
        };
        let (x, c) = (upload("inputs", inputs)?, upload("coeffs", coeffs)?);
        let initial = initial.map(|state| upload("initial", &[state])).transpose()?;
        let mut y = self.device.allocate_named("outputs", inputs.len())?;
        let mut last = self.device.allocate_named("final_state", 1)?;
        y.poison()?;
        last.poison()?;
        let arrays = Arrays {
            inputs: &x,
            coeffs: &c,
            outputs: &mut y,
            initial: initial.as_ref(),
            final_state: Some(&mut last),
        };
        let mut workspace = self.workspace(inputs.len())?;
        let launched = self.watched(arrays, &mut workspace, &self.device.stream(), watch)?;
        let last = last.download()?.first().copied().unwrap_or(f32::NAN);
        Ok((y.download()?, last, counted(&launched)))
    }

    /// Returns the domain of the test contract, with the number of rounding levels.
    pub fn domain(&self) -> Domain {
        Domain {
            tile: self.size.steps(),
            levels: Domain::tree_levels,
            backward: false,
            reverse: false,
            log_coeffs: false,
            ..Domain::default()
        }
    }
}

/// The way as the bench measures it: over one sequence, with a separate workspace.
#[derive(Debug)]
pub struct Raced {
    kernel: Kernel,
    workspace: Mutex<Buffer<u32>>,
}

impl Raced {
    /// Prepares for sequences of up to `max_len` steps.
    ///
    /// # Errors
    ///
    /// Returns an error if the device does not have enough memory.
    pub fn new(kernel: Kernel, max_len: usize) -> Result<Raced, Error> {
        let workspace = Mutex::new(kernel.workspace(max_len)?);
        Ok(Raced { kernel, workspace })
    }
}

impl Forward<f32> for Raced {
    fn name(&self) -> String {
        self.kernel.label().to_owned()
    }

    fn queue(
        &self,
        inputs: &Buffer<f32>,
        coeffs: &Buffer<f32>,
        outputs: &mut Buffer<f32>,
        shape: (usize, usize),
        stream: &Stream,
    ) -> Result<(), Error> {
        if shape != (1, outputs.len()) {
            let what = format!("{} sequences; it supports one", shape.0);
            return Err(Error::Unsupported { engine: self.name(), what });
        }
        let mut workspace = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        let arrays = Arrays { inputs, coeffs, outputs, initial: None, final_state: None };
        self.kernel.launch(arrays, &mut workspace, stream).map(drop)
    }
}

/// Adds up the emulator's counters of all launches.
pub fn counted(launched: &[Launched]) -> Counters {
    let mut all = Counters::default();
    for counters in launched.iter().filter_map(Launched::counters) {
        all += counters;
    }
    all
}

/// Computes sequence by sequence, forward only, for tests.
impl Engine<f32> for Kernel {
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(
        &self,
        inputs: ArrayView2<f32>,
        coeffs: ArrayView2<f32>,
        options: &Options<f32>,
    ) -> Result<Outputs<f32>, Error> {
        let shape = validate::forward(&inputs, &coeffs, options)?;
        if options.direction == Direction::Reverse || options.log_coeffs {
            let what = String::from(
                "reverse or log_coeffs: it only goes forward, over plain coefficients",
            );
            return Err(Error::Unsupported { engine: self.name.clone(), what });
        }
        let mut outputs = Array2::zeros(shape);
        let mut final_state = Array1::zeros(shape.0);
        for row in 0..shape.0 {
            let (x, c) = (inputs.row(row).to_vec(), coeffs.row(row).to_vec());
            let initial = options.initial.as_ref().map(|initial| initial[row]);
            let (y, last, _) = self.compute(&x, &c, initial, Watch::default())?;
            outputs.row_mut(row).assign(&Array1::from(y));
            final_state[row] = last;
        }
        Ok(Outputs { outputs, final_state })
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<f32>,
        coeffs: ArrayView2<f32>,
        outputs: ArrayView2<f32>,
        options: &Options<f32>,
    ) -> Result<Gradients<f32>, Error> {
        validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        let what = String::from("backward: it only goes forward");
        Err(Error::Unsupported { engine: self.name.clone(), what })
    }
}
