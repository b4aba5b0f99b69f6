//! What is printed and what is kept: a table of medians, and every run as CSV.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use linrec::cpu::Cpu;
use linrec::lesson::{self, Table, machine};

use super::buffers::{Direction, Problem};
use super::round::{ENGINES, Round};

/// The machine in words, with what of it is used.
pub fn machine(threads: usize) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    format!("{}, {}, {threads} thread{plural}", machine::describe(), Cpu::new().simd())
}

/// A progress bar; silent where there is no terminal.
pub fn progress(len: usize, what: &str) -> indicatif::ProgressBar {
    indicatif::ProgressBar::new(len as u64).with_message(what.to_owned()).with_style(
        indicatif::ProgressStyle::default_bar(),
    )
}

/// The CSV file, opened before anything is measured.
pub struct CsvFile {
    path: PathBuf,
    file: File,
}

impl CsvFile {
    /// # Errors
    ///
    /// If the file exists and may not be replaced, or cannot be made.
    pub fn create(path: &Path, overwrite: bool) -> lesson::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true);
        match overwrite {
            true => options.create(true).truncate(true),
            false => options.create_new(true),
        };
        let mut file = options.open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                format!("{} is there already; --overwrite replaces it", path.display())
            }
            _ => format!("cannot write {}: {error}", path.display()),
        })?;
        writeln!(file, "date,machine,element,direction,engine,num_seqs,seq_len,ms,gb_per_s,ratio")?;
        Ok(CsvFile { path: path.to_owned(), file })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the runs of one problem, a line for each engine and run.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write(
        &mut self,
        direction: Direction,
        problem: &Problem,
        rounds: &[Round],
    ) -> lesson::Result {
        let (date, machine) = (machine::date(), machine(problem.threads).replace('"', "'"));
        let Problem { num_seqs, seq_len, .. } = problem;
        for round in rounds {
            for (engine, seconds) in ENGINES.iter().zip(round) {
                let (ms, ratio) = (seconds * 1e3, round[0] / seconds);
                let gb_per_s = throughput(direction, problem, *seconds);
                writeln!(
                    self.file,
                    "{date},\"{machine}\",f32,{direction},{engine},{num_seqs},{seq_len},\
                     {ms:.6},{gb_per_s:.2},{ratio:.4}"
                )?;
            }
        }
        Ok(())
    }
}

/// GB/s, counting each array once.
fn throughput(direction: Direction, problem: &Problem, seconds: f64) -> f64 {
    (problem.elements() * direction.bytes_per_element()) as f64 / seconds * 1e-9
}

/// The table of medians.
pub struct Summary(Table);

impl Summary {
    pub fn new() -> Self {
        Summary(Table::new(["L", "sequences", "roof", "loop", "cpu", "cpu / roof", "cpu / loop"]))
    }

    /// Adds a problem: medians of the throughputs and of the ratios within each round.
    pub fn add(&mut self, direction: Direction, problem: &Problem, rounds: &[Round]) {
        let speed = |engine: usize| {
            let speeds = rounds.iter().map(|round| throughput(direction, problem, round[engine]));
            format!("{:.1}", median(speeds))
        };
        let ratio = |engine: usize| {
            format!("{:.2}", median(rounds.iter().map(|round| round[engine] / round[2])))
        };
        self.0.row([
            problem.seq_len.to_string(),
            problem.num_seqs.to_string(),
            speed(0),
            speed(1),
            speed(2),
            ratio(0),
            ratio(1),
        ]);
    }

    pub fn text(&self) -> String {
        self.0.to_text()
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
