//! Measures what the chapter shows of a GPU: the time of each way between memory and registers, and
//! the counters of Nsight Compute for it.
//!
//! ```text
//! traffic times FOLDER          writes every run into FOLDER/times.csv, and chapter 8's runs of both
//!                               passes into FOLDER/passes.csv
//! traffic once LABELS           launches every kernel once, and writes their names into LABELS
//! traffic table NCU LABELS CSV  joins the output of `ncu --page raw` with the names
//! traffic spans SASS CSV        reads loads and stores from the output of `ncu --page source`
//! ```
//!
//! `times` and `once` need a GPU. Run `once` under `ncu`, with the metrics that `table` looks for:
//!
//! ```text
//! ncu --clock-control none --csv --page raw --print-units base --log-file NCU \
//!     --section MemoryWorkloadAnalysis_Tables --section SpeedOfLight --metrics ... \
//!     traffic once LABELS
//! ncu --clock-control none --csv --page source --print-source sass --log-file SASS \
//!     --section SourceCounters --kernel-name regex:"linrec_(strides|ahead)" traffic once LABELS
//! ```

mod exercises;

use std::path::Path;
use std::process::ExitCode;

use bench::field::{Field, Roof, Runner};
use bench::row::{Baseline, HEADER, Measured};
use bench::{Row, Runs, csv, ncu};
use half::{bf16, f16};
use lesson::output::{self, eprintln, println};
use linrec::device::{Device, Storage};
use linrec::kernels::{KernelChoice, Memcode, Pass, PipeConfig};
use num_complex::Complex;

const USAGE: &str =
    "usage: traffic times FOLDER | once LABELS | table NCU LABELS CSV | spans SASS CSV";

/// The number of measurements of each kernel at each length.
const RUNS: usize = 11;
const LENGTHS: [usize; 4] = [256, 1024, 4096, 16_384];
/// The length at which kernels are counted and element types are compared.
const LENGTH: usize = 4096;

/// The elements per thread, threads per block and memcode of the compared pipe kernels.
const PIPES: [(u32, u32, Memcode); 8] = [
    (4, 32, Memcode::Direct),
    (4, 128, Memcode::Direct),
    (8, 64, Memcode::Direct),
    (16, 64, Memcode::Direct),
    (8, 64, Memcode::Shared),
    (8, 64, Memcode::SharedVectors),
    (4, 128, Memcode::Shared),
    (4, 128, Memcode::SharedVectors),
];

/// The engines that chapter 8 shows at this length.
const SHOWN_BEFORE: [&str; 2] = ["roof", "pipe:4x128:0"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["times", folder] => times(Path::new(folder)),
        ["once", labels] => once(Path::new(labels)),
        ["table", ncu, labels, csv] => join(Path::new(ncu), Path::new(labels), Path::new(csv)),
        ["spans", sass, csv] => spans(Path::new(sass), Path::new(csv)),
        _ => Err(USAGE.into()),
    };
    output::finish(outcome)
}

/// Opens the GPU and returns it with its number of sequences.
fn gpu() -> lesson::Result<(Device, usize)> {
    let device = Device::auto()?;
    if device.is_simt() {
        return Err("there is no GPU here".into());
    }
    let num_seqs = 100 * device.attributes().multiprocessors as usize;
    Ok((device, num_seqs))
}

fn config((elems, threads, memcode): (u32, u32, Memcode)) -> KernelChoice {
    KernelChoice::Pipe(PipeConfig {
        max_elems_per_thread: elems,
        max_threads_per_block: threads,
        memcode,
        ..PipeConfig::DEFAULT
    })
}

fn join(ncu: &Path, labels: &Path, csv: &Path) -> lesson::Result {
    bench::write(csv, &ncu::join(&bench::read(ncu)?, &bench::read(labels)?)?)
}

fn spans(sass: &Path, csv: &Path) -> lesson::Result {
    bench::write(csv, &ncu::spans(&bench::read(sass)?)?)
}

/// Makes runners of the roof and of the pipe kernels of these sizes. A kernel that cannot be
/// compiled here is left out, with a message.
fn pipes<S: Storage>(device: &Device, sizes: &[(u32, u32, Memcode)]) -> Vec<Runner<S>> {
    let mut runners = vec![Runner::Roof(Roof::Vectors)];
    for &size in sizes {
        match Runner::kernel(device, config(size)) {
            Ok(runner) => runners.push(runner),
            Err(error) => eprintln!("left out: {error}"),
        }
    }
    runners
}

