//! The first three ways of the chapter, each loaded on a device.

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
    /// Three launches: what each tile does, the state before each tile, the outputs.
    Three,
    /// One launch, in which each block waits for the state after the tile before its own.
    Chained,
    /// One launch, in which each block looks back over what the blocks before it have told.
    Decoupled,
}

impl Way {
    /// All of them, in the order of the page.
    pub const ALL: [Way; 3] = [Way::Three, Way::Chained, Way::Decoupled];

    /// Its name: that of its file in `kernels/long`.
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
    /// Vectors of 16 bytes for each thread.
    pub vectors: u32,
    /// Threads in a block.
    pub threads: u32,
}

impl Size {
    /// What is shipped: tiles of 256 steps, so that the emulator can have many.
    pub const SHIPPED: Size = Size { vectors: 1, threads: 64 };

    /// Steps of a tile.
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

/// Threads of the block that scans over the tiles in [`Way::Three`].
const SCANNING: u32 = 1024;

/// 128 bytes, as words of 32 bits: what [`Way::Chained`] and [`Way::Decoupled`] have for each tile,
/// and once more.
const WORDS: usize = 32;

/// What a launch computes with: one sequence.
#[derive(Debug)]
pub struct Arrays<'a> {
    /// The inputs.
    pub inputs: &'a Buffer<f32>,
    /// The coefficients.
    pub coeffs: &'a Buffer<f32>,
    /// The outputs.
    pub outputs: &'a mut Buffer<f32>,
    /// The state before the sequence; zero if there is none.
    pub initial: Option<&'a Buffer<f32>>,
    /// The state after the sequence, if wanted.
    pub final_state: Option<&'a mut Buffer<f32>>,
}

/// How the emulator runs [`Way::Chained`] and [`Way::Decoupled`].
#[derive(Debug, Default)]
pub struct Watch<'a> {
    /// Which blocks run together, as if there were no room for more: the next ones begin when these
    /// have ended. All at once if it is not given.
    pub blocks: Option<&'a [Range<u64>]>,
    /// For each tile, for how long its block is kept back once it knows what the tile does.
    pub delays: Option<&'a [i32]>,
    /// Where it is recorded.
    pub trace: Option<&'a mut Trace>,
}

impl Kernel {
    /// Loads a way, or compiles it.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if it can be neither had nor compiled, or the device refuses it.
    pub fn new(device: &Device, way: Way, size: Size) -> Result<Kernel, Error> {
        Kernel::load(device, way, size, &format!("long/{}.cu", way.name()))
    }

    /// Loads the kernel of another file in the place of this way's.
    ///
    /// # Errors
    ///
    /// As [`Kernel::new`].
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

    /// Its name in records: `decoupled:4x512`.
    pub fn label(&self) -> &str {
        self.name.split('@').next().unwrap_or_default()
    }

    /// Which way it is.
    pub fn way(&self) -> Way {
        self.way
    }

    /// How many tiles a sequence has: one, if it has no steps.
    pub fn tiles(&self, seq_len: usize) -> usize {
        seq_len.div_ceil(self.size.steps()).max(1)
    }

    /// What a launch over a sequence of up to so many steps needs beside its arrays. One launch
    /// uses it at a time, and leaves it ready for the next.
    ///
    /// # Errors
    ///
    /// If the device has not enough memory.
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

    /// Queues a forward pass over one sequence; returns what it was, launch by launch.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if an array does not begin at a multiple of 16 bytes,
    /// [`Error::Device`] if the workspace is too small or the device fails, and [`Error::Kernel`]
    /// with what the emulator finds.
    pub fn launch(
        &self,
        arrays: Arrays,
        workspace: &mut Buffer<u32>,
        stream: &Stream,
    ) -> Result<Vec<Launched>, Error> {
        self.watched(arrays, workspace, stream, Watch::default())
    }

    /// [`Kernel::launch`], watched by the emulator.
    ///
    /// # Errors
    ///
    /// As [`Kernel::launch`]; and of a GPU [`Error::Device`], if anything is to be watched.
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

    /// Computes one sequence on copies: its outputs, its final state, and what it counted.
    ///
    /// # Errors
    ///
    /// As [`Kernel::watched`].
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

    /// What the engine takes, and how often it rounds.
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

/// As the bench measures it: over one sequence, with a workspace of its own.
#[derive(Debug)]
pub struct Raced {
    kernel: Kernel,
    workspace: Mutex<Buffer<u32>>,
}

impl Raced {
    /// For sequences of up to so many steps.
    ///
    /// # Errors
    ///
    /// If the device has not enough memory.
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
            let what = format!("{} sequences; it takes one", shape.0);
            return Err(Error::Unsupported { engine: self.name(), what });
        }
        let mut workspace = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        let arrays = Arrays { inputs, coeffs, outputs, initial: None, final_state: None };
        self.kernel.launch(arrays, &mut workspace, stream).map(drop)
    }
}

/// What the emulator counted in all of them.
pub fn counted(launched: &[Launched]) -> Counters {
    let mut all = Counters::default();
    for counters in launched.iter().filter_map(Launched::counters) {
        all += counters;
    }
    all
}

/// One sequence after the other, forward, for tests.
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
            let what = String::from("reverse: it goes forward, over coefficients as such");
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
        let what = String::from("backward: it goes forward only");
        Err(Error::Unsupported { engine: self.name.clone(), what })
    }
}
