//! `tour bench` on a GPU: races the fastest configuration of each kernel against the roof, forward
//! and backward.
//!
//! The configurations come from a rule, either the library's or a `tuned.csv` of `tour tune`. Their
//! results are checked first, since a wrong kernel has no speed worth printing. Then all of them
//! take turns at every length, and every run is written to `bench.csv`. The tests at the end of
//! this file check the table, and that every kernel has an entrant at every length that it
//! supports.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lesson::output::println;
use lesson::{Kind, Lesson, Table};
use linrec::device::{Choice, Device, Job, Recurrence, Storage, dispatch};
use linrec::kernels::{ElementType, KernelChoice, Pass, Query, Tuned};

use crate::field::{self, Field, Runner};
use crate::figure::figure;
use crate::row::{Baseline, HEADER, Measured, Row};
use crate::turns::runs_of;
use crate::{LENGTHS, Peer, Race, csv, judge, read, rule, write};

/// The settings of the race.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The element type of the arrays.
    pub element: ElementType,
    /// The lengths; [`LENGTHS`] if empty.
    pub lengths: Vec<usize>,
    /// The smallest number of measurements of each kernel.
    pub runs: usize,
    /// The rule that chooses the configurations, a `tuned.csv` of `tour tune`; by default the
    /// library's rule.
    pub tuned: Option<PathBuf>,
    /// The folder for tables and figures.
    pub out: PathBuf,
}

/// Races on a GPU and draws `peers` into the figure. Returns true if all results were right,
/// together with every run.
///
/// # Errors
///
/// Returns an error if a file cannot be read or written, or the device fails.
pub fn run(
    device: &Device,
    settings: &Settings,
    peers: &[Peer],
) -> lesson::Result<(bool, Vec<Row>)> {
    let rule = match &settings.tuned {
        None => Tuned::measured().to_vec(),
        Some(path) => read_rule(path)?,
    };
    let of_lesson = lesson::Settings { full: false, step: false, out: settings.out.clone() };
    let mut rows = Vec::new();
    let record = lesson::tell(0, "bench", "The speed of this GPU", &of_lesson, |lesson| {
        lesson.command("cargo run --release -- bench");
        let kernels = KernelChoice::families().join(", ");
        lesson.engine(&format!("{kernels}@{}", device.label()));
        let work = Work { device, settings, rule: &rule, peers, lesson };
        rows = dispatch(settings.element, work)?;
        Ok(())
    })?;
    Ok((record.passed(), rows))
}

fn read_rule(path: &Path) -> lesson::Result<Vec<Tuned>> {
    Ok(Tuned::read(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))?)
}

struct Work<'a> {
    device: &'a Device,
    settings: &'a Settings,
    rule: &'a [Tuned],
    peers: &'a [Peer],
    lesson: &'a mut Lesson,
}

impl Job for Work<'_> {
    type Output = lesson::Result<Vec<Row>>;

    fn run<S: Storage>(self) -> Self::Output {
        let Work { device, settings, rule, peers, lesson } = self;
        let num_seqs = 100 * device.attributes().multiprocessors as usize;
        let lengths =
            if settings.lengths.is_empty() { LENGTHS.to_vec() } else { settings.lengths.clone() };
        let entrants = entrants::<S>(device, rule, num_seqs, &lengths)?;

        lesson.step("before", "First, is it right?")?;
        lesson.say(
            "What is measured must be right: the largest error of each, in units of its bound.",
        );
        let worst = worst::<S>(device, &entrants)?;
        lesson.check("largest error in units of its bound", worst, 1.0);

        lesson.step("race", "In turns")?;
        lesson.say(&format!(
            "{} with {num_seqs} sequences of {}, caches emptied before each run, medians of at least {} runs. Of each \
             kernel the configuration that is fastest by the rule runs; GB/s counts each array once.",
            device.name(),
            S::ELEMENT,
            settings.runs
        ));
        let rows = measure::<S>(device, settings, num_seqs, &entrants)?;
        write(&settings.out.join("bench").join("bench.csv"), &csv::write(HEADER, &rows)?)?;
        let race: Race = rows.iter().collect();
        for pass in Pass::ALL {
            lesson.say(&format!("The {} pass:", pass.name()));
            let name = format!("{}.csv", pass.name());
            lesson.table(&name, Kind::Timed, &table(&race, pass, &lengths))?;
        }
        let peers = if S::ELEMENT == ElementType::F32 { peers } else { &[] };
        let svg = figure(&race, peers, S::ELEMENT)?;
        lesson.figure("bench.svg", "Every kernel beside the roof", Kind::Timed, &svg)?;
        Ok(rows)
    }
}

struct Entrants<S> {
    pass: Pass,
    seq_len: usize,
    kernels: Vec<Recurrence<S>>,
}

