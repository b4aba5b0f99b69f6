//! What takes part in a race, and the data that it runs on.

use linrec::Error;
use linrec::device::{
    BackwardOptions, Bench, Buffer, Device, ForwardOptions, Function, Recurrence,
};
use linrec::kernels::{Config, ElementType, KernelChoice, RowsConfig, WideConfig};

use crate::rows::Rows;

/// A kernel by its name: `ref:64`, `pipe:8x64:0`, `rows:16x2x32:w`, `wide:2x512:a2w`.
pub fn parse(name: &str) -> Result<KernelChoice, String> {
    let wrong = || {
        let all = "ref:64, tile:4x256:0, pipe:8x64:0, rows:16x2x32:w or wide:2x512:a2w";
        format!("`{name}` is no kernel; write {all}")
    };
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let mut parts = name.split(':');
    let kind = parts.next().unwrap_or_default();
    let size = parts.next().ok_or_else(wrong)?;
    if kind == "ref" {
        return Ok(KernelChoice::Ref { threads: number(size)? });
    }
    let numbers = || size.split('x').map(number).collect::<Result<Vec<_>, _>>();
    let options = name.splitn(3, ':').nth(2).unwrap_or_default();
    let whole = options.ends_with('w');
    if kind == "rows" {
        let [lanes, words, threads] = numbers()?[..] else { return Err(wrong()) };
        return Ok(KernelChoice::Rows(RowsConfig { lanes, words, threads, whole }));
    }
    if kind == "wide" {
        let [words, threads] = numbers()?[..] else { return Err(wrong()) };
        let ahead = options.trim_end_matches('w').strip_prefix('a').map_or(Ok(0), number)?;
        return Ok(KernelChoice::Wide(WideConfig { words, threads, ahead, whole }));
    }
    let (elems, threads) = size.split_once('x').ok_or_else(wrong)?;
    let config = Config {
        max_elems_per_thread: number(elems)?,
        max_threads_per_block: number(threads)?,
        memcode: parts.next().map_or(Ok(0), number)?,
        algocode: 3,
    };
    match kind {
        "tile" => Ok(KernelChoice::Tile(config)),
        "pipe" => Ok(KernelChoice::Pipe(config)),
        _ => Err(wrong()),
    }
}

/// A kernel ready to run.
pub struct Runner {
    name: String,
    recurrence: Recurrence<f32>,
}

impl Runner {
    /// Loads the kernel, or compiles it.
    pub fn new(device: &Device, choice: KernelChoice, name: &str) -> Result<Runner, Error> {
        Ok(Runner { name: name.to_owned(), recurrence: Recurrence::new(device, choice)? })
    }

    /// Whether the kernel takes sequences of this length.
    fn takes(&self, seq_len: u64) -> bool {
        let choice = self.recurrence.choice();
        let fits = choice.max_len(ElementType::F32).is_none_or(|most| seq_len <= most);
        fits && seq_len.is_multiple_of(choice.multiple_of(ElementType::F32))
    }
}

/// Arrays for the longest of the races, and the stopwatch.
pub struct Track {
    num_seqs: usize,
    bench: Bench,
    /// Inputs, coefficients and outputs of a forward pass, or what a backward pass reads.
    read: [Buffer<f32>; 3],
    written: [Buffer<f32>; 2],
    roof: [Function; 2],
}

impl Track {
    /// Fills the arrays with coefficients in [0, 1).
    pub fn new(device: &Device, num_seqs: usize, longest: usize) -> Result<Track, Error> {
        let len = num_seqs * longest;
        let fresh = |name| device.allocate_named::<f32>(name, len);
        let mut read = [fresh("inputs")?, fresh("coeffs")?, fresh("outputs")?];
        let mut state = 1_u32;
        let noise: Vec<f32> = (0..len.min(1 << 24))
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 24) as f32
            })
            .collect();
        for buffer in &mut read {
            for start in (0..len).step_by(noise.len().max(1)) {
                let end = len.min(start + noise.len());
                buffer.slice(start..end)?.upload(&noise[..end - start])?;
            }
        }
        let ptx = linrec::kernels::program("elementwise.cu").map(|program| {
            program.with_entries([
                "elementwise_fwd<float>",
                "elementwise_fwd<float4>",
                "elementwise_bwd<float>",
                "elementwise_bwd<float4>",
            ])
        });
        let module = device.program(&ptx.expect("the roof is in the catalogue"))?;
        let roof = [
            module.function("elementwise_fwd<float4>")?,
            module.function("elementwise_bwd<float4>")?,
        ];
        Ok(Track {
            num_seqs,
            bench: Bench::new(device)?,
            read,
            written: [fresh("d_inputs")?, fresh("d_coeffs")?],
            roof,
        })
    }

    /// All kernels and the roof at one length, in turns.
    pub fn race(
        &mut self,
        pass: &str,
        seq_len: usize,
        runners: &[Runner],
        runs: usize,
        rows: &mut Rows,
    ) -> Result<(), Error> {
        // Once without the clock: what is loaded late is loaded.
        for run in 0..=runs {
            let ms = self.roof_ms(pass, seq_len)?;
            if run > 0 {
                rows.add(pass, "roof", seq_len, ms);
            }
            for runner in runners {
                if !runner.takes(seq_len as u64) {
                    continue;
                }
                let ms = self.kernel_ms(pass, seq_len, runner)?;
                if run > 0 {
                    rows.add(pass, &runner.name, seq_len, ms);
                }
            }
        }
        Ok(())
    }

    fn roof_ms(&mut self, pass: &str, seq_len: usize) -> Result<f64, Error> {
        let packs = self.num_seqs * seq_len / 4;
        let blocks = packs.div_ceil(256) as u32;
        let Track { read: [a, b, c], written: [sum, other], roof, bench, .. } = self;
        let launch = if pass == "forward" {
            roof[0].launch(blocks, 256).arg(&*a).arg(&*b).arg(sum).arg(packs as i64)
        } else {
            let launch = roof[1].launch(blocks, 256).arg(&*a).arg(&*b).arg(&*c);
            launch.arg(sum).arg(other).arg(packs as i64)
        };
        bench.time_ms(|stream| launch.run(stream).map(drop))
    }

    fn kernel_ms(&mut self, pass: &str, seq_len: usize, runner: &Runner) -> Result<f64, Error> {
        let shape = (self.num_seqs, seq_len);
        let len = shape.0 * shape.1;
        let [a, b, c] = [0, 1, 2].map(|i| self.read[i].slice(..len));
        let [d, e] = [0, 1].map(|i| self.written[i].slice(..len));
        let (a, b, c, mut d, mut e) = (a?, b?, c?, d?, e?);
        let recurrence = &runner.recurrence;
        self.bench.time_ms(|_| {
            if pass == "forward" {
                recurrence.forward_into(&a, &b, &mut d, shape, ForwardOptions::default()).map(drop)
            } else {
                let options = BackwardOptions::default();
                recurrence.backward_into(&a, &b, &c, &mut d, &mut e, shape, options).map(drop)
            }
        })
    }
}
