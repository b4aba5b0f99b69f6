//! What a launch costs, and what a graph saves of it: twenty calls that depend on each other, for a
//! few short sequences, queued one by one, replayed as a graph, and (were they independent) as one
//! call for all.
//!
//! Times are the host's, from the first call to the end of the last one's work, ten chains at a
//! time; the three ways take turns. Only shipped kernels run, so that nothing but the driver is
//! needed.

use std::time::Instant;

use lesson::machine;
use lesson::output::println;
use linrec::Error;
use linrec::device::{Buffer, Choice, Device, ForwardOptions, Graph, Recurrence, Stream, driver};
use linrec::kernels::Pass;
use serde::{Deserialize, Serialize};

use crate::csv::{self, Decimal};
use crate::median;

/// Calls in a chain.
const CALLS: usize = 20;
/// Chains between two looks at the clock.
const CHAINS: usize = 10;
/// The three ways, in the order in which they take turns.
const WAYS: [&str; 3] = ["plain", "graph", "batch"];

/// What to measure.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Numbers of sequences.
    pub num_seqs: Vec<usize>,
    /// Lengths of the sequences.
    pub lengths: Vec<usize>,
    /// Measurements of each; none on the emulator, which has no clock.
    pub runs: usize,
}

/// The columns: the fields of a [`Call`].
pub const HEADER: &str =
    "date,machine,driver,element,direction,engine,kernel,num_seqs,seq_len,calls,run,us_per_call";

/// One measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The day.
    pub date: String,
    /// The GPU.
    pub machine: String,
    /// The newest CUDA that its driver knows.
    pub driver: String,
    /// What the arrays hold.
    pub element: String,
    /// Which computation.
    pub direction: String,
    /// In which way: `plain`, `graph` or `batch`.
    pub engine: String,
    /// The kernel that runs.
    pub kernel: String,
    /// How many sequences.
    pub num_seqs: usize,
    /// How long they are.
    pub seq_len: usize,
    /// Calls in a chain.
    pub calls: usize,
    /// Which measurement.
    pub run: usize,
    /// Microseconds for each call.
    pub us_per_call: Decimal,
}

impl Call {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// A sentence with the line that cannot be read.
    pub fn read(text: &str) -> lesson::Result<Vec<Call>> {
        csv::read(text)
    }

    /// Measurements as a record.
    ///
    /// # Errors
    ///
    /// None that is known.
    pub fn to_csv(calls: &[Call]) -> lesson::Result<String> {
        Ok(format!("{HEADER}\n{}", csv::rows(calls)?))
    }
}

/// Measures all shapes, after a look at the results, and prints the medians; every measurement.
///
/// # Errors
///
/// If a graph has other results than calls one by one, or the device fails.
pub fn measure(device: &Device, settings: &Settings) -> lesson::Result<Vec<Call>> {
    println!("{}: {CALLS} calls, each over what the one before wrote\n", device.name());
    println!("microseconds per call: each call by itself, as a graph, and all as one batch");
    println!("num_seqs  length    plain    graph    batch  kernels");
    let driver = driver().map_or_else(
        |_| String::from("none"),
        |driver| format!("CUDA {}.{}", driver.cuda_version.0, driver.cuda_version.1),
    );
    let runs = if device.is_simt() { 0 } else { settings.runs };
    let mut calls = Vec::new();
    for &num_seqs in &settings.num_seqs {
        for &seq_len in &settings.lengths {
            let mut chain = Chain::new(device, num_seqs, seq_len)?;
            chain.check()?;
            let mut measured = [const { Vec::new() }; 3];
            for run in 1..=runs {
                for ((way, us), all) in WAYS.iter().zip(chain.run()?).zip(&mut measured) {
                    calls.push(Call {
                        date: machine::date(),
                        machine: device.name().to_owned(),
                        driver: driver.clone(),
                        element: String::from("f32"),
                        direction: String::from("forward"),
                        engine: (*way).to_owned(),
                        kernel: chain.kernels[usize::from(*way == "batch")].clone(),
                        num_seqs,
                        seq_len,
                        calls: CALLS,
                        run,
                        us_per_call: Decimal::new(us, 3),
                    });
                    all.push(us);
                }
            }
            let shown = |us: f64| match us.is_nan() {
                true => String::from("-"),
                false => format!("{us:.2}"),
            };
            let [plain, graph, batch] = measured.map(median).map(shown);
            let [one, all] = &chain.kernels;
            println!("{num_seqs:8} {seq_len:7} {plain:>8} {graph:>8} {batch:>8}  {one}, {all}");
        }
    }
    Ok(calls)
}

/// The calls over one shape, in three ways.
struct Chain {
    device: Device,
    recurrence: Recurrence<f32>,
    shape: (usize, usize),
    /// Of all the sequences of a batch; the chain takes the first ones.
    inputs: Buffer<f32>,
    coeffs: Buffer<f32>,
    outputs: Buffer<f32>,
    /// The kernel of a call, and that of the batch.
    kernels: [String; 2],
    graph: Graph,
}

