//! `tour bench` on a GPU: the fastest configuration of each kernel beside the roof, forward and backward.

use std::path::{Path, PathBuf};

use linrec::device::{Device, Recurrence, Storage};
use linrec::kernels::{ElementType, KernelChoice, Pass, Tuned};
use linrec::lesson::plot::{self, Chart, Panel};
use linrec::lesson::{self, Kind, Lesson, Table, machine};

use crate::element::{self, Job};
use crate::field::{self, Field, Runner};
use crate::record::{self, Race, Run};
use crate::{LENGTHS, configs, judge, rule};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the arrays hold.
    pub element: ElementType,
    /// The lengths; those of [`LENGTHS`] if there are none.
    pub lengths: Vec<usize>,
    /// Measurements of each, at least.
    pub runs: usize,
    /// The rule that says which configurations run: a `tuned.csv` of `tour tune`. Without one, the library's.
    pub tuned: Option<PathBuf>,
    /// Where tables and figures go.
    pub out: PathBuf,
}

/// The columns of the record: one line for every run. The ratio is to the roof of the same round.
pub const HEADER: &str = "date,machine,element,direction,engine,num_seqs,seq_len,ms,gb_per_s,ratio";

/// Races on a GPU; whether all that ran was right.
///
/// # Errors
///
/// If a file cannot be read or written, or the device fails.
pub fn run(device: &Device, settings: &Settings) -> lesson::Result<bool> {
    let rule = match &settings.tuned {
        None => Tuned::measured().to_vec(),
        Some(path) => read_rule(path)?,
    };
    let of_lesson = lesson::Settings { full: false, step: false, out: settings.out.clone() };
    let record = lesson::tell(9, "bench", "The speed of this GPU", &of_lesson, |lesson| {
        lesson.command("cargo run --release -- bench");
        lesson.engine(&format!("ref, tile, pipe, wide@{}", device.label()));
        let work = Work { device, settings, rule: &rule, lesson };
        element::dispatch(settings.element, work)
    })?;
    Ok(record.passed())
}

fn read_rule(path: &Path) -> lesson::Result<Vec<Tuned>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(Tuned::read(&text).map_err(|error| format!("{}: {error}", path.display()))?)
}

struct Work<'a> {
    device: &'a Device,
    settings: &'a Settings,
    rule: &'a [Tuned],
    lesson: &'a mut Lesson,
}

impl Job for Work<'_> {
    type Output = lesson::Result;

    fn run<S: Storage>(self) -> lesson::Result {
        let Work { device, settings, rule, lesson } = self;
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
        let csv = measure::<S>(device, settings, num_seqs, &entrants)?;
        crate::write(&settings.out.join("bench").join("bench.csv"), &csv)?;
        let race = Race::read(&csv)?;
        for pass in Pass::ALL {
            lesson.say(&format!("The {} pass:", pass.name()));
            let name = format!("{}.csv", pass.name());
            lesson.table(&name, Kind::Timed, &table(&race, pass, &lengths))?;
        }
        let peers = if S::ELEMENT == ElementType::F32 { record::peers() } else { Vec::new() };
        let svg = figure(&race, &peers, S::ELEMENT)?;
        lesson.figure("bench.svg", "Every kernel beside the roof", Kind::Timed, &svg)
    }
}

/// Who runs at a shape.
struct Entrants<S> {
    pass: Pass,
    seq_len: usize,
    kernels: Vec<Recurrence<S>>,
}

