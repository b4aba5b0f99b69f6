//! Measures every rung of the ladder on a GPU, and prints the record:
//!
//! ```text
//! cargo run --release -p ch14-fused-scan --example rungs \
//!     > chapters/14-fused-scan/results/h200/fused.csv
//! cargo xtask pack chapters/14-fused-scan/results/h200
//! ```
//!
//! First each rung is checked against its bound. Then all take turns, each after the caches have
//! been overwritten. A line holds the median of nine runs.

use std::process::ExitCode;

use bench::median;
use ch14_fused_scan::ladder::{Arrays, Kernel, Rung};
use ch14_fused_scan::problem::{Problem, STATES, Sizes, worst};
use lesson::output::{self, println};
use linrec::device::{Bench, Device};

const RUNS: usize = 9;
const LENGTHS: [usize; 2] = [1024, 16384];

fn main() -> ExitCode {
    output::finish(run())
}

fn run() -> lesson::Result {
    let device = Device::auto()?;
    if device.is_simt() {
        return Err("there is no GPU here, and the emulator has no clock".into());
    }
    let small = Problem::draw(Sizes { batch: 2, channels: 70, len: 1000 }, true, 1);
    let mut kernels = Vec::new();
    for rung in Rung::ALL {
        let kernel = Kernel::new(&device, rung)?;
        let (out, _) = kernel.compute(&small)?;
        let share = worst(&out, &small.outputs(rung.order(small.sizes.len)));
        if share > 1.0 {
            return Err(format!("{}: an error of {share} times its bound", rung.name()).into());
        }
        kernels.push((rung, kernel));
    }
    println!("date,machine,kernel,batch,channels,seq_len,states,element,ms");
    for len in LENGTHS {
        let sizes = Sizes { batch: 8, channels: 2048, len };
        let problem = Problem::draw(sizes, false, 2);
        let arrays = Arrays::upload(&device, &problem)?;
        let mut out = device.allocate(sizes.elements())?;
        let mut bench = Bench::new(&device)?;
        let mut times = vec![Vec::new(); kernels.len()];
        for number in 0..RUNS + 2 {
            for ((_, kernel), times) in kernels.iter().zip(&mut times) {
                let ms = bench.time_ms(|stream| {
                    kernel.launch_on(stream, &arrays, &mut out, None).map(drop)
                })?;
                // The first two runs are a warm-up.
                if number >= 2 {
                    times.push(ms);
                }
            }
        }
        for ((rung, _), times) in kernels.iter().zip(times) {
            let (date, machine, name) = (lesson::machine::date(), device.name(), rung.name());
            let Sizes { batch, channels, len } = sizes;
            let ms = median(times);
            println!("{date},{machine},\"{name}\",{batch},{channels},{len},{STATES},f32,{ms:.4}");
        }
    }
    Ok(())
}