impl Chain {
    fn new(device: &Device, num_seqs: usize, seq_len: usize) -> Result<Chain, Error> {
        let recurrence = Recurrence::new(device, Choice::FastestShipped)?;
        let shape = (num_seqs, seq_len);
        let batch = (CALLS * num_seqs, seq_len);
        let len = batch.0 * batch.1;
        let (inputs, coeffs) = (device.upload(&noise(len, 1))?, device.upload(&noise(len, 2))?);
        let outputs = device.allocate(len)?;
        let kernels = [
            recurrence.kernel(Pass::Forward, shape, true)?.to_string(),
            recurrence.kernel(Pass::Forward, batch, true)?.to_string(),
        ];
        let graph = device
            .record(|stream| queue(&recurrence, stream, shape, &inputs, &coeffs, &outputs))?;
        let device = device.clone();
        Ok(Chain { device, recurrence, shape, inputs, coeffs, outputs, kernels, graph })
    }

    /// An error unless a replay writes the bits of plain calls.
    fn check(&mut self) -> lesson::Result {
        let mut results = [const { Vec::new() }; 2];
        for (way, bits) in results.iter_mut().enumerate() {
            self.outputs.poison()?;
            self.queue(way)?;
            let last = self.outputs.slice(..2 * self.shape.0 * self.shape.1)?.download()?;
            bits.extend(last.into_iter().map(f32::to_bits));
        }
        let [plain, graph] = &results;
        let finite = plain.iter().all(|&bits| f32::from_bits(bits).is_finite());
        if plain == graph && finite { Ok(()) } else { Err("the graph has other results".into()) }
    }

    /// Microseconds for each call, in every way.
    fn run(&mut self) -> Result<[f64; 3], Error> {
        let mut us = [0.0; 3];
        for (way, us) in us.iter_mut().enumerate() {
            // Once without the clock, so that the three ways begin alike.
            self.queue(way)?;
            self.device.synchronize()?;
            let start = Instant::now();
            for _ in 0..CHAINS {
                self.queue(way)?;
            }
            self.device.synchronize()?;
            *us = start.elapsed().as_secs_f64() * 1e6 / (CHAINS * CALLS) as f64;
        }
        Ok(us)
    }

    /// Queues the calls in one of the ways.
    fn queue(&mut self, way: usize) -> Result<(), Error> {
        let Chain { device, recurrence, shape, inputs, coeffs, outputs, graph, .. } = self;
        match WAYS[way] {
            "plain" => queue(recurrence, &device.stream(), *shape, inputs, coeffs, outputs),
            "graph" => graph.replay(&device.stream()).map(drop),
            _ => {
                let (batch, options) = ((CALLS * shape.0, shape.1), ForwardOptions::default());
                recurrence.forward_into(inputs, coeffs, outputs, batch, options).map(drop)
            }
        }
    }
}

/// The calls of a chain: the first over the inputs, each other one over what the one before wrote;
/// the outputs go to two places in turns.
fn queue(
    recurrence: &Recurrence<f32>,
    stream: &Stream,
    shape: (usize, usize),
    inputs: &Buffer<f32>,
    coeffs: &Buffer<f32>,
    outputs: &Buffer<f32>,
) -> Result<(), Error> {
    let len = shape.0 * shape.1;
    let (inputs, coeffs) = (inputs.slice(..len)?, coeffs.slice(..len)?);
    let (mut from, mut to) = (outputs.slice(len..2 * len)?, outputs.slice(..len)?);
    for call in 0..CALLS {
        let options = ForwardOptions { stream: Some(stream), ..ForwardOptions::default() };
        let source = if call == 0 { &inputs } else { &from };
        recurrence.forward_into(source, &coeffs, &mut to, shape, options)?;
        std::mem::swap(&mut from, &mut to);
    }
    Ok(())
}

/// Numbers in [0, 1).
fn noise(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    (0..len).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::{Call, Settings, measure};
    use linrec::device::Device;

    #[test]
    fn what_is_committed_is_written_as_it_was_read() {
        let file = "/../../chapters/10-speed-of-memory/results/h200/graphs.csv.gz";
        let file = format!("{}{file}", env!("CARGO_MANIFEST_DIR"));
        let text = lesson::recorded::text(&std::fs::read(file).unwrap()).unwrap();
        assert!(Call::to_csv(&Call::read(&text).unwrap()).unwrap() == text);
    }

    #[test]
    fn all_three_ways_run_where_there_is_no_clock() {
        let settings = Settings { num_seqs: vec![2], lengths: vec![64], runs: 3 };
        assert_eq!(measure(&Device::simt(), &settings).unwrap(), []);
    }
}
