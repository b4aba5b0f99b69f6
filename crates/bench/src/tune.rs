//! `tour tune`: measures the configurations of a kernel and reports the fastest one at each length.
//!
//! A sweep takes long and may be stopped, so every measurement is appended to a record ([`Log`]) at
//! once, and a later run measures only what the record lacks. Configurations are compiled in
//! parallel, and their results are checked before they are measured: a wrong configuration is no
//! candidate, however fast. The finalists become the rule by which the library chooses. The tests
//! at the end of this file sweep on the emulator, including a record that was cut off.

mod measure;
mod tables;

use std::path::PathBuf;

use lesson::output::println;
use linrec::device::{Device, Job, Recurrence, Storage, dispatch};
use linrec::kernels::{ElementType, KernelChoice, Pass};
use rayon::prelude::*;

use crate::log::Log;
use crate::{DeviceChoice, LENGTHS, counted, field, folder, judge, rule, write};

/// The command's arguments.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// The kernel
    #[arg(value_name = "KERNEL", value_parser = KernelChoice::families())]
    kernel: String,

    /// The element type: f32, f64, bf16, f16, complex64 or complex128
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    element: ElementType,

    /// Lengths of the sequences; by default 16 to 65536 in powers of two, 1000 and 4093
    #[arg(long, value_name = "L,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    lengths: Vec<u32>,

    /// Numbers of sequences; by default 100 for each SM
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    sequences: Vec<u32>,

    /// Number of measurements of each configuration; five times as many for a run of microseconds
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// The folder for the record and the tables; what the record contains is not measured again
    #[arg(long, value_name = "FOLDER", default_value = "target/tour/tune")]
    out: PathBuf,

    /// The device: simt, cuda or cuda:1; by default the first GPU, or else the emulator
    #[arg(long, value_name = "NAME", default_value_t, hide_default_value = true)]
    device: DeviceChoice,
}

impl Settings {
    fn lengths(&self) -> Vec<usize> {
        if self.lengths.is_empty() {
            return LENGTHS.to_vec();
        }
        let mut lengths: Vec<usize> = self.lengths.iter().map(|&len| len as usize).collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }
}

/// Tries a kernel's configurations. Returns true if all of them were right.
///
/// # Errors
///
/// Returns an error if a file cannot be written, or the device fails or does not have enough
/// memory.
pub fn run(settings: &Settings) -> lesson::Result<bool> {
    let device = settings.device.open()?;
    folder(&settings.out)?;
    if device.is_simt() {
        let Settings { kernel, element, lengths, sequences, out, .. } = settings;
        let lengths: Vec<usize> = lengths.iter().map(|&len| len as usize).collect();
        let num_seqs = sequences.first().map(|&number| number as usize);
        return counted::run(kernel, *element, &lengths, num_seqs, out);
    }
    dispatch(settings.element, OnGpu { settings, device: &device })
}

struct OnGpu<'a> {
    settings: &'a Settings,
    device: &'a Device,
}

impl Job for OnGpu<'_> {
    type Output = lesson::Result<bool>;

    fn run<S: Storage>(self) -> lesson::Result<bool> {
        let OnGpu { settings, device } = self;
        let mut log = Log::open(&settings.out.join("runs.csv"))?;
        if let Some(cut) = &log.cut {
            let shown: String = cut.chars().take(60).collect();
            println!(
                "The last line of {} was cut off after `{shown}`; it is measured again.",
                log.path().display()
            );
        }
        if !log.lines.is_empty() {
            let (count, path) = (log.lines.len(), log.path().display());
            println!("{path} holds {count} measurements; none of them is made again.");
        }
        let mut trouble = Vec::new();
        let candidates = load::<S>(device, &settings.kernel, &settings.lengths(), &mut trouble);
        let candidates = judged::<S>(device, candidates, &mut trouble)?;
        let right = trouble.iter().all(|trouble| !trouble.is_wrong);

        measure::all(device, settings, candidates, &mut log, &mut trouble)?;
        tables::show(settings, &log.lines)?;
        report(&trouble);
        tables::write_trouble(&settings.out, &settings.kernel, S::ELEMENT, &trouble)?;

        let finalists = rule::finalists(&log.lines);
        let path = settings.out.join("tuned.csv");
        write(&path, &rule::to_csv(&finalists))?;
        println!("The rule of everything measured so far is {}.", path.display());
        Ok(right)
    }
}

/// The reason why a configuration is not in the tables.
#[derive(Debug, Clone)]
pub struct Trouble {
    choice: KernelChoice,
    /// The pass, unless it concerns both.
    pass: Option<Pass>,
    why: String,
    is_wrong: bool,
}

/// Returns whether a configuration is measured at a length: if it is worth measuring, or if it is
/// shipped and can be used there, since the library may have to choose it.
fn wanted(element: ElementType) -> impl Fn(KernelChoice, usize) -> bool {
    let shipped: Vec<KernelChoice> = KernelChoice::shipped(element).collect();
    move |choice, len| {
        let usable = shipped.contains(&choice) && choice.takes(element, len as u64);
        usable || choice.is_worth(element, len as u64)
    }
}

/// Loads or compiles every configuration that is worth measuring at some length.
fn load<S: Storage>(
    device: &Device,
    kernel: &str,
    lengths: &[usize],
    trouble: &mut Vec<Trouble>,
) -> Vec<Recurrence<S>> {
    let mut choices = KernelChoice::candidates(kernel, S::ELEMENT);
    let wanted = wanted(S::ELEMENT);
    choices.retain(|&choice| lengths.iter().any(|&len| wanted(choice, len)));
    let (loaded, refused) = field::load(device, choices, "compiling");
    trouble.extend(refused.into_iter().map(|(choice, error)| Trouble {
        choice,
        pass: None,
        why: error.to_string(),
        is_wrong: false,
    }));
    loaded
}

