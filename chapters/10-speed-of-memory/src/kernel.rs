//! A step of the ladder, loaded on a device.

use bench::field::Forward;
use linrec::contract::Domain;
use linrec::device::{Buffer, Device, Function, Launched, Stream};
use linrec::{Direction, Engine, Error, Gradients, Options, Outputs};
use ndarray::{Array1, Array2, ArrayView2};

use crate::rung::{Idea, Rung};

/// A step of the ladder, loaded on a device.
#[derive(Debug, Clone)]
pub struct Kernel {
    rung: Rung,
    device: Device,
    function: Function,
    name: String,
    /// The number of blocks that the device holds at a time, at least 1.
    resident: u64,
}

/// The arrays of a launch, `[num_seqs, seq_len]`, and its states, `[num_seqs]`.
#[derive(Debug)]
pub struct Arrays<'a> {
    /// The inputs.
    pub inputs: &'a Buffer<f32>,
    /// The coefficients.
    pub coeffs: &'a Buffer<f32>,
    /// The outputs.
    pub outputs: &'a mut Buffer<f32>,
    /// The states before the sequences; zero if `None`.
    pub initial: Option<&'a Buffer<f32>>,
    /// The buffer for the states after the sequences, if wanted.
    pub final_state: Option<&'a mut Buffer<f32>>,
}

impl Kernel {
    /// Loads or compiles the step.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Device`] if it is neither shipped nor can be compiled, or if the device
    /// refuses it.
    pub fn new(device: &Device, rung: Rung) -> Result<Kernel, Error> {
        let name = format!("{}@{}", rung.name(), device.label());
        let program = rung.program().ok_or_else(|| {
            let message = format!("kernels/ladder has no {}", rung.idea.name());
            Error::Device { device: device.label().to_owned(), message }
        })?;
        let function = device.program(&program)?.function(&rung.entry())?;
        let blocks = function.occupancy(rung.threads, rung.shared_bytes())?.unwrap_or(1);
        let resident =
            u64::from(blocks.max(1)) * u64::from(device.attributes().multiprocessors.max(1));
        Ok(Kernel { rung, device: device.clone(), function, name, resident })
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
    /// Returns [`Error::Unsupported`] if a row does not consist of whole vectors, or if an array
    /// does not begin at a multiple of 16 bytes. Returns [`Error::Device`] if there are more
    /// sequences than a grid supports, or if the device fails.
    // ANCHOR: launch
    pub fn launch(
        &self,
        arrays: Arrays,
        (num_seqs, seq_len): (usize, usize),
        stream: &Stream,
    ) -> Result<Launched, Error> {
        let Arrays { inputs, coeffs, outputs, initial, final_state } = arrays;
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
        launch.arg(num_seqs as i64).arg(seq_len as i64).run(stream)
    }
    // ANCHOR_END: launch

    fn refuse<R>(&self, what: String) -> Result<R, Error> {
        Err(Error::Unsupported { engine: self.name.clone(), what })
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

/// The step as the bench measures it.
impl Forward<f32> for Kernel {
    fn name(&self) -> String {
        self.rung.name()
    }

    fn queue(
        &self,
        inputs: &Buffer<f32>,
        coeffs: &Buffer<f32>,
        outputs: &mut Buffer<f32>,
        shape: (usize, usize),
        stream: &Stream,
    ) -> Result<(), Error> {
        let arrays = Arrays { inputs, coeffs, outputs, initial: None, final_state: None };
        self.launch(arrays, shape, stream).map(drop)
    }
}

/// A wrapper for tests that copies arrays to the device; forward only.
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
        let shape = linrec::validate::forward(&inputs, &coeffs, options)?;
        if options.direction == Direction::Reverse || options.log_coeffs {
            return self.refuse(String::from(
                "reverse or log_coeffs: it only goes forward, over plain coefficients",
            ));
        }
        let (num_seqs, _) = shape;
        let send = |array: ArrayView2<f32>| {
            self.device.upload(&array.iter().copied().collect::<Vec<f32>>())
        };
        let (x, c) = (send(inputs)?, send(coeffs)?);
        let (mut y, mut last) = (self.device.allocate(x.len())?, self.device.allocate(num_seqs)?);
        y.poison()?;
        last.poison()?;
        let initial = options.initial.as_ref().map(|state| self.device.upload(&state.to_vec()));
        let initial = initial.transpose()?;
        if num_seqs > 0 {
            let arrays = Arrays {
                inputs: &x,
                coeffs: &c,
                outputs: &mut y,
                initial: initial.as_ref(),
                final_state: Some(&mut last),
            };
            self.launch(arrays, shape, &self.device.stream())?;
        }
        let outputs = Array2::from_shape_vec(shape, y.download()?);
        let outputs = outputs.or_else(|error| self.refuse(error.to_string()))?;
        Ok(Outputs { outputs, final_state: Array1::from_vec(last.download()?) })
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<f32>,
        coeffs: ArrayView2<f32>,
        outputs: ArrayView2<f32>,
        options: &Options<f32>,
    ) -> Result<Gradients<f32>, Error> {
        linrec::validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        self.refuse(String::from("backward: it only goes forward"))
    }
}
