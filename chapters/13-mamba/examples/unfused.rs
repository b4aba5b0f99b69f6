//! Times the unfused scan in `f32` on a GPU, with `D`, `z`, bias and softplus: the forward pass,
//! the backward pass, the recurrence of the forward pass alone, and an element-wise kernel that
//! reads and writes as many large arrays as the recurrence does.
//!
//! ```text
//! cargo run --release -p ch13-mamba --example unfused -- 8 2048 16 1024
//! ```
//!
//! The arguments are batch, channels, states and length. Each output line is one measurement, in
//! milliseconds and in gigabytes per second. The bytes of a backward pass are not counted.

use std::process::ExitCode;

use ch13_mamba::on_device::{Given, GradientScratch, Gradients, Scan, Scratch, Traffic};
use ch13_mamba::{Mixing, Sizes};
use lesson::output::{self, println};
use linrec::device::{Bench, Buffer, Choice, Device, ForwardOptions, Recurrence};
use linrec::kernels::program;

const RUNS: usize = 9;

fn main() -> ExitCode {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    output::finish(match sizes[..] {
        [batch, channels, states, len] => times(Sizes { batch, channels, groups: 1, states, len })
            .map_err(|error| error.to_string()),
        _ => Err(String::from("usage: unfused BATCH CHANNELS STATES LEN")),
    })
}

fn times(sizes: Sizes) -> Result<(), linrec::Error> {
    let device = Device::auto()?;
    let Sizes { batch, channels, states, len, .. } = sizes;
    let (own, rows) = (batch * channels * len, batch * channels * states);
    let large = rows * len;
    // Numbers without a pattern: the fractional parts of multiples of the golden ratio.
    let array = |count: usize, low: f32, high: f32| {
        let part = |i: usize| (i as f64 * 0.618_033_988_749_894_9).fract() as f32;
        device.upload(&(0..count).map(|i| low + (high - low) * part(i)).collect::<Vec<f32>>())
    };
    let (u, delta, z) = (array(own, -1.0, 1.0)?, array(own, -5.0, -2.0)?, array(own, -2.0, 2.0)?);
    let (a, shared) = (array(channels * states, -16.0, -1.0)?, batch * states * len);
    let (b, c) = (array(shared, -1.0, 1.0)?, array(shared, -1.0, 1.0)?);
    let (d, bias) = (array(channels, -1.0, 1.0)?, array(channels, -1.0, 1.0)?);
    let given = Given {
        sizes,
        u: &u,
        delta: &delta,
        a: &a,
        b: Mixing::Varying(&b),
        c: Mixing::Varying(&c),
        d: Some(&d),
        z: Some(&z),
        delta_bias: Some(&bias),
        delta_softplus: true,
        initial: None,
    };
    let scan = Scan::<f32>::new(&device, Choice::FastestShipped)?;
    let recurrence = Recurrence::<f32>::new(&device, Choice::FastestShipped)?;
    let add = program("elementwise.cu").map(|add| add.with_entries(ROOF)).ok_or_else(|| {
        linrec::Error::Unsupported { engine: "roof".to_owned(), what: "elementwise.cu".to_owned() }
    })?;
    let add = device.program(&add)?.function(ROOF[1])?;
    let mut scratch = GradientScratch::new(&device, sizes)?;
    let mut gradients = Gradients::new(&device, &given)?;
    let mut y: Buffer<f32> = device.allocate(own)?;

    let passes = Traffic::of_passes(states, true, true, size_of::<f32>());
    let moved = |traffic: &[Traffic]| traffic.iter().map(Traffic::all).sum::<usize>() * own;
    let mut bench = Bench::new(&device)?;
    println!("device,batch,channels,states,len,what,run,ms,gb_per_s");
    for run in 0..=RUNS {
        let forward = bench.time_ms(|stream| {
            scan.forward_into(&given, &mut scratch.states, &mut y, None, stream).map(drop)
        })?;
        let Scratch { inputs, coeffs, outputs } = &mut scratch.states;
        let alone = bench.time_ms(|stream| {
            let options = ForwardOptions { stream: Some(stream), ..Default::default() };
            recurrence.forward_into(inputs, coeffs, outputs, (rows, len), options).map(drop)
        })?;
        let packs = large / 4;
        let blocks = u32::try_from(packs.div_ceil(256)).unwrap_or(u32::MAX).max(1);
        let roof = bench.time_ms(|stream| {
            let launch = add.launch(blocks, 256).arg(&*inputs).arg(&*coeffs).arg(&mut *outputs);
            launch.arg(packs as i64).run(stream).map(drop)
        })?;
        let backward = bench.time_ms(|stream| {
            scan.backward_into(&given, &y, None, &mut scratch, &mut gradients, stream).map(drop)
        })?;
        let recurrence_bytes = moved(&passes[1..2]);
        for (what, ms, bytes) in [
            ("forward", forward, Some(moved(&passes))),
            ("recurrence", alone, Some(recurrence_bytes)),
            ("roof", roof, Some(recurrence_bytes)),
            ("backward", backward, None),
        ] {
            let speed =
                bytes.map_or(String::new(), |bytes| format!("{:.0}", bytes as f64 / ms / 1e6));
            // The first run is a warm-up.
            if run > 0 {
                let name = device.name();
                println!("{name},{batch},{channels},{states},{len},{what},{run},{ms:.4},{speed}");
            }
        }
    }
    Ok(())
}

/// The entry points that the shipped PTX contains.
const ROOF: [&str; 4] = [
    "elementwise_fwd<float>",
    "elementwise_fwd<float4>",
    "elementwise_bwd<float>",
    "elementwise_bwd<float4>",
];
