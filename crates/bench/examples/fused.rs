//! Times the forward pass of the fused selective scan:
//!
//! ```text
//! cargo run --release -p bench --example fused -- --shapes 8x2048x1024x16,1x2048x65536x16
//! ```
//!
//! With D, z, bias and softplus, by the project's protocol: caches that hold nothing of use, and medians. Beside each time is
//! that of Mamba's own kernel on an H200, where it is known (mamba-ssm, built with torch 2.11).

use std::process::ExitCode;

use bench::median;
use clap::Parser;
use half::{bf16, f16};
use lesson::output::{self, println};
use linrec::device::{
    Bench, Buffer, Device, Exponential, ScanForwardOptions, ScanInputs, ScanShape, SelectiveScan,
    Storage,
};

/// Times the forward pass of the fused selective scan.
#[derive(Parser)]
struct Cli {
    /// Shapes: batches x channels x length x states
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "8x2048x1024x16,8x2048x4096x16,8x2048x16384x16,1x2048x65536x16,8x1536x1024x16,\
                         8x1536x1000x16,8x1536x4093x16,8x2048x4096x8,8x2048x4096x64"
    )]
    shapes: Vec<String>,
    /// f32, bf16 or f16
    #[arg(long, value_delimiter = ',', default_value = "f32,bf16")]
    elements: Vec<String>,
    /// By the exponential that has the same bits on all devices
    #[arg(long)]
    exact: bool,
    /// Leaves states for a backward pass
    #[arg(long)]
    checkpoints: bool,
    /// Chunks into which sequences are cut, as many as are to be timed beside each other; 0 is the library's own rule
    #[arg(long, value_delimiter = ',', default_value = "0")]
    chunks: Vec<usize>,
    /// Measurements of each
    #[arg(long, default_value_t = 9)]
    runs: usize,
}

/// Mamba's kernel on an H200: batches, channels, steps, element, milliseconds.
const MAMBA: [(usize, usize, usize, &str, f64); 14] = [
    (8, 2048, 256, "f32", 0.13328),
    (8, 2048, 256, "bf16", 0.08237),
    (8, 2048, 1024, "f32", 0.57872),
    (8, 2048, 1024, "bf16", 0.29174),
    (8, 2048, 2048, "f32", 1.1591),
    (8, 2048, 2048, "bf16", 0.59005),
    (8, 2048, 4096, "f32", 2.32989),
    (8, 2048, 4096, "bf16", 1.16157),
    (8, 2048, 16384, "f32", 9.81699),
    (8, 2048, 16384, "bf16", 5.5569),
    (8, 1536, 1024, "f32", 0.4393),
    (8, 1536, 1024, "bf16", 0.22291),
    (1, 2048, 65536, "f32", 5.63558),
    (1, 2048, 65536, "bf16", 2.88154),
];

fn main() -> ExitCode {
    output::finish(run(&output::parse()))
}

fn run(cli: &Cli) -> lesson::Result {
    let device = Device::auto()?;
    println!("{}, medians of {} runs", device.name(), cli.runs);
    println!("batch channels seq_len states element chunks       ms   least   mamba  ratio");
    for text in &cli.shapes {
        let sizes: Vec<usize> = text.split('x').map(str::parse).collect::<Result<_, _>>()?;
        let &[batch, channels, seq_len, states] = sizes.as_slice() else {
            return Err(format!("`{text}` is not batches x channels x length x states").into());
        };
        let shape = ScanShape { batch, channels, seq_len, states, groups: 1 };
        let each =
            cli.elements.iter().flat_map(|e| cli.chunks.iter().map(move |&chunks| (e, chunks)));
        for (element, chunks) in each {
            let times = match element.as_str() {
                "f32" => times::<f32>(&device, shape, chunks, cli)?,
                "bf16" => times::<bf16>(&device, shape, chunks, cli)?,
                "f16" => times::<f16>(&device, shape, chunks, cli)?,
                other => return Err(format!("no element `{other}`: f32, bf16 or f16").into()),
            };
            let least = times.iter().copied().fold(f64::INFINITY, f64::min);
            let ms = median(times);
            let known = MAMBA.iter().find(|known| {
                states == 16
                    && (known.0, known.1, known.2, known.3) == (batch, channels, seq_len, element)
            });
            let beside = known
                .map_or(String::new(), |known| format!("{:8.4} {:6.2}", known.4, known.4 / ms));
            println!(
                "{batch:5} {channels:8} {seq_len:7} {states:6} {element:>7} {chunks:6} {ms:8.4} {least:7.4} {beside}"
            );
        }
    }
    Ok(())
}

fn times<S: Storage<Accum = f32>>(
    device: &Device,
    shape: ScanShape,
    chunks: usize,
    cli: &Cli,
) -> Result<Vec<f64>, linrec::Error> {
    let ScanShape { batch, channels, seq_len, states, groups } = shape;
    let (rows, couplings) = (batch * channels * seq_len, batch * groups * states * seq_len);
    let exponential = if cli.exact { Exponential::Exact } else { Exponential::Fast };
    let scan = SelectiveScan::<S>::new(device, exponential);
    let (u, delta, z) = (
        array::<S>(device, rows, 1, -1.0, 1.0)?,
        array(device, rows, 2, -4.0, 0.0)?,
        array(device, rows, 3, -2.0, 2.0)?,
    );
    let (b, c) =
        (array::<S>(device, couplings, 4, -1.0, 1.0)?, array(device, couplings, 5, -1.0, 1.0)?);
    let a: Vec<f32> = (0..channels * states).map(|i| -1.0 - (i % states) as f32).collect();
    let (a, d, bias) = (
        device.upload(&a)?,
        array(device, channels, 6, -1.0, 1.0)?,
        array(device, channels, 7, -3.0, -1.0)?,
    );
    let inputs = ScanInputs {
        u: &u,
        delta: &delta,
        a: &a,
        b: (&b).into(),
        c: (&c).into(),
        d: Some(&d),
        z: Some(&z),
        delta_bias: Some(&bias),
        softplus: true,
        initial: None,
        restarts: None,
    };
    let mut out = device.allocate(rows)?;
    let mut checkpoints = match cli.checkpoints {
        true => Some(device.allocate(shape.checkpoints_len().unwrap_or(usize::MAX))?),
        false => None,
    };
    let mut bench = Bench::new(device)?;
    let mut times = Vec::with_capacity(cli.runs);
    for number in 0..cli.runs + 2 {
        let ms = bench.time_ms(|stream| {
            let options = ScanForwardOptions {
                checkpoints: checkpoints.as_mut(),
                chunks: (chunks > 0).then_some(chunks),
                stream: Some(stream),
                ..Default::default()
            };
            scan.forward_into(&inputs, &mut out, shape, options).map(drop)
        })?;
        // The first ones warm up.
        if number >= 2 {
            times.push(ms);
        }
    }
    Ok(times)
}

/// Numbers between two, which look like random ones, the same ones each time.
fn array<S: Storage<Accum = f32>>(
    device: &Device,
    len: usize,
    seed: u32,
    least: f32,
    most: f32,
) -> Result<Buffer<S>, linrec::Error> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let numbers: Vec<S> = (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            S::narrow(least + (most - least) * (state >> 8) as f32 / (1 << 24) as f32)
        })
        .collect();
    device.upload(&numbers)
}
