//! A step of the ladder, loaded on a device.

use linrec::contract::Domain;
use linrec::device::{Buffer, Device, ForwardOptions, Function, Launched, OverBuffers, Shape};
use linrec::{Direction, Error};

use crate::rung::{Idea, Rung};

/// A step of the ladder, loaded on a device.
#[derive(Debug, Clone)]
pub struct Kernel {
    rung: Rung,
    device: Device,
    function: Function,
    /// The number of blocks that the device holds at a time, at least 1.
    resident: u64,
}

impl Kernel {
    /// Loads or compiles the step.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if it is neither shipped nor can be compiled, or if the device
    /// refuses it.
    pub fn new(device: &Device, rung: Rung) -> Result<Kernel, Error> {
        let program = rung.program().ok_or_else(|| {
            let message = format!("kernels/ladder has no {}", rung.idea.name());
            Error::Device { device: device.label().to_owned(), message }
        })?;
        let function = device.program(&program)?.function(&rung.entry())?;
        let blocks = function.occupancy(rung.threads, rung.shared_bytes())?.unwrap_or(1);
        let resident =
            u64::from(blocks.max(1)) * u64::from(device.attributes().multiprocessors.max(1));
        Ok(Kernel { rung, device: device.clone(), function, resident })
    }

    /// Returns the step.
    pub fn rung(&self) -> Rung {
        self.rung
    }

    /// Returns the compiled kernel.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Queues a forward pass.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Unsupported`] if the options are not a forward pass over plain
    /// coefficients, if a row does not consist of whole vectors, or if an array does not begin at a
    /// multiple of 16 bytes. Returns [`Error::Device`] if there are more sequences than a grid
    /// supports, or if the device fails.
    pub fn launch(
        &self,
        inputs: &Buffer<f32>,
        coeffs: &Buffer<f32>,
        outputs: &mut Buffer<f32>,
        Shape { num_seqs, seq_len }: Shape,
        options: ForwardOptions<f32>,
    ) -> Result<Launched, Error> {
        let ForwardOptions { direction, log_coeffs, initial, final_state, stream } = options;
        if direction == Direction::Reverse || log_coeffs {
            return self.refuse(String::from(
                "reverse or log_coeffs: it only goes forward, over plain coefficients",
            ));
        }
        if !seq_len.is_multiple_of(4) {
            return self
                .refuse(format!("rows of {seq_len} elements; they must consist of vectors of 4"));
        }
        if ![inputs, coeffs, &*outputs].iter().all(|array| array.is_aligned_to(16)) {
            return self.refuse(String::from("an array that begins within a 16-byte vector"));
        }
        let blocks = match self.rung.idea {
            Idea::Persistent => self.resident.min(num_seqs as u64),
            _ => num_seqs as u64,
        };
        let blocks = u32::try_from(blocks).or_else(|_| {
            self.refuse(format!("{num_seqs} sequences, more than a grid has blocks"))
        })?;
        let launch = self.function.launch(blocks, self.rung.threads);
        let launch = launch.shared(self.rung.shared_bytes());
        let launch = launch.arg(inputs).arg(coeffs).arg(outputs).arg(initial).arg(final_state);
        let launch = launch.arg(num_seqs as i64).arg(seq_len as i64);
        launch.run(stream.unwrap_or(&self.device.stream()))
    }

    fn refuse<R>(&self, what: String) -> Result<R, Error> {
        let engine = format!("{}@{}", self.rung.name(), self.device.label());
        Err(Error::Unsupported { engine, what })
    }

    /// Returns the domain of the test contract, with the number of rounding levels.
    pub fn domain(&self) -> Domain {
        Domain {
            multiple_of: 4,
            tile: self.rung.tile() as usize,
            levels: Domain::tree_levels,
            backward: false,
            reverse: false,
            log_coeffs: false,
            ..Domain::default()
        }
    }
}

impl OverBuffers for Kernel {
    type Stored = f32;

    fn device(&self) -> &Device {
        &self.device
    }

    fn name(&self) -> String {
        self.rung.name()
    }

    fn forward_into(
        &self,
        inputs: &Buffer<f32>,
        coeffs: &Buffer<f32>,
        outputs: &mut Buffer<f32>,
        shape: Shape,
        options: ForwardOptions<f32>,
    ) -> Result<(), Error> {
        if shape.num_seqs == 0 {
            return Ok(());
        }
        self.launch(inputs, coeffs, outputs, shape, options).map(drop)
    }
}
