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
use linrec::device::{Buffer, Device, Function, Module};
use linrec::{Direction, Engine, Error, Gradients, Options, Outputs, validate};
use ndarray::{Array1, Array2, ArrayView2};

use crate::by_hand::{self, shipped, upload};

/// A kernel from `kernels/broken/`, or its correct twin, on the emulator: an [`Engine`] of `f32`.
#[derive(Debug)]
pub struct Suspect {
    name: String,
    twin: Twin,
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
        let module = shipped(&Device::simt(), name)?;
        let twin = match &module.functions().next() {
            Some(function) if function.name().starts_with("linrec_ref") => Twin::Ref,
            Some(function) if function.name().starts_with("block_scan") => Twin::BlockScan,
            Some(function) if function.name().starts_with("look_back") => Twin::LookBack,
            _ => {
                let what = String::from("this kernel; it belongs to a later chapter");
                return Err(Error::Unsupported { engine: String::from("chapter 5"), what });
            }
        };
        Ok(Suspect { name: name.to_owned(), twin, module })
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
        suspect::examine(self, &self.domain()).or_else(|| self.far_rows())
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

impl Engine<f32> for Suspect {
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(
        &self,
        inputs: ArrayView2<f32>,
        coeffs: ArrayView2<f32>,
        options: &Options<f32>,
    ) -> Result<Outputs<f32>, Error> {
        let shape @ (num_seqs, seq_len) = validate::forward(&inputs, &coeffs, options)?;
        let kernel = self.function(&self.entry(options.direction))?;
        let device = kernel.device();
        let inputs = upload(device, "inputs", &rows(inputs))?;
        let coeffs = upload(device, "coeffs", &rows(coeffs))?;
        let mut outputs = device.allocate_named("outputs", num_seqs * seq_len)?;
        let initial =
            options.initial.as_ref().map(|initial| upload(device, "initial", &initial.to_vec()));
        let initial = initial.transpose()?;
        let mut final_state = device.allocate_named("final_state", num_seqs)?;
        let arrays = Arrays { inputs, coeffs, initial };
        match self.twin {
            Twin::LookBack => {
                for sequence in 0..num_seqs {
                    let row = sequence * seq_len..(sequence + 1) * seq_len;
                    let mut outputs = outputs.slice(row.clone())?;
                    let mut final_state = final_state.slice(sequence..=sequence)?;
                    look_back(
                        &kernel,
                        &arrays.part(row, sequence)?,
                        &mut outputs,
                        &mut final_state,
                    )?;
                }
            }
            Twin::Ref | Twin::BlockScan => {
                let threads = if self.twin == Twin::Ref { by_hand::THREADS } else { 128 };
                let per_block = if self.twin == Twin::Ref { threads as usize } else { 1 };
                let launch = kernel.launch(num_seqs.div_ceil(per_block) as u32, threads);
                let launch = launch.arg(&arrays.inputs).arg(&arrays.coeffs).arg(&mut outputs);
                let launch = launch.arg(arrays.initial.as_ref()).arg(&mut final_state);
                launch.arg(num_seqs as i64).arg(seq_len as i64).run(&device.stream())?;
            }
        }
        Ok(Outputs {
            outputs: array("outputs", shape, outputs.download()?)?,
            final_state: Array1::from_vec(final_state.download()?),
        })
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<f32>,
        coeffs: ArrayView2<f32>,
        outputs: ArrayView2<f32>,
        options: &Options<f32>,
    ) -> Result<Gradients<f32>, Error> {
        let shape @ (num_seqs, seq_len) =
            validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        let reverse = options.direction == Direction::Reverse;
        let kernel = self.function(&format!("linrec_ref_bwd<float, {reverse}>"))?;
        let device = kernel.device();
        let d_outputs = upload(device, "d_outputs", &rows(d_outputs))?;
        let coeffs = upload(device, "coeffs", &rows(coeffs))?;
        let outputs = upload(device, "outputs", &rows(outputs))?;
        let initial =
            options.initial.as_ref().map(|initial| upload(device, "initial", &initial.to_vec()));
        let initial = initial.transpose()?;
        let mut d_inputs = device.allocate_named("d_inputs", num_seqs * seq_len)?;
        let mut d_coeffs = device.allocate_named("d_coeffs", num_seqs * seq_len)?;
        let mut d_initial = device.allocate_named("d_initial", num_seqs)?;
        let blocks = num_seqs.div_ceil(by_hand::THREADS as usize) as u32;
        let launch = kernel.launch(blocks, by_hand::THREADS);
        let launch = launch.arg(&d_outputs).arg(&coeffs).arg(&outputs).arg(initial.as_ref());
        let launch = launch.arg(&mut d_inputs).arg(&mut d_coeffs).arg(&mut d_initial);
        launch.arg(num_seqs as i64).arg(seq_len as i64).run(&device.stream())?;
        Ok(Gradients {
            d_inputs: array("d_inputs", shape, d_inputs.download()?)?,
            d_coeffs: array("d_coeffs", shape, d_coeffs.download()?)?,
            d_initial: Array1::from_vec(d_initial.download()?),
        })
    }
}

/// The arrays that a forward pass reads.
struct Arrays {
    inputs: Buffer<f32>,
    coeffs: Buffer<f32>,
    initial: Option<Buffer<f32>>,
}

impl Arrays {
    /// Returns the arrays of one sequence, given the elements of its row and its number.
    fn part(&self, row: std::ops::Range<usize>, sequence: usize) -> Result<Arrays, Error> {
        let initial = self.initial.as_ref().map(|initial| initial.slice(sequence..=sequence));
        Ok(Arrays {
            inputs: self.inputs.slice(row.clone())?,
            coeffs: self.coeffs.slice(row)?,
            initial: initial.transpose()?,
        })
    }
}

/// Runs one sequence through `look_back`, which also needs a counter of tiles, and a flag and a
/// state for each tile.
fn look_back(
    kernel: &Function,
    sequence: &Arrays,
    outputs: &mut Buffer<f32>,
    final_state: &mut Buffer<f32>,
) -> Result<(), Error> {
    let device = kernel.device();
    let (blocks, seq_len) = (outputs.len().div_ceil(256), outputs.len() as i64);
    let mut next_tile = device.allocate_named::<u32>("next_tile", 1)?;
    let mut published = device.allocate_named::<u32>("published", blocks)?;
    let mut states = device.allocate_named::<f32>("states", blocks)?;
    next_tile.zero()?;
    published.zero()?;
    let launch = kernel.launch(blocks as u32, 32).arg(&sequence.inputs).arg(&sequence.coeffs);
    let launch = launch.arg(outputs).arg(sequence.initial.as_ref()).arg(final_state).arg(seq_len);
    launch.arg(&mut next_tile).arg(&mut published).arg(&mut states).run(&device.stream())?;
    Ok(())
}

/// Returns the elements of a view with any strides, row by row.
fn rows(view: ArrayView2<f32>) -> Vec<f32> {
    view.iter().copied().collect()
}

fn array(
    name: &'static str,
    shape @ (num_seqs, seq_len): (usize, usize),
    values: Vec<f32>,
) -> Result<Array2<f32>, Error> {
    let arrays = vec![("shape", vec![num_seqs, seq_len]), (name, vec![values.len()])];
    Array2::from_shape_vec(shape, values)
        .map_err(|_| Error::ShapeMismatch { operation: "download", arrays })
}
