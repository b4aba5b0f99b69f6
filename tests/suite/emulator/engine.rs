//! A shipped kernel as an engine, which the contract can judge.

use linrec::simt::Memory;
use linrec::{Direction, Engine, Error, Gradients, Options, Outputs, validate};
use ndarray::{Array1, Array2, ArrayView2};

use super::{Argument, Shipped, allocate, download, upload, zeros};

const NULL: Argument = Argument::Long(0);

/// The entries of one PTX that compute the recurrence in `f32`. A missing entry is unsupported.
pub struct OnEmulator {
    pub name: String,
    /// The kernels of the forward pass: forward, and reverse.
    pub forward: Option<[&'static str; 2]>,
    /// The kernels of the backward pass: forward, and reverse.
    pub backward: Option<[&'static str; 2]>,
    pub threads: u32,
    pub seqs_per_block: u32,
}

/// The distribution of all sequences' tiles over the blocks; each block takes the next tile.
#[derive(Debug, Clone, Copy)]
pub struct SharedOut {
    /// The number of vectors of four elements in a tile.
    pub tile_vectors: usize,
}

impl SharedOut {
    /// Returns the number of tiles of a sequence: one vector more than needed, for sequences that
    /// are not aligned to 16 bytes.
    pub fn tiles(&self, seq_len: usize) -> usize {
        if seq_len == 0 { 0 } else { (seq_len + 3).div_ceil(4 * self.tile_vectors) }
    }

    /// Returns the kernel's arguments after its sizes: the tile's length, a workspace of zeros with
    /// 16 bytes for each tile of each sequence, in groups of 128, and the flag that blocks take
    /// tiles as they come.
    pub fn arguments(&self, memory: &Memory, (num_seqs, seq_len): (usize, usize)) -> Vec<Argument> {
        let notices = num_seqs * self.tiles(seq_len).next_multiple_of(128);
        let workspace = zeros(memory, "workspace", 4 + 4 * notices);
        // The length is an `int`, and the four bytes after it align the pointer.
        vec![Argument::Long(self.tile_vectors as u64), workspace, Argument::Int(1)]
    }
}

impl OnEmulator {
    fn run(
        &self,
        entries: Option<[&str; 2]>,
        (num_seqs, seq_len): (usize, usize),
        direction: Direction,
        memory: &Memory,
        buffers: &[Argument],
    ) -> Result<(), Error> {
        let unsupported = |what: String| Error::Unsupported { engine: self.name.clone(), what };
        let [forward, reverse] = entries.ok_or_else(|| unsupported("this pass".into()))?;
        let entry = if direction == Direction::Reverse { reverse } else { forward };
        let blocks = (num_seqs as u32).div_ceil(self.seqs_per_block);
        if blocks == 0 {
            return Ok(());
        }
        let numbers = [num_seqs, seq_len].map(|number| Argument::Long(number as u64));
        let arguments = [buffers, &numbers].concat();
        let shipped = Shipped::new(&self.name, entry);
        // Failures of the contract are sentences, so a finding may become any error.
        let outcome = shipped.run(memory, blocks, self.threads, &arguments);
        outcome.map(drop).map_err(|report| unsupported(report.to_string()))
    }
}

impl Engine<f32> for OnEmulator {
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
        let memory = Memory::new(1 << 30);
        let array = |name, values: ArrayView2<f32>| upload(&memory, name, &rows(values));
        let outputs = allocate(&memory, "outputs", shape.0 * shape.1);
        let final_state = allocate(&memory, "final_state", shape.0);
        let initial = options.initial.as_ref();
        let initial = initial.map_or(NULL, |initial| upload(&memory, "initial", &initial.to_vec()));
        let arguments =
            [array("inputs", inputs), array("coeffs", coeffs), outputs, initial, final_state];
        self.run(self.forward, shape, options.direction, &memory, &arguments)?;
        Ok(Outputs {
            outputs: array_of(shape, download(&memory, outputs, shape.0 * shape.1)),
            final_state: Array1::from(download(&memory, final_state, shape.0)),
        })
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<f32>,
        coeffs: ArrayView2<f32>,
        outputs: ArrayView2<f32>,
        options: &Options<f32>,
    ) -> Result<Gradients<f32>, Error> {
        let shape = validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        let memory = Memory::new(1 << 30);
        let array = |name, values: ArrayView2<f32>| upload(&memory, name, &rows(values));
        let len = shape.0 * shape.1;
        let [d_inputs, d_coeffs] =
            ["d_inputs", "d_coeffs"].map(|name| allocate(&memory, name, len));
        let d_initial = allocate(&memory, "d_initial", shape.0);
        let initial = options.initial.as_ref();
        let initial = initial.map_or(NULL, |initial| upload(&memory, "initial", &initial.to_vec()));
        let arguments = [
            array("d_outputs", d_outputs),
            array("coeffs", coeffs),
            array("outputs", outputs),
            initial,
            d_inputs,
            d_coeffs,
            d_initial,
        ];
        self.run(self.backward, shape, options.direction, &memory, &arguments)?;
        Ok(Gradients {
            d_inputs: array_of(shape, download(&memory, d_inputs, len)),
            d_coeffs: array_of(shape, download(&memory, d_coeffs, len)),
            d_initial: Array1::from(download(&memory, d_initial, shape.0)),
        })
    }
}

fn rows(values: ArrayView2<f32>) -> Vec<f32> {
    values.iter().copied().collect()
}

fn array_of(shape: (usize, usize), values: Vec<f32>) -> Array2<f32> {
    Array2::from_shape_vec(shape, values).unwrap()
}
