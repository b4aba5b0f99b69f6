//! Rows cut over ranks that reach each other's memory. It runs on the emulator, where all ranks
//! share one device and their launches take turns.

use std::sync::Mutex;

use linrec::contract::Domain;
use linrec::device::{Buffer, Device, Function, Launch};
use linrec::kernels;
use linrec::simt::Counters;
use linrec::{Direction, Engine, Error, Options, Outputs, validate};
use ndarray::{Array1, Array2, ArrayView2, s};

/// The size of a mailbox in words of 32 bits: a cache line, 128 bytes.
const WORDS: usize = 32;
/// The number of threads in a block, which share a tile of 256 steps.
const THREADS: u32 = 64;
/// The unit of a rank's stretch of a row: 4 steps, or 16 bytes.
pub const UNIT: usize = 4;

/// A kernel for a number of ranks, with a mailbox for each row and rank.
#[derive(Debug)]
pub struct Mailboxes {
    device: Device,
    function: Function,
    ranks: usize,
    name: String,
    /// One pass at a time: the number of the last pass, and its mailboxes.
    state: Mutex<(u32, Option<Buffer<u32>>)>,
}

impl Mailboxes {
    /// Makes mailboxes for `ranks` ranks on an emulated device.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the kernel is not shipped.
    pub fn new(ranks: usize) -> Result<Mailboxes, Error> {
        Mailboxes::load("long/mailbox.cu", ranks)
    }

    /// Does the same with the kernel of another file.
    ///
    /// # Errors
    ///
    /// The same as for [`Mailboxes::new`].
    pub fn load(file: &str, ranks: usize) -> Result<Mailboxes, Error> {
        let device = Device::simt();
        let entry = format!("long_mailbox<1, {THREADS}>");
        let program = kernels::program(file).ok_or_else(|| {
            let message = format!("there is no kernels/{file}");
            Error::Device { device: device.label().to_owned(), message }
        })?;
        let module = device.program(&program.with_entries([entry.clone()]))?;
        let function = module.function(&entry)?;
        let name = format!("mailboxes of {ranks}");
        Ok(Mailboxes { device, function, ranks, name, state: Mutex::default() })
    }

    /// Returns the accepted shapes and options, and the number of combining levels.
    pub fn domain(&self) -> Domain {
        Domain {
            multiple_of: self.ranks * UNIT,
            levels: |len| 2 * Domain::tree_levels(len),
            backward: false,
            reverse: false,
            log_coeffs: false,
            ..Domain::default()
        }
    }

    /// Computes the outputs of rows from zero states, with the counters of each rank's launch.
    /// `order` is the order in which the ranks' launches take turns, by number of the rank.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if stretches are not whole vectors, and [`Error::Kernel`] with what
    /// the emulator finds.
    // ANCHOR: outputs
    pub fn outputs(
        &self,
        inputs: ArrayView2<f32>,
        coeffs: ArrayView2<f32>,
        order: impl IntoIterator<Item = usize>,
    ) -> Result<(Array2<f32>, Vec<Counters>), Error> {
        let (rows, seq_len) = inputs.dim();
        let each = seq_len / self.ranks;
        if !seq_len.is_multiple_of(self.ranks * UNIT) {
            let what = format!("{seq_len} steps over {} ranks in whole vectors", self.ranks);
            return Err(Error::Unsupported { engine: self.name.clone(), what });
        }
        if inputs.is_empty() {
            return Ok((Array2::zeros((rows, seq_len)), Vec::new()));
        }
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (epoch, boxes) = &mut *state;
        let wanted = (self.ranks - 1) * rows * WORDS;
        if boxes.as_ref().is_none_or(|boxes| boxes.len() != wanted) {
            let mut zeros = self.device.allocate_named("mail", wanted)?;
            zeros.zero()?;
            *boxes = Some(zeros);
        }
        let boxes = boxes.as_ref().ok_or_else(|| self.error("there are no mailboxes"))?;
        *epoch += 1;

        let of = |rank: usize| boxes.slice((rank - 1) * rows * WORDS..rank * rows * WORDS);
        let mut ranks = Vec::new();
        for rank in order {
            let steps = s![.., rank * each..(rank + 1) * each];
            let mine = |array: &ArrayView2<f32>| -> Result<Buffer<f32>, Error> {
                self.device.upload(&array.slice(steps).iter().copied().collect::<Vec<_>>())
            };
            let mut outputs = self.device.allocate_named::<f32>("outputs", rows * each)?;
            outputs.poison()?;
            let from = (rank > 0).then(|| of(rank)).transpose()?;
            let to = (rank + 1 < self.ranks).then(|| of(rank + 1)).transpose()?;
            ranks.push((rank, mine(&inputs)?, mine(&coeffs)?, outputs, from, to));
        }
        let launches: Vec<Launch> = ranks
            .iter_mut()
            .map(|(_, x, c, y, from, to)| {
                let launch = self.function.launch(rows as u32, THREADS).arg(&*x).arg(&*c).arg(y);
                launch.arg(from.as_ref()).arg(to.as_mut()).arg(*epoch).arg(each as i64)
            })
            .collect();
        let launched = Launch::run_side_by_side(&launches)?;

        let mut outputs = Array2::zeros((rows, seq_len));
        for (rank, .., y, _, _) in &ranks {
            let mut place = outputs.slice_mut(s![.., rank * each..(rank + 1) * each]);
            place.iter_mut().zip(y.download()?).for_each(|(to, from)| *to = from);
        }
        let counters = launched.iter().filter_map(|launched| launched.counters().cloned());
        Ok((outputs, counters.collect()))
    }
    // ANCHOR_END: outputs

    fn error(&self, message: &str) -> Error {
        Error::Device { device: self.device.label().to_owned(), message: message.to_owned() }
    }
}

/// A forward engine for tests: an initial state becomes the result of a first step without input.
impl Engine<f32> for Mailboxes {
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(
        &self,
        inputs: ArrayView2<f32>,
        coeffs: ArrayView2<f32>,
        options: &Options<f32>,
    ) -> Result<Outputs<f32>, Error> {
        let (num_seqs, seq_len) = validate::forward(&inputs, &coeffs, options)?;
        if options.direction == Direction::Reverse || options.log_coeffs {
            let what = String::from("reverse: it goes forward, over coefficients as such");
            return Err(Error::Unsupported { engine: self.name.clone(), what });
        }
        let zeros = || Array1::zeros(num_seqs);
        let initial = options.initial.as_ref().map_or_else(zeros, |states| states.to_owned());
        let mut inputs = inputs.to_owned();
        if seq_len > 0 {
            for row in 0..num_seqs {
                let first = inputs[[row, 0]];
                inputs[[row, 0]] = initial[row].mul_add(coeffs[[row, 0]], first);
            }
        }
        let (outputs, _) = self.outputs(inputs.view(), coeffs, 0..self.ranks)?;
        let last = |row: usize| seq_len.checked_sub(1).map(|last| outputs[[row, last]]);
        let final_state = (0..num_seqs).map(|row| last(row).unwrap_or(initial[row])).collect();
        Ok(Outputs { outputs, final_state })
    }
}
