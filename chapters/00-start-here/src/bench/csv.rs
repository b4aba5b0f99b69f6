//! Every run as CSV, in the columns that all of the project's benchmarks have.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use linrec::cpu::Cpu;
use linrec::lesson::{self, machine};

use super::buffers::{Direction, Problem};
use super::round::{ENGINES, Round};

/// The machine in words, with what of it is used.
fn machine(cpu: &Cpu, threads: usize) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    format!("{}, {}, {threads} thread{plural}", machine::describe(), cpu.simd())
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
        cpu: &Cpu,
        direction: Direction,
        problem: &Problem,
        rounds: &[Round],
    ) -> lesson::Result {
        let (date, machine) = (machine::date(), machine(cpu, problem.threads).replace('"', "'"));
        let Problem { num_seqs, seq_len, .. } = problem;
        for round in rounds {
            for (engine, seconds) in ENGINES.iter().zip(round) {
                let (ms, ratio) = (seconds * 1e3, round[0] / seconds);
                let gb_per_s = problem.gb_per_s(direction, *seconds);
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