/// Makes all runners of `f32` in a pass.
fn runners(device: &Device, pass: Pass) -> Result<Vec<Runner<f32>>, linrec::Error> {
    let mut runners = pipes(device, &PIPES);
    if pass == Pass::Forward {
        runners.extend(exercises::all(device)?);
    }
    Ok(runners)
}

fn once(labels: &Path) -> lesson::Result {
    let (device, num_seqs) = gpu()?;
    let mut field = Field::<f32>::new(&device, num_seqs * LENGTH)?;
    let mut text = String::new();
    for pass in Pass::ALL {
        for runner in runners(&device, pass)? {
            field.run(&runner, pass, (num_seqs, LENGTH))?;
            text += &format!("{},{},{num_seqs},{LENGTH}\n", pass.name(), runner.name());
        }
    }
    bench::write(labels, &text)
}

fn times(folder: &Path) -> lesson::Result {
    let (device, num_seqs) = gpu()?;
    let longest = LENGTHS.into_iter().max().unwrap_or_default();
    let mut rows = Vec::new();
    {
        let mut field = Field::<f32>::new(&device, num_seqs * longest)?;
        for pass in Pass::ALL {
            let runners = runners(&device, pass)?;
            if pass == Pass::Forward {
                compare(&runners, &mut field, num_seqs)?;
            }
            for seq_len in LENGTHS {
                rows.extend(race(&device, &mut field, &runners, pass, (num_seqs, seq_len))?);
            }
        }
    }
    rows.extend(race_of::<f32>(&device, num_seqs)?);
    rows.extend(race_of::<f64>(&device, num_seqs)?);
    rows.extend(race_of::<bf16>(&device, num_seqs)?);
    rows.extend(race_of::<f16>(&device, num_seqs)?);
    rows.extend(race_of::<Complex<f32>>(&device, num_seqs)?);
    rows.extend(race_of::<Complex<f64>>(&device, num_seqs)?);
    std::fs::create_dir_all(folder)?;
    bench::write(&folder.join("times.csv"), &csv::write(HEADER, &rows)?)?;
    rows.retain(|row| SHOWN_BEFORE.contains(&row.engine.as_str()) && row.seq_len == LENGTH);
    bench::write(&folder.join("passes.csv"), &csv::write(HEADER, &rows)?)
}

/// Measures kernels of an element type, under names that begin with `types:`.
fn race_of<S: Storage>(device: &Device, num_seqs: usize) -> lesson::Result<Vec<Row>> {
    let mut field = Field::<S>::new(device, num_seqs * LENGTH)?;
    let runners = pipes(device, &[(8, 64, Memcode::Direct), (4, 128, Memcode::Direct)]);
    let mut rows = Vec::new();
    for pass in Pass::ALL {
        rows.extend(race(device, &mut field, &runners, pass, (num_seqs, LENGTH))?);
    }
    for row in &mut rows {
        row.engine = format!("types:{}", row.engine);
    }
    Ok(rows)
}

/// Measures all runners in turns; the first one must be the roof.
fn race<S: Storage>(
    device: &Device,
    field: &mut Field<S>,
    runners: &[Runner<S>],
    pass: Pass,
    shape: (usize, usize),
) -> Result<Vec<Row>, linrec::Error> {
    let measured = Measured { machine: device.name(), element: S::ELEMENT, pass, shape };
    let rows = field.race(&measured, runners, RUNS, Baseline::Median)?;
    let runs: Runs = rows.iter().collect();
    let ms = |name: &str| runs.median(name, shape.1).map_or(f64::NAN, |run| run.ms);
    for name in runners.iter().map(Runner::name) {
        println!("{:8} {:6} {name:26} {:.3}", pass.name(), shape.1, ms("roof") / ms(&name));
    }
    Ok(rows)
}

/// Checks that the exercises' kernels have the same bits as the pipe kernel of their size.
fn compare(runners: &[Runner<f32>], field: &mut Field<f32>, num_seqs: usize) -> lesson::Result {
    let shape = (num_seqs, 1000);
    for runner in runners.iter().skip(1).filter(|runner| !runner.name().starts_with("pipe:")) {
        let size = runner.name();
        let size = size.split(':').nth(1).unwrap_or_default();
        let name = format!("pipe:{size}:0");
        let Some(pipe) = runners.iter().find(|runner| runner.name() == name) else { continue };
        field.run(pipe, Pass::Forward, shape)?;
        let expected = field.outputs(shape)?;
        field.forget()?;
        field.run(runner, Pass::Forward, shape)?;
        if field.outputs(shape)? != expected {
            return Err(format!("{} has other outputs than {name}", runner.name()).into());
        }
        println!("{} has the bits of {name}", runner.name());
    }
    Ok(())
}
