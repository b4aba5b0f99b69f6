//! What a launch costs, and what a graph saves of it: twenty calls that depend on each other, for a few short
//! sequences, queued one by one, replayed as a graph, and (were they independent) as one call for all.
//!
//! ```text
//! cargo run --release -p linrec --example graphs -- --csv graphs.csv
//! ```
//!
//! Times are the host's, from the first call to the end of the last one's work, ten chains at a time; the three ways
//! take turns. Only shipped kernels run, so that nothing but the driver is needed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use linrec::Error;
use linrec::device::{AutoRecurrence, Buffer, Device, ForwardOptions, Stream, driver};
use linrec::kernels::Pass;
use linrec::lesson::machine;

/// Calls in a chain.
const CALLS: usize = 20;
/// Chains between two looks at the clock.
const CHAINS: usize = 10;
/// The three ways, in the order in which they take turns.
const WAYS: [&str; 3] = ["plain", "graph", "batch"];

/// What a launch costs, and what a graph saves of it.
#[derive(Parser)]
struct Cli {
    /// Numbers of sequences
    #[arg(long, value_delimiter = ',', default_value = "1,16,132")]
    num_seqs: Vec<usize>,
    /// Lengths of the sequences
    #[arg(long, value_delimiter = ',', default_value = "64,256,1024,4096")]
    lengths: Vec<usize>,
    /// Measurements of each
    #[arg(long, default_value_t = 31)]
    runs: usize,
    /// Writes every measurement to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

fn main() -> ExitCode {
    match measure(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(cli: &Cli) -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::auto()?;
    let (runs, csv) = match (device.is_simt(), &cli.csv) {
        (true, Some(_)) => return Err("times need a GPU, and so does --csv".into()),
        (simt, csv) => (if simt { 0 } else { cli.runs }, csv),
    };
    println!("{}: {CALLS} calls, each over what the one before wrote\n", device.name());
    println!("microseconds per call: each call by itself, as a graph, and all as one batch");
    println!("num_seqs  length    plain    graph    batch  kernels");
    let mut text = String::from(
        "date,machine,driver,element,direction,engine,kernel,num_seqs,seq_len,calls,run,us_per_call\n",
    );
    let driver = driver().map_or_else(
        |_| String::from("none"),
        |driver| format!("CUDA {}.{}", driver.cuda_version.0, driver.cuda_version.1),
    );
    let head = format!("{},{},{driver},f32,forward", machine::date(), device.name());
    for &num_seqs in &cli.num_seqs {
        for &seq_len in &cli.lengths {
            let mut chain = Chain::new(&device, num_seqs, seq_len)?;
            chain.check()?;
            let mut measured = [const { Vec::new() }; 3];
            for run in 1..=runs {
                for ((way, us), all) in WAYS.iter().zip(chain.run()?).zip(&mut measured) {
                    let kernel = &chain.kernels[usize::from(*way == "batch")];
                    text += &format!(
                        "{head},{way},{kernel},{num_seqs},{seq_len},{CALLS},{run},{us:.3}\n"
                    );
                    all.push(us);
                }
            }
            let shown =
                |us: Option<f64>| us.map_or_else(|| String::from("-"), |us| format!("{us:.2}"));
            let [plain, graph, batch] = measured.map(median).map(shown);
            let [one, all] = &chain.kernels;
            println!("{num_seqs:8} {seq_len:7} {plain:>8} {graph:>8} {batch:>8}  {one}, {all}");
        }
    }
    match csv {
        Some(file) => std::fs::write(file, text)?,
        None if device.is_simt() => {
            println!("\nThe emulator has the same results both ways; times need a GPU.");
        }
        None => {}
    }
    Ok(())
}

/// The calls over one shape, in three ways.
struct Chain {
    device: Device,
    recurrence: AutoRecurrence<f32>,
    shape: (usize, usize),
    /// Of all the sequences of a batch; the chain takes the first ones.
    inputs: Buffer<f32>,
    coeffs: Buffer<f32>,
    outputs: Buffer<f32>,
    /// The kernel of a call, and that of the batch.
    kernels: [String; 2],
    graph: linrec::device::Graph,
}

impl Chain {
    fn new(device: &Device, num_seqs: usize, seq_len: usize) -> Result<Chain, Error> {
        let recurrence = AutoRecurrence::new(device).compiling(false);
        let shape = (num_seqs, seq_len);
        let batch = (CALLS * num_seqs, seq_len);
        let len = batch.0 * batch.1;
        let (inputs, coeffs) = (device.upload(&noise(len, 1))?, device.upload(&noise(len, 2))?);
        let outputs = device.allocate(len)?;
        let kernels = [
            recurrence.choice(Pass::Forward, shape, true)?.spec(),
            recurrence.choice(Pass::Forward, batch, true)?.spec(),
        ];
        let graph = device
            .record(|stream| queue(&recurrence, stream, shape, &inputs, &coeffs, &outputs))?;
        let device = device.clone();
        Ok(Chain { device, recurrence, shape, inputs, coeffs, outputs, kernels, graph })
    }

    /// An error unless a replay writes the bits of plain calls.
    fn check(&mut self) -> Result<(), Box<dyn std::error::Error>> {
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

/// The calls of a chain: the first over the inputs, each other one over what the one before wrote; the outputs
/// go to two places in turns.
fn queue(
    recurrence: &AutoRecurrence<f32>,
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

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
