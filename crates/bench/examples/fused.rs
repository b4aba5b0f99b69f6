//! Times the fused selective scan: the forward pass alone, the forward pass that writes
//! checkpoints, the backward pass, and a training step, which is the last two in sequence.
//!
//! ```text
//! cargo run --release -p bench --example fused -- --shapes 8x2048x1024x16,1x2048x65536x16
//! cargo run --release -p bench --example fused -- \
//!     --csv > chapters/14-fused-scan/results/h200/scan.csv
//! cargo xtask pack chapters/14-fused-scan/results/h200
//! ```
//!
//! The scan uses D, z, bias and softplus. Caches are overwritten before each run, and the medians
//! are printed, next to the times of Mamba's own kernels on an H200 where they are known
//! (mamba-ssm, built with torch 2.11). With `--repeat`, each gradient is computed that many times
//! more, and a changed bit is an error.

use std::process::ExitCode;

use bench::median;
use clap::Parser;
use half::{bf16, f16};
use lesson::output::{self, println};
use linrec::device::{
    Bench, Buffer, Device, Exponential, ScanForwardOptions, ScanGradients, ScanInputs, ScanShape,
    SelectiveScan, Storage,
};

/// Times the fused selective scan, forward and backward.
#[derive(Parser)]
struct Cli {
    /// Shapes: batches x channels x length x states
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "8x2048x1024x16,8x2048x4096x16,8x2048x16384x16,1x2048x65536x16,8x1536x1024x16,\
                         8x1536x1000x16,8x1536x4093x16,8x2048x4093x16,8x2048x4096x8,8x2048x4096x64"
    )]
    shapes: Vec<String>,
    /// f32, bf16 or f16
    #[arg(long, value_delimiter = ',', default_value = "f32,bf16")]
    elements: Vec<String>,
    /// Use the exponential that has the same bits on all devices
    #[arg(long)]
    exact: bool,
    /// Numbers of chunks of the forward pass to time; 0 is the library's own rule
    #[arg(long, value_delimiter = ',', default_value = "0")]
    chunks: Vec<usize>,
    /// Time only the forward pass
    #[arg(long)]
    forward: bool,
    /// Print the lines of a record instead of a table
    #[arg(long)]
    csv: bool,
    /// Number of measurements of each pass
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// Compute each gradient this many times more, and compare all bits
    #[arg(long, default_value_t = 0)]
    repeat: usize,
}

/// The times of Mamba's kernels on an H200: batches, channels, steps, element, milliseconds
/// forward, milliseconds backward.
const MAMBA: [(usize, usize, usize, &str, f64, f64); 12] = [
    (8, 2048, 256, "f32", 0.13328, 0.4136),
    (8, 2048, 256, "bf16", 0.08237, 0.36736),
    (8, 2048, 1024, "f32", 0.57872, 1.47232),
    (8, 2048, 1024, "bf16", 0.29174, 1.18102),
    (8, 2048, 4096, "f32", 2.32989, 5.44406),
    (8, 2048, 4096, "bf16", 1.16157, 4.58106),
    (8, 2048, 16384, "f32", 9.81699, 21.39466),
    (8, 2048, 16384, "bf16", 5.5569, 18.74598),
    (8, 1536, 1024, "f32", 0.4393, 1.12358),
    (8, 1536, 1024, "bf16", 0.22291, 0.90102),
    (1, 2048, 65536, "f32", 5.63558, 12.63446),
    (1, 2048, 65536, "bf16", 2.88154, 10.968),
];

/// A pass that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Forward,
    /// The forward pass that writes checkpoints.
    Checkpointed,
    Backward,
    /// The forward pass with checkpoints followed by the backward pass.
    Step,
}

impl Pass {
    const ALL: [Pass; 4] = [Pass::Forward, Pass::Checkpointed, Pass::Backward, Pass::Step];

    fn name(self) -> &'static str {
        match self {
            Pass::Forward => "forward",
            Pass::Checkpointed => "forward, kept",
            Pass::Backward => "backward",
            Pass::Step => "step",
        }
    }

    fn is_wanted(self, cli: &Cli) -> bool {
        self == Pass::Forward || !cli.forward
    }

    /// Selects or adds the times of the forward and the backward pass.
    fn of(self, forward: f64, backward: f64) -> f64 {
        match self {
            Pass::Forward | Pass::Checkpointed => forward,
            Pass::Backward => backward,
            Pass::Step => forward + backward,
        }
    }
}