/// Of each kernel the fastest at each length.
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
            for name in configs::KERNELS {
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

/// The fastest of a kernel by the rule at hand, or else by the library's.
fn pick(
    rule: &[Tuned],
    name: &str,
    element: ElementType,
    pass: Pass,
    (num_seqs, seq_len): (usize, usize),
) -> Option<KernelChoice> {
    let here = rule::best(rule, name, element, pass, (num_seqs, seq_len));
    let (num, len) = (num_seqs as u64, seq_len as u64);
    here.map(|line| line.choice)
        .or_else(|| KernelChoice::best_named(name, element, pass, num, len, true))
        .or_else(|| {
            let any = configs::all(name, element);
            any.into_iter().find(|&choice| configs::worth(choice, element, seq_len))
        })
}

fn worst<S: Storage>(device: &Device, entrants: &[Entrants<S>]) -> lesson::Result<f64> {
    let all = entrants.iter().flat_map(|entrants| &entrants.kernels);
    let mut choices: Vec<KernelChoice> = Vec::new();
    for recurrence in all {
        if !choices.contains(&recurrence.choice()) {
            choices.push(recurrence.choice());
        }
    }
    let mut worst = 0.0_f64;
    for choice in choices {
        let error = judge::worst::<S>(device, choice)?;
        if error > 1.0 {
            println!("  {}: {error:.3}", choice.spec());
        }
        worst = worst.max(error);
    }
    Ok(worst)
}

/// Runs everybody in turns; every run as a line of CSV.
fn measure<S: Storage>(
    device: &Device,
    settings: &Settings,
    num_seqs: usize,
    entrants: &[Entrants<S>],
) -> lesson::Result<String> {
    let longest = entrants.iter().map(|entrants| entrants.seq_len).max().unwrap_or(1);
    let mut field = Field::<S>::new(device, num_seqs * longest)?;
    let mut csv = format!("{HEADER}\n");
    let (date, name) = (machine::date(), device.name().replace(',', " "));
    let progress = lesson::progress(entrants.len(), "measuring");
    for Entrants { pass, seq_len, kernels } in entrants {
        let shape = (num_seqs, *seq_len);
        let bytes = field::bytes(*pass, num_seqs * seq_len, S::ELEMENT.bytes());
        let roofs: Vec<Runner<S>> = field.roofs().map(Runner::Roof).collect();
        let kernels = kernels.iter().cloned().map(|kernel| Runner::Kernel(Box::new(kernel)));
        let runners: Vec<Runner<S>> =
            roofs.into_iter().chain([Runner::Empty, Runner::Launch]).chain(kernels).collect();
        // ANCHOR: rounds
        for round in 0..=field::runs_of(settings.runs, bytes) {
            let mut roof = f64::NAN;
            for (place, runner) in runners.iter().enumerate() {
                let ms = field.time_ms(runner, *pass, shape)?;
                if place == 0 {
                    roof = ms;
                }
                // What is loaded late is loaded in the first round, which does not count.
                if round > 0 {
                    csv += &format!(
                        "{date},{name},{},{},{},{num_seqs},{seq_len},{ms:.6},{:.1},{:.4}\n",
                        S::ELEMENT,
                        pass.name(),
                        runner.name(),
                        bytes as f64 / ms / 1e6,
                        roof / ms
                    );
                }
            }
        }
        // ANCHOR_END: rounds
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(csv)
}

/// Throughput of the roof, and of each kernel as a part of it.
pub fn table(race: &Race, pass: Pass, lengths: &[usize]) -> Table {
    let header = ["length", "roof, µs", "roof, GB/s"].into_iter().chain(configs::KERNELS);
    let mut table = Table::new(header.chain(["fastest"]));
    for &seq_len in lengths {
        let Some(roof) = race.median(pass, "roof", seq_len) else { continue };
        let mut cells = vec![
            seq_len.to_string(),
            format!("{:.1}", 1e3 * roof.ms),
            format!("{:.0}", roof.gb_per_s),
        ];
        for name in configs::KERNELS {
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

/// What is drawn of ours: the name in the record, and that in the legend.
const OURS: [&str; 6] = ["wide", "pipe", "tile", "ref", "rows", "roof"];

/// What is quoted: a part of the peer's name, and the name in the legend.
const QUOTED: [(&str, &str); 3] = [
    ("accelerated-scan", "accelerated-scan (quoted)"),
    ("CUDA pipe best", "the post's CUDA pipe (quoted)"),
    ("Triton pipe", "the post's Triton pipe (quoted)"),
];

/// Throughput against length, both passes, with the peers as dashed curves.
///
/// # Errors
///
/// If it cannot be drawn.
pub fn figure(race: &Race, peers: &[record::Peer], element: ElementType) -> lesson::Result<String> {
    let chart = |pass: Pass| -> Chart {
        let lengths: Vec<usize> =
            race.lengths(pass).into_iter().filter(|len| len.is_power_of_two()).collect();
        let speed = |run: Run| run.gb_per_s;
        let fastest = lengths.iter().filter_map(|&len| race.median(pass, "roof", len)).map(speed);
        let fastest = fastest.fold(0.0, f64::max);
        let mut chart = Chart::new(&format!("{}, {element}", pass.name()))
            .axes("length of a sequence", "GB/s")
            .log_x(2.0)
            .y_range(0.0, 1.45 * fastest.max(1.0));
        for name in OURS {
            let of = |len: usize| match name {
                "roof" => race.median(pass, name, len),
                _ => race.kernel(pass, name, len).map(|(_, run)| run),
            };
            let points = lengths.iter().filter_map(|&len| Some((len as f64, of(len)?.gb_per_s)));
            let label = if name == "roof" { "the roof" } else { name };
            chart = chart.measured(label, points);
        }
        for (part, label) in QUOTED {
            let mine = peers.iter().filter(|peer| peer.pass == pass && peer.name.contains(part));
            let points: Vec<_> = mine.map(|peer| (peer.seq_len as f64, peer.gb_per_s)).collect();
            // Who has no points has no name, but keeps its colour from the next one.
            let label = if points.is_empty() { "" } else { label };
            chart = chart.dashed(label, points);
        }
        chart
    };
    let charts = Pass::ALL.map(chart);
    let panels: Vec<&dyn Panel> = charts.iter().map(|chart| chart as &dyn Panel).collect();
    plot::grid(&panels, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "date,machine,element,direction,engine,num_seqs,seq_len,ms,gb_per_s,ratio
2026-11-21,NVIDIA H200,f32,forward,roof,13200,16,0.005,500,1
2026-11-21,NVIDIA H200,f32,forward,rows:4x1x128,13200,16,0.010,250,0.5
2026-11-21,NVIDIA H200,f32,forward,roof,13200,32,0.005,1000,1
2026-11-21,NVIDIA H200,f32,forward,rows:8x1x128:w,13200,32,0.005,1000,1
2026-11-21,NVIDIA H200,f32,backward,roof,13200,16,0.005,900,1
";

    #[test]
    fn a_race_becomes_a_table_and_a_figure() {
        let race = Race::read(CSV).unwrap();
        let csv = table(&race, Pass::Forward, &[16, 32, 64]).to_csv();
        let expected = "length,\"roof, µs\",\"roof, GB/s\",ref,tile,pipe,rows,wide,fastest\n\
                        16,5.0,500,–,–,–,0.500,–,rows:4x1x128\n32,5.0,1000,–,–,–,1.000,–,rows:8x1x128:w\n";
        assert_eq!(csv, expected);
        let svg = figure(&race, &record::peers(), ElementType::F32).unwrap();
        assert!(svg.contains("accelerated-scan (quoted)") && svg.contains("backward"));
        figure(&Race::default(), &[], ElementType::F32).unwrap();
    }

    #[test]
    fn every_kernel_has_an_entrant_at_every_length_that_it_takes() {
        for pass in Pass::ALL {
            for len in LENGTHS {
                for name in configs::KERNELS {
                    let entrant = pick(&[], name, ElementType::F32, pass, (13_200, len));
                    let some = match name {
                        "tile" => len <= 32_768,
                        "rows" => len <= 512,
                        _ => true,
                    };
                    // Any of wide takes a short row, but none is worth a measurement there.
                    assert!(entrant.is_some() == some || name == "wide", "{name} {len}");
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
    fn a_rule_that_is_not_there_is_named() {
        let error = read_rule(Path::new("no/such/tuned.csv")).unwrap_err().to_string();
        assert!(error.contains("no/such/tuned.csv"), "{error}");
    }
}