fn entrants<S: Storage>(
    device: &Device,
    rule: &[Tuned],
    num_seqs: usize,
    lengths: &[usize],
) -> lesson::Result<Vec<Entrants<S>>> {
    let mut entrants = Vec::new();
    let progress = lesson::progress(2 * lengths.len(), "compiling");
    for pass in Pass::ALL {
        for &seq_len in lengths {
            let mut kernels = Vec::new();
            for name in KernelChoice::families() {
                let Some(choice) = pick(rule, name, S::ELEMENT, pass, (num_seqs, seq_len)) else {
                    continue;
                };
                let recurrence = Recurrence::<S>::new(device, choice)?;
                if field::refused(&recurrence, pass, (num_seqs, seq_len))?.is_none() {
                    kernels.push(recurrence);
                }
            }
            entrants.push(Entrants { pass, seq_len, kernels });
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    Ok(entrants)
}

/// Selects the fastest configuration of a kernel by this rule, or else by the library's.
fn pick(
    rule: &[Tuned],
    name: &str,
    element: ElementType,
    pass: Pass,
    (num_seqs, seq_len): (usize, usize),
) -> Option<KernelChoice> {
    let here = rule::best(rule, name, element, pass, (num_seqs, seq_len));
    let (num_seqs, seq_len) = (num_seqs as u64, seq_len as u64);
    let query = Query { element, pass, num_seqs, seq_len, whole: true, shipped_only: false };
    here.map(|line| line.choice).or_else(|| KernelChoice::best_named(name, query)).or_else(|| {
        let any = KernelChoice::candidates(name, element);
        any.into_iter().find(|&choice| choice.is_worth(element, seq_len))
    })
}

fn worst<S: Storage>(device: &Device, entrants: &[Entrants<S>]) -> lesson::Result<f64> {
    let all = entrants.iter().flat_map(|entrants| &entrants.kernels);
    let mut choices: Vec<KernelChoice> = Vec::new();
    for recurrence in all {
        if let Choice::Kernel(choice) = recurrence.choice()
            && !choices.contains(&choice)
        {
            choices.push(choice);
        }
    }
    let mut worst = 0.0_f64;
    for choice in choices {
        let error = judge::worst::<S>(device, choice)?;
        if error > 1.0 {
            println!("  {choice}: {error:.3}");
        }
        worst = worst.max(error);
    }
    Ok(worst)
}

fn measure<S: Storage>(
    device: &Device,
    settings: &Settings,
    num_seqs: usize,
    entrants: &[Entrants<S>],
) -> lesson::Result<Vec<Row>> {
    let longest = entrants.iter().map(|entrants| entrants.seq_len).max().unwrap_or(1);
    let mut field = Field::<S>::new(device, num_seqs * longest)?;
    let mut rows = Vec::new();
    let progress = lesson::progress(entrants.len(), "measuring");
    for Entrants { pass, seq_len, kernels } in entrants {
        let (machine, element) = (device.name(), S::ELEMENT);
        let measured = Measured { machine, element, pass: *pass, shape: (num_seqs, *seq_len) };
        let kernels = kernels.iter().cloned().map(|kernel| Runner::Kernel(Arc::new(kernel)));
        let roofs = field.roofs().map(Runner::Roof);
        let runners: Vec<Runner<S>> =
            roofs.chain([Runner::Empty, Runner::Launch]).chain(kernels).collect();
        let runs = runs_of(settings.runs, measured.bytes());
        rows.extend(field.race(&measured, &runners, runs, Baseline::Round)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(rows)
}

/// Makes a table of the roof's throughput and of each kernel's ratio to it.
pub fn table(race: &Race, pass: Pass, lengths: &[usize]) -> Table {
    let ran = |name: &&str| lengths.iter().any(|&len| race.kernel(pass, name, len).is_some());
    let kernels: Vec<&str> = KernelChoice::families().into_iter().filter(ran).collect();
    let header = ["length", "roof, µs", "roof, GB/s"].into_iter().chain(kernels.iter().copied());
    let mut table = Table::new(header.chain(["fastest"]));
    for &seq_len in lengths {
        let Some(roof) = race.median(pass, "roof", seq_len) else { continue };
        let mut cells = vec![
            seq_len.to_string(),
            format!("{:.1}", 1e3 * roof.ms),
            format!("{:.0}", roof.gb_per_s),
        ];
        for &name in &kernels {
            let run = race.kernel(pass, name, seq_len);
            cells.push(
                run.map_or_else(|| String::from("–"), |(_, run)| format!("{:.3}", run.ratio)),
            );
        }
        let fastest = race.fastest(pass, seq_len).map_or("", |(engine, _)| engine);
        cells.push(fastest.to_owned());
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_becomes_a_table() {
        let race = Race::read(crate::figure::tests::CSV).unwrap();
        let csv = table(&race, Pass::Forward, &[16, 32, 64]).to_csv();
        let expected = "length,\"roof, µs\",\"roof, GB/s\",rows,fastest\n16,5.0,500,0.500,rows:4x1x128\n\
                        32,5.0,1000,1.000,rows:8x1x128:w\n";
        assert_eq!(csv, expected);
    }

    #[test]
    fn every_kernel_has_an_entrant_at_every_length_that_it_takes() {
        for pass in Pass::ALL {
            for len in LENGTHS {
                for name in KernelChoice::families() {
                    let entrant = pick(&[], name, ElementType::F32, pass, (13_200, len));
                    let some = match name {
                        "tile" => len <= 32_768,
                        "rows" => len <= 512,
                        _ => true,
                    };
                    // Some kernels support a short row, but no configuration is worth measuring
                    // there.
                    let is_long = ["wide", "waves", "once"].contains(&name);
                    assert!(entrant.is_some() == some || is_long, "{name} {len}");
                    let takes = |choice: KernelChoice| {
                        choice.max_len(ElementType::F32).is_none_or(|most| len as u64 <= most)
                            && (len as u64).is_multiple_of(choice.multiple_of(ElementType::F32))
                    };
                    assert!(entrant.is_none_or(takes), "{name} {len}");
                }
            }
        }
    }

    #[test]
    fn a_missing_rule_is_named() {
        let error = read_rule(Path::new("no/such/tuned.csv")).unwrap_err().to_string();
        assert!(error.contains("no/such/tuned.csv"), "{error}");
    }
}
