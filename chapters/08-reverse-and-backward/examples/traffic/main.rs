//! What the chapter shows of a GPU: the time of each way between memory and registers, and what Nsight Compute
//! counts while it goes that way.
//!
//! ```text
//! traffic times FOLDER          medians are not taken: every run goes into FOLDER/times.csv
//! traffic once LABELS           launches every kernel once, and writes their names into LABELS
//! traffic table NCU LABELS CSV  joins what `ncu --page raw` wrote with the names
//! traffic spans SASS CSV        reads loads and stores off what `ncu --page source` wrote
//! ```
//!
//! `times` and `once` need a GPU; `once` is to be run under `ncu`, with the metrics that `table` looks for:
//!
//! ```text
//! ncu --clock-control none --csv --page raw --print-units base --log-file NCU \
//!     --section MemoryWorkloadAnalysis_Tables --section SpeedOfLight --metrics ... traffic once LABELS
//! ncu --clock-control none --csv --page source --print-source sass --log-file SASS \
//!     --section SourceCounters --kernel-name regex:"linrec_(strides|ahead)" traffic once LABELS
//! ```

mod field;
mod table;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use field::{Field, Pass, Runner};
use half::{bf16, f16};
use linrec::device::{Bench, Device, Storage};
use linrec::kernels::{Config, KernelChoice};
use linrec::lesson::machine;
use num_complex::Complex;

const USAGE: &str =
    "usage: traffic times FOLDER | once LABELS | table NCU LABELS CSV | spans SASS CSV";

/// Measurements of each kernel at each length.
const RUNS: usize = 11;
const LENGTHS: [usize; 4] = [256, 1024, 4096, 16_384];
/// The length at which kernels are counted, and element types compared.
const LENGTH: usize = 4096;

/// Elements per thread, threads per block and memcode of the pipe kernels that are compared.
const PIPES: [(u32, u32, u32); 8] = [
    (4, 32, 0),
    (4, 128, 0),
    (8, 64, 0),
    (16, 64, 0),
    (8, 64, 1),
    (8, 64, 2),
    (4, 128, 1),
    (4, 128, 2),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["times", folder] => times(Path::new(folder)),
        ["once", labels] => once(Path::new(labels)),
        ["table", ncu, labels, csv] => {
            table::join(Path::new(ncu), Path::new(labels), Path::new(csv))
        }
        ["spans", sass, csv] => table::spans(Path::new(sass), Path::new(csv)),
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// The GPU, and how many sequences it gets.
fn gpu() -> Result<(Device, usize), Box<dyn Error>> {
    let device = Device::auto()?;
    if device.is_simt() {
        return Err("there is no GPU here".into());
    }
    let num_seqs = 100 * device.attributes().multiprocessors as usize;
    Ok((device, num_seqs))
}

fn config((elems, threads, memcode): (u32, u32, u32)) -> KernelChoice {
    KernelChoice::Pipe(Config {
        max_elems_per_thread: elems,
        max_threads_per_block: threads,
        memcode,
        ..Config::default()
    })
}

/// All runners of `f32` in a pass; what cannot be compiled here is left out, with a sentence.
fn runners(device: &Device, pass: Pass) -> Result<Vec<Runner<f32>>, linrec::Error> {
    let mut runners = vec![Runner::roof(device, pass)?];
    for size in PIPES {
        match Runner::pipe(device, config(size), pass) {
            Ok(runner) => runners.push(runner),
            Err(error) => eprintln!("left out: {error}"),
        }
    }
    if pass == Pass::Forward {
        runners.extend(Runner::exercises(device)?);
    }
    Ok(runners)
}

fn once(labels: &Path) -> Result<(), Box<dyn Error>> {
    let (device, num_seqs) = gpu()?;
    let mut field = Field::<f32>::new(&device, num_seqs * LENGTH)?;
    let mut text = String::new();
    for pass in [Pass::Forward, Pass::Backward] {
        for runner in runners(&device, pass)? {
            runner.run(&mut field, (num_seqs, LENGTH))?;
            text += &format!("{},{},{num_seqs},{LENGTH}\n", pass.name(), runner.name());
        }
    }
    device.stream().synchronize()?;
    std::fs::write(labels, text)?;
    Ok(())
}

fn times(folder: &Path) -> Result<(), Box<dyn Error>> {
    let (device, num_seqs) = gpu()?;
    let mut bench = Bench::new(&device)?;
    let mut csv =
        String::from("date,machine,element,direction,engine,num_seqs,seq_len,ms,gb_per_s,ratio\n");
    {
        let longest = LENGTHS.into_iter().max().unwrap_or_default();
        let mut field = Field::<f32>::new(&device, num_seqs * longest)?;
        for pass in [Pass::Forward, Pass::Backward] {
            let runners = runners(&device, pass)?;
            if pass == Pass::Forward {
                compare(&runners, &mut field, num_seqs)?;
            }
            for seq_len in LENGTHS {
                race(&runners, &mut bench, &mut field, (num_seqs, seq_len), pass, &mut csv)?;
            }
        }
    }
    race_of::<f32>(&device, &mut bench, num_seqs, &mut csv)?;
    race_of::<f64>(&device, &mut bench, num_seqs, &mut csv)?;
    race_of::<bf16>(&device, &mut bench, num_seqs, &mut csv)?;
    race_of::<f16>(&device, &mut bench, num_seqs, &mut csv)?;
    race_of::<Complex<f32>>(&device, &mut bench, num_seqs, &mut csv)?;
    race_of::<Complex<f64>>(&device, &mut bench, num_seqs, &mut csv)?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("times.csv"), csv)?;
    Ok(())
}

