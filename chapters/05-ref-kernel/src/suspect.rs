//! A kernel with a planted mistake, as an engine.
//!
//! A mistake can show in two ways: the emulator stops at an access or a barrier that the machine
//! forbids, or the kernel computes to its end and the test contract finds wrong numbers. A
//! [`Suspect`] therefore launches a broken kernel exactly as its correct twin is launched. Offsets
//! that overflow 32 bits show only in an array of more than 2^31 elements, which `far_rows`
//! declares on the emulator. The tests in `tests/suite.rs` and the chapter's story try every
//! suspect.

use linrec::contract::Domain;
use linrec::contract::suspect::{self, Finding};
use linrec::device::{
    BackwardOptions, Buffer, Copying, Device, ForwardOptions, Function, Module, OverBuffers, Shape,
};
use linrec::{Direction, Error};

use crate::by_hand::{self, shipped};

/// A kernel from `kernels/broken/`, or its correct twin, on the emulator.
#[derive(Debug, Clone)]
pub struct Suspect {
    name: String,
    twin: Twin,
    device: Device,
    module: Module,
}

/// The correct kernel that a suspect should equal, which determines how it is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Twin {
    /// `linrec_ref.cu`: one thread per sequence.
    Ref,
    /// `block_scan.cu`: one block of 128 threads per sequence of at most 512 elements.
    BlockScan,
    /// `look_back.cu`: one sequence over many blocks of 32 threads with 8 elements each.
    LookBack,
}

impl Suspect {
    /// The correct kernels, in the order of `Twin`.
    pub const TWINS: [&str; 3] = ["linrec_ref.cu", "block_scan.cu", "look_back.cu"];

    /// Returns the names of the broken kernels whose twins this chapter knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let mut names: Vec<_> = Suspect::TWINS.into_iter().flat_map(suspect::names).collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// Loads the broken kernel of this name: `lost_carry`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if there is no such kernel, and [`Error::Unsupported`] if its twin
    /// belongs to a later chapter.
    pub fn new(name: &str) -> Result<Suspect, Error> {
        Suspect::load(&format!("broken/{name}"))
    }

    /// Loads the kernel whose shipped PTX has this name; `block_scan` is a correct one.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if there is no such kernel.
    pub fn load(name: &str) -> Result<Suspect, Error> {
        let device = Device::simt();
        let module = shipped(&device, name)?;
        let twin = match &module.functions().next() {
            Some(function) if function.name().starts_with("linrec_ref") => Twin::Ref,
            Some(function) if function.name().starts_with("block_scan") => Twin::BlockScan,
            Some(function) if function.name().starts_with("look_back") => Twin::LookBack,
            _ => {
                let what = String::from("this kernel; it belongs to a later chapter");
                return Err(Error::Unsupported { engine: String::from("chapter 5"), what });
            }
        };
        Ok(Suspect { name: name.to_owned(), twin, device, module })
    }

    /// Returns the files of the kernel and of its correct twin.
    pub fn files(&self) -> [String; 2] {
        [
            format!("kernels/{}.cu", self.name),
            format!("kernels/{}", Suspect::TWINS[self.twin as usize]),
        ]
    }

    /// Tries the cases of the test contract, the longest sequences first, until one fails. Then
    /// tries the last rows of an array of more than 2^31 elements. Returns `None` if nothing fails.
    pub fn examine(&self) -> Option<Finding> {
        suspect::examine(&Copying::from(self.clone()), &self.domain()).or_else(|| self.far_rows())
    }

    fn domain(&self) -> Domain {
        let domain = Domain {
            max_len: 300,
            backward: self.twin == Twin::Ref
                && self.function("linrec_ref_bwd<float, false>").is_ok(),
            reverse: self.function(&self.entry(Direction::Reverse)).is_ok(),
            log_coeffs: false,
            ..Domain::default()
        };
        let (tile, levels) = (512, Domain::tree_levels as fn(usize) -> usize);
        match self.twin {
            Twin::Ref => domain,
            Twin::BlockScan => Domain { max_len: tile, tile, levels, ..domain },
            Twin::LookBack => Domain { tile: 256, levels, ..domain },
        }
    }

    /// Returns the C++ name of the kernel's instance for this direction.
    fn entry(&self, direction: Direction) -> String {
        let reverse = direction == Direction::Reverse;
        match self.twin {
            Twin::Ref => format!("linrec_ref_fwd<float, {reverse}>"),
            Twin::BlockScan => format!("block_scan<{reverse}>"),
            // It supports one direction.
            Twin::LookBack if reverse => String::from("no reverse"),
            Twin::LookBack => String::from("look_back"),
        }
    }

    fn function(&self, entry: &str) -> Result<Function, Error> {
        self.module.function(entry)
    }

    fn far_rows(&self) -> Option<Finding> {
        let kernel = self.function("linrec_ref_fwd<float, false>").ok()?;
        let what = far_rows(&kernel).err()?.to_string();
        let case = format!("the last of {FAR_SEQS} x {FAR_LEN}");
        Some(Finding { case, what })
    }
}

/// The shape of an array of 2^31 + 2^11 elements.
const FAR_SEQS: usize = (1 << 25) + 32;
const FAR_LEN: usize = 64;