fn main() -> ExitCode {
    output::finish(measure(&output::parse()))
}

fn measure(cli: &Cli) -> lesson::Result {
    let device = Device::auto()?;
    if cli.csv {
        println!("date,machine,batch,channels,seq_len,states,element,exponential,pass,ms");
    } else {
        println!(
            "{}, medians of {} runs, milliseconds (as a multiple of Mamba's speed)",
            device.name(),
            cli.runs
        );
        let passes = Pass::ALL.map(|pass| format!("{:>18}", pass.name()));
        println!("{:>24} {:>5} {:>6} {}", "shape", "", "chunks", passes.join(" "));
    }
    for shape in &cli.shapes {
        for element in &cli.elements {
            let shape = parse(shape)?;
            for &chunks in &cli.chunks {
                match element.as_str() {
                    "f32" => one::<f32>(&device, cli, shape, element, chunks)?,
                    "bf16" => one::<bf16>(&device, cli, shape, element, chunks)?,
                    "f16" => one::<f16>(&device, cli, shape, element, chunks)?,
                    other => {
                        return Err(format!("{other}: the elements are f32, bf16 and f16").into());
                    }
                }
            }
        }
    }
    Ok(())
}

fn parse(shape: &str) -> Result<ScanShape, String> {
    let numbers: Result<Vec<usize>, _> = shape.split('x').map(str::parse).collect();
    match numbers.as_deref() {
        Ok(&[batch, channels, seq_len, states]) => {
            Ok(ScanShape { batch, channels, seq_len, states, groups: 1 })
        }
        _ => Err(format!("{shape}: a shape is batches x channels x length x states")),
    }
}

/// Fills a buffer with pseudo-random numbers between two bounds; one piece is repeated to the end.
fn noise<S: Storage<Accum = f32>>(
    device: &Device,
    len: usize,
    seed: u64,
    (low, high): (f32, f32),
) -> Result<Buffer<S>, linrec::Error> {
    const PIECE: usize = 1 << 20;
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let piece: Vec<S> = (0..PIECE.min(len))
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            S::narrow(low + (high - low) * ((state >> 40) as f32 / (1 << 24) as f32))
        })
        .collect();
    let buffer = device.allocate::<S>(len)?;
    for begin in (0..len).step_by(PIECE) {
        let end = (begin + PIECE).min(len);
        buffer.slice(begin..end)?.upload(&piece[..end - begin])?;
    }
    Ok(buffer)
}

/// The buffers of all gradients of one shape.
struct GradientBuffers<S> {
    rows: [Buffer<S>; 3],
    rates: Buffer<f32>,
    couplings: [Buffer<S>; 2],
    per_channel: [Buffer<f32>; 2],
    initial: Buffer<f32>,
}

impl<S: Storage<Accum = f32>> GradientBuffers<S> {
    fn gradients(&mut self) -> ScanGradients<'_, S> {
        let [u, delta, z] = &mut self.rows;
        let [b, c] = &mut self.couplings;
        let [d, delta_bias] = &mut self.per_channel;
        ScanGradients {
            u,
            delta,
            a: &mut self.rates,
            b: b.into(),
            c: c.into(),
            d: Some(d),
            z: Some(z),
            delta_bias: Some(delta_bias),
            initial: Some(&mut self.initial),
        }
    }

    fn bits(&self) -> Result<Vec<u32>, linrec::Error> {
        let mut bits = Vec::new();
        for array in self.rows.iter().chain(&self.couplings) {
            bits.extend(array.download()?.into_iter().map(|number| number.widen().to_bits()));
        }
        for array in self.per_channel.iter().chain([&self.rates, &self.initial]) {
            bits.extend(array.download()?.into_iter().map(f32::to_bits));
        }
        Ok(bits)
    }
}