/// Kernels of another element type, under names that begin with `types:`.
fn race_of<S: Storage>(
    device: &Device,
    bench: &mut Bench,
    num_seqs: usize,
    csv: &mut String,
) -> Result<(), Box<dyn Error>> {
    let mut field = Field::<S>::new(device, num_seqs * LENGTH)?;
    for pass in [Pass::Forward, Pass::Backward] {
        let mut runners = vec![Runner::roof(device, pass)?.named("types:roof")];
        for size in [(8, 64, 0), (4, 128, 0)] {
            match Runner::<S>::pipe(device, config(size), pass) {
                Ok(runner) => {
                    let name = format!("types:{}", runner.name());
                    runners.push(runner.named(&name));
                }
                Err(error) => eprintln!("left out: {error}"),
            }
        }
        race(&runners, bench, &mut field, (num_seqs, LENGTH), pass, csv)?;
    }
    Ok(())
}

/// Measures all runners in turns; the first of them is the roof.
fn race<S: Storage>(
    runners: &[Runner<S>],
    bench: &mut Bench,
    field: &mut Field<S>,
    shape: (usize, usize),
    pass: Pass,
    csv: &mut String,
) -> Result<(), Box<dyn Error>> {
    let mut ms = vec![Vec::new(); runners.len()];
    for run in 0..=RUNS {
        for (runner, ms) in runners.iter().zip(&mut ms) {
            let taken = bench.time_ms(|_| runner.run(field, shape))?;
            // The first is for what is loaded late.
            if run > 0 {
                ms.push(taken);
            }
        }
    }
    let median = |ms: &[f64]| {
        let mut ms = ms.to_vec();
        ms.sort_by(f64::total_cmp);
        ms[ms.len() / 2]
    };
    let roof = median(&ms[0]);
    let (date, machine) = (machine::date(), runners[0].machine());
    let bytes = (shape.0 * shape.1 * pass.arrays() * size_of::<S>()) as f64;
    for (runner, ms) in runners.iter().zip(&ms) {
        println!("{:8} {:6} {:26} {:.3}", pass.name(), shape.1, runner.name(), roof / median(ms));
        for ms in ms {
            *csv += &format!(
                "{date},{machine},{},{},{},{},{},{ms:.6},{:.1},{:.4}\n",
                S::ELEMENT,
                pass.name(),
                runner.name(),
                shape.0,
                shape.1,
                bytes / ms / 1e6,
                roof / ms
            );
        }
    }
    Ok(())
}

/// Every kernel of the record has the outputs of the shipped pipe kernel of its size, or of any other within rounding:
/// here those that should have its very bits.
fn compare(
    runners: &[Runner<f32>],
    field: &mut Field<f32>,
    num_seqs: usize,
) -> Result<(), Box<dyn Error>> {
    let shape = (num_seqs, 1000);
    for runner in runners.iter().skip(1).filter(|runner| !runner.name().starts_with("pipe:")) {
        let size = runner.name().split(':').nth(1).unwrap_or_default();
        let name = format!("pipe:{size}:0");
        let Some(pipe) = runners.iter().find(|runner| runner.name() == name) else { continue };
        pipe.run(field, shape)?;
        let expected = field.outputs(shape)?;
        field.forget()?;
        runner.run(field, shape)?;
        if field.outputs(shape)? != expected {
            return Err(format!("{} has other outputs than {name}", runner.name()).into());
        }
        println!("{} has the bits of {name}", runner.name());
    }
    Ok(())
}
