//! Measures what a launch costs and how much of it a graph saves: twenty calls that depend on each
//! other, for a few short sequences. The calls are queued one by one, replayed as a graph, and (as
//! if they were independent) made as one call for all.
//!
//! Times are measured on the host, from the first call to the end of the last call's work, over ten
//! chains at a time; the three ways take turns. Only shipped kernels run, so that nothing but the
//! driver is needed.

use std::time::Instant;

use lesson::machine;
use lesson::output::println;
use linrec::Error;
use linrec::device::{Buffer, Choice, Device, ForwardOptions, Graph, Recurrence, Stream, driver};
use linrec::kernels::Pass;
use serde::{Deserialize, Serialize};

use crate::csv::Decimal;
use crate::median;

const CALLS: usize = 20;
const CHAINS: usize = 10;
/// The three ways, in the order in which they take turns.
const WAYS: [&str; 3] = ["plain", "graph", "batch"];

/// The settings of the measurement.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The numbers of sequences.
    pub num_seqs: Vec<usize>,
    /// The lengths of the sequences.
    pub lengths: Vec<usize>,
    /// The number of measurements of each way; not used on the emulator, which has no clock.
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
    /// The newest CUDA version that the driver supports.
    pub driver: String,
    /// The element type of the arrays.
    pub element: String,
    /// The pass.
    pub direction: String,
    /// The way: `plain`, `graph` or `batch`.
    pub engine: String,
    /// The kernel that runs.
    pub kernel: String,
    /// The number of sequences.
    pub num_seqs: usize,
    /// The length of each sequence.
    pub seq_len: usize,
    /// The number of calls in a chain.
    pub calls: usize,
    /// The number of this measurement, from 0.
    pub run: usize,
    /// Microseconds per call.
    pub us_per_call: Decimal,
}

/// Measures all shapes after checking their results, prints the medians, and returns every
/// measurement.
///
/// # Errors
///
/// Returns an error if a graph has other results than single calls, or the device fails.
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

struct Chain {
    device: Device,
    recurrence: Recurrence<f32>,
    shape: (usize, usize),
    /// The arrays of all sequences of a batch; the chain uses the first ones.
    inputs: Buffer<f32>,
    coeffs: Buffer<f32>,
    outputs: Buffer<f32>,
    /// The kernel of a single call and the kernel of the batch.
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
        if plain == graph && finite {
            Ok(())
        } else {
            Err("the results of the graph and of single calls differ".into())
        }
    }

    fn run(&mut self) -> Result<[f64; 3], Error> {
        let mut us = [0.0; 3];
        for (way, us) in us.iter_mut().enumerate() {
            // One run without the clock lets the three ways begin alike.
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

/// Queues the calls of a chain. The first call reads the inputs, each later call the previous
/// outputs; two buffers take turns as outputs.
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
    use super::{Call, HEADER, Settings, measure};
    use crate::csv;
    use linrec::device::Device;

    #[test]
    fn committed_records_are_written_as_they_were_read() {
        let file = "/../../chapters/10-speed-of-memory/results/h200/graphs.csv.gz";
        let file = format!("{}{file}", env!("CARGO_MANIFEST_DIR"));
        let text = lesson::recorded::text(&std::fs::read(file).unwrap()).unwrap();
        let calls: Vec<Call> = csv::read(&text).unwrap();
        assert!(csv::write(HEADER, &calls).unwrap() == text);
    }

    #[test]
    fn all_three_ways_run_without_a_clock() {
        let settings = Settings { num_seqs: vec![2], lengths: vec![64], runs: 3 };
        assert_eq!(measure(&Device::simt(), &settings).unwrap(), []);
    }
}