fn one<S: Storage<Accum = f32>>(
    device: &Device,
    cli: &Cli,
    shape: ScanShape,
    element: &str,
    chunks: usize,
) -> lesson::Result {
    let ScanShape { batch, channels, seq_len, states, groups } = shape;
    let (rows, couplings) = (batch * channels * seq_len, batch * groups * states * seq_len);
    let exponential = if cli.exact { Exponential::Exact } else { Exponential::Fast };
    let scan = SelectiveScan::<S>::new(device, exponential);

    let [u, z, d_out] = [(1, 1.7), (2, 2.0), (3, 1.7)]
        .map(|(seed, most)| noise::<S>(device, rows, seed, (-most, most)));
    let (u, z, d_out) = (u?, z?, d_out?);
    let delta = noise::<S>(device, rows, 4, (-4.0, 0.5))?;
    let b = noise::<S>(device, couplings, 5, (-1.7, 1.7))?;
    let c = noise::<S>(device, couplings, 6, (-1.7, 1.7))?;
    let rates: Vec<f32> = (0..channels * states).map(|i| -((i % states + 1) as f32)).collect();
    let a = device.upload(&rates)?;
    let d = noise::<f32>(device, channels, 7, (0.5, 1.5))?;
    let delta_bias = noise::<f32>(device, channels, 8, (-1.0, 0.0))?;
    let inputs = ScanInputs {
        u: &u,
        delta: &delta,
        a: &a,
        b: (&b).into(),
        c: (&c).into(),
        d: Some(&d),
        z: Some(&z),
        delta_bias: Some(&delta_bias),
        softplus: true,
        initial: None,
        restarts: None,
    };
    let mut out = device.allocate::<S>(rows)?;
    let kept = shape.checkpoints_len().ok_or("too many checkpoints")?;
    let mut checkpoints = device.allocate::<f32>(kept)?;
    let mut buffers = GradientBuffers {
        rows: [device.allocate(rows)?, device.allocate(rows)?, device.allocate(rows)?],
        rates: device.allocate(channels * states)?,
        couplings: [device.allocate(couplings)?, device.allocate(couplings)?],
        per_channel: [device.allocate(channels)?, device.allocate(channels)?],
        initial: device.allocate(batch * channels * states)?,
    };

    let mut times = Pass::ALL.map(|_| Vec::new());
    let mut bench = Bench::new(device)?;
    let passes = Pass::ALL.into_iter().filter(|pass| pass.is_wanted(cli));
    for run in 0..=cli.runs {
        for pass in passes.clone() {
            // All work runs on the device's default stream, which the stopwatch times.
            let ms = bench.time_ms(|_| {
                if pass != Pass::Backward {
                    let options = ScanForwardOptions {
                        checkpoints: Some(&mut checkpoints).filter(|_| pass != Pass::Forward),
                        chunks: (chunks > 0).then_some(chunks),
                        ..Default::default()
                    };
                    scan.forward_into(&inputs, &mut out, shape, options)?;
                }
                if matches!(pass, Pass::Backward | Pass::Step) {
                    let (gradients, options) = (buffers.gradients(), Default::default());
                    scan.backward_into(&inputs, &d_out, &checkpoints, gradients, shape, options)?;
                }
                Ok(())
            })?;
            // The first round loads kernels and allocates scratch.
            if run > 0 {
                times[pass as usize].push(ms);
            }
        }
    }
    let mamba = MAMBA.iter().find(|row| {
        (row.0, row.1, row.2, row.3) == (batch, channels, seq_len, element) && states == 16
    });
    let name = format!("{batch}x{channels}x{seq_len}x{states}");
    let mut cells = Vec::new();
    for pass in passes {
        let ours = median(times[pass as usize].iter().copied());
        if cli.csv {
            let (date, machine) = (lesson::machine::date(), device.name());
            let exponential = if cli.exact { "exact" } else { "fast" };
            let pass = pass.name();
            println!(
                "{date},{machine},{batch},{channels},{seq_len},{states},{element},{exponential},\"{pass}\",{ours:.4}"
            );
        }
        let theirs = mamba.map(|row| pass.of(row.4, row.5));
        cells.push(match theirs {
            Some(theirs) => format!("{:>18}", format!("{ours:.4} ({:.2})", theirs / ours)),
            None => format!("{ours:>18.4}"),
        });
    }
    if !cli.csv {
        println!("{name:>24} {element:>5} {chunks:>6} {}", cells.join(" "));
    }

    if cli.repeat > 0 {
        let before = buffers.bits()?;
        for _ in 0..cli.repeat {
            scan.backward_into(
                &inputs,
                &d_out,
                &checkpoints,
                buffers.gradients(),
                shape,
                Default::default(),
            )?;
            if buffers.bits()? != before {
                return Err(
                    format!("{name} {element}: the bits of the gradients have changed").into()
                );
            }
        }
        println!("{:>24} {element:>5} the same bits in {} runs", "", cli.repeat + 1);
    }
    Ok(())
}