/// Runs only the last block of a launch whose last 32 rows begin at element 2^31. On the emulator,
/// the three arrays of 8 GiB use memory only where they are touched. Returns the last of those
/// rows.
///
/// # Errors
///
/// Returns [`Error::Kernel`] if the kernel does not find the rows.
// ANCHOR: far_rows
pub(crate) fn far_rows(kernel: &Function) -> Result<Vec<f32>, Error> {
    let device = Device::simt();
    let array = |name| device.allocate_named::<f32>(name, FAR_SEQS * FAR_LEN);
    let (inputs, coeffs, mut outputs) = (array("inputs")?, array("coeffs")?, array("outputs")?);
    let last_rows = (FAR_SEQS - 32) * FAR_LEN..;
    inputs.slice(last_rows.clone())?.upload(&[1.0; 32 * FAR_LEN])?;
    coeffs.slice(last_rows)?.upload(&[0.5; 32 * FAR_LEN])?;

    let blocks = (FAR_SEQS / 32) as u32;
    let launch = kernel.launch(blocks, 32).arg(&inputs).arg(&coeffs).arg(&mut outputs);
    let launch = launch.arg(None::<&Buffer<f32>>).arg(None::<&Buffer<f32>>);
    let launch = launch.arg(FAR_SEQS as i64).arg(FAR_LEN as i64);
    launch.blocks(u64::from(blocks) - 1..u64::from(blocks)).run(&device.stream())?;
    outputs.slice((FAR_SEQS - 1) * FAR_LEN..)?.download()
}
// ANCHOR_END: far_rows

impl OverBuffers for Suspect {
    type Stored = f32;

    fn device(&self) -> &Device {
        &self.device
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn forward_into(
        &self,
        inputs: &Buffer<f32>,
        coeffs: &Buffer<f32>,
        outputs: &mut Buffer<f32>,
        Shape { num_seqs, seq_len }: Shape,
        options: ForwardOptions<f32>,
    ) -> Result<(), Error> {
        let ForwardOptions { direction, initial, mut final_state, .. } = options;
        let kernel = self.function(&self.entry(direction))?;
        if self.twin == Twin::LookBack {
            for sequence in 0..num_seqs {
                let row = sequence * seq_len..(sequence + 1) * seq_len;
                let state = sequence..=sequence;
                look_back(
                    &kernel,
                    [&inputs.slice(row.clone())?, &coeffs.slice(row.clone())?],
                    &mut outputs.slice(row)?,
                    initial.map(|all| all.slice(state.clone())).transpose()?.as_ref(),
                    final_state.as_mut().map(|all| all.slice(state)).transpose()?.as_mut(),
                )?;
            }
            return Ok(());
        }
        let (per_block, threads) = match self.twin {
            Twin::Ref => (by_hand::THREADS as usize, by_hand::THREADS),
            _ => (1, 128),
        };
        let launch = kernel.launch(num_seqs.div_ceil(per_block) as u32, threads);
        let launch = launch.arg(inputs).arg(coeffs).arg(outputs).arg(initial).arg(final_state);
        launch.arg(num_seqs as i64).arg(seq_len as i64).run(&self.device.stream()).map(drop)
    }

    fn backward_into(
        &self,
        d_outputs: &Buffer<f32>,
        coeffs: &Buffer<f32>,
        outputs: &Buffer<f32>,
        d_inputs: &mut Buffer<f32>,
        d_coeffs: &mut Buffer<f32>,
        Shape { num_seqs, seq_len }: Shape,
        options: BackwardOptions<f32>,
    ) -> Result<(), Error> {
        let BackwardOptions { direction, initial, d_initial, .. } = options;
        let reverse = direction == Direction::Reverse;
        let kernel = self.function(&format!("linrec_ref_bwd<float, {reverse}>"))?;
        let blocks = num_seqs.div_ceil(by_hand::THREADS as usize) as u32;
        let launch = kernel.launch(blocks, by_hand::THREADS);
        let launch = launch.arg(d_outputs).arg(coeffs).arg(outputs).arg(initial);
        let launch = launch.arg(d_inputs).arg(d_coeffs).arg(d_initial);
        launch.arg(num_seqs as i64).arg(seq_len as i64).run(&self.device.stream()).map(drop)
    }
}

/// Runs one sequence through `look_back`, which also needs a counter of tiles, and a flag and a
/// state for each tile.
fn look_back(
    kernel: &Function,
    [inputs, coeffs]: [&Buffer<f32>; 2],
    outputs: &mut Buffer<f32>,
    initial: Option<&Buffer<f32>>,
    final_state: Option<&mut Buffer<f32>>,
) -> Result<(), Error> {
    let device = kernel.device();
    let (blocks, seq_len) = (outputs.len().div_ceil(256), outputs.len() as i64);
    let mut next_tile = device.allocate_named::<u32>("next_tile", 1)?;
    let mut published = device.allocate_named::<u32>("published", blocks)?;
    let mut states = device.allocate_named::<f32>("states", blocks)?;
    next_tile.zero()?;
    published.zero()?;
    let launch = kernel.launch(blocks as u32, 32).arg(inputs).arg(coeffs).arg(outputs);
    let launch = launch.arg(initial).arg(final_state).arg(seq_len);
    launch.arg(&mut next_tile).arg(&mut published).arg(&mut states).run(&device.stream()).map(drop)
}