fn judged<S: Storage>(
    device: &Device,
    candidates: Vec<Recurrence<S>>,
    trouble: &mut Vec<Trouble>,
) -> lesson::Result<Vec<Recurrence<S>>> {
    let progress = lesson::progress(candidates.len(), "checking errors");
    // A kernel that cannot be launched has no results to check.
    let refused = |recurrence: &Recurrence<S>| -> Result<Option<(Pass, String)>, linrec::Error> {
        for pass in Pass::ALL {
            if let Some(why) = field::refused(recurrence, pass, (17, 200_000))? {
                return Ok(Some((pass, why)));
            }
        }
        Ok(None)
    };
    let errors: Vec<_> = candidates
        .par_iter()
        .map(|recurrence| {
            let error = match refused(recurrence) {
                Ok(None) => recurrence
                    .kernel(Pass::Forward, (1, 1), true)
                    .and_then(|choice| judge::worst::<S>(device, choice))
                    .map(Ok),
                Ok(Some(refused)) => Ok(Err(refused)),
                Err(error) => Err(error),
            };
            progress.inc(1);
            error
        })
        .collect();
    progress.finish_and_clear();
    let (mut right, mut worst, mut count) = (Vec::new(), 0.0_f64, 0);
    for (recurrence, error) in candidates.into_iter().zip(errors) {
        let choice = recurrence.kernel(Pass::Forward, (1, 1), true)?;
        match error? {
            Ok(error) if error > 1.0 => {
                let why = format!("WRONG: its largest error is {error:.3} times its bound");
                trouble.push(Trouble { choice, pass: None, why, is_wrong: true });
                continue;
            }
            Ok(error) => (worst, count) = (worst.max(error), count + 1),
            Err((pass, why)) => {
                trouble.push(Trouble { choice, pass: Some(pass), why, is_wrong: false });
                continue;
            }
        }
        right.push(recurrence);
    }
    println!("{count} configurations are right: the largest error is {worst:.2} of its bound.");
    Ok(right)
}

fn report(trouble: &[Trouble]) {
    if trouble.is_empty() {
        return;
    }
    println!("\nNot measured:");
    let mut whys: Vec<&str> = trouble.iter().map(|trouble| trouble.why.as_str()).collect();
    whys.sort_unstable();
    whys.dedup();
    for why in whys {
        let of = trouble.iter().filter(|trouble| trouble.why == why);
        let mut names: Vec<String> = of.map(|trouble| trouble.choice.to_string()).collect();
        names.dedup();
        println!("  {}: {why}", names.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Row, csv};
    use std::fs;
    use std::path::Path;

    fn settings(out: &Path) -> Settings {
        Settings {
            kernel: String::from("ref"),
            element: ElementType::F32,
            lengths: vec![16, 5],
            sequences: vec![3],
            runs: 1,
            out: out.to_owned(),
            device: DeviceChoice::Auto,
        }
    }

    /// The times are the emulator's own and mean nothing; everything else is as on a GPU.
    fn tune(out: &Path) -> bool {
        let (settings, device) = (settings(out), Device::simt());
        dispatch(settings.element, OnGpu { settings: &settings, device: &device }).unwrap()
    }

    #[test]
    fn a_sweep_is_made_once_and_continues_where_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        assert!(tune(folder.path()));
        let whole = fs::read_to_string(&path).unwrap();
        let lines: Vec<Row> = csv::read(&whole).unwrap();
        // The roof, the empty kernel and six block sizes, at two lengths and in two passes, with
        // five times one run.
        assert_eq!(lines.len(), 2 * 2 * (2 + 6));
        assert!(lines.iter().all(|line| line.runs.len() == 5 && line.num_seqs == 3));
        let rule = linrec::kernels::Tuned::read(
            &fs::read_to_string(folder.path().join("tuned.csv")).unwrap(),
        );
        assert!(rule.unwrap().iter().any(|line| line.seq_len == 5));
        let best = fs::read_to_string(folder.path().join("best-ref-f32-backward.csv")).unwrap();
        assert_eq!(best.lines().count(), 1 + 2);

        assert!(tune(folder.path()));
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);

        fs::write(&path, &whole[..whole.len() - 20]).unwrap();
        assert!(tune(folder.path()));
        let again: Vec<Row> = csv::read(&fs::read_to_string(&path).unwrap()).unwrap();
        let kernels = |lines: &[Row]| -> Vec<(String, &str, usize)> {
            let kernels = lines.iter().filter(|line| line.engine.starts_with("ref:"));
            let mut keys: Vec<_> =
                kernels.map(|line| (line.engine.clone(), line.pass.name(), line.seq_len)).collect();
            keys.sort();
            keys
        };
        // The line that was cut off, and nothing else, was measured again.
        assert_eq!(kernels(&again), kernels(&lines));
    }

    #[test]
    fn a_record_of_something_else_ends_the_sweep_before_it_begins() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("runs.csv"), "precious\n").unwrap();
        let (settings, device) = (settings(folder.path()), Device::simt());
        let work = OnGpu { settings: &settings, device: &device };
        let error = dispatch(settings.element, work).unwrap_err().to_string();
        assert!(error.contains("runs.csv") && error.contains("`precious`"), "{error}");
    }
}
