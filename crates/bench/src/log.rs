//! The record of a tuning: a CSV file that grows, so that nothing is measured twice.
//!
//! Several runs may append to one record at the same time, and each may be stopped at any moment.
//! The file is therefore locked while it is read or written, lines are appended completely or not
//! at all, and an incomplete last line is removed before the next line is written. The tests at the
//! end of this file cover interrupted and concurrent runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use linrec::kernels::{ElementType, Pass};
use serde::{Deserialize, Serialize};

use crate::csv::{self, Decimal, displayed};
use crate::{bytes, median};

/// One configuration at one shape, with all of its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The day.
    pub date: String,
    /// The GPU.
    pub machine: String,
    /// The element type of the arrays.
    pub element: ElementType,
    /// The pass.
    pub pass: Pass,
    /// The engine: `roof`, `empty`, or a kernel in
    /// [`KernelChoice`](linrec::kernels::KernelChoice)'s notation.
    pub engine: String,
    /// The number of sequences.
    pub num_seqs: usize,
    /// The length of each sequence.
    pub seq_len: usize,
    /// The roof's median time divided by this engine's, both from the same rounds.
    pub ratio: f64,
    /// The time of each run, in milliseconds.
    pub runs: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    date: String,
    machine: String,
    #[serde(with = "displayed")]
    element: ElementType,
    #[serde(with = "displayed")]
    direction: Pass,
    engine: String,
    num_seqs: usize,
    seq_len: usize,
    ms: Decimal,
    gb_per_s: Decimal,
    ratio: Decimal,
    runs: String,
}

/// The columns. `runs` contains all times, separated by spaces; `ms` is their median.
pub const HEADER: &str =
    "date,machine,element,direction,engine,num_seqs,seq_len,ms,gb_per_s,ratio,runs";

impl Line {
    /// Returns the median of its runs, in milliseconds.
    pub fn ms(&self) -> f64 {
        median(self.runs.iter().copied())
    }

    /// Returns the bytes that must be moved.
    pub fn bytes(&self) -> usize {
        bytes(self.pass, self.num_seqs * self.seq_len, self.element.bytes())
    }

    /// Returns the throughput in units of 10^9 bytes per second.
    pub fn gb_per_s(&self) -> f64 {
        self.bytes() as f64 / self.ms() / 1e6
    }

    /// Returns the cells that tables show: milliseconds, GB, GB/s, the fraction of the roof, and
    /// the configuration, which is the engine's name without the kernel's.
    pub fn cells(&self) -> [String; 5] {
        [
            format!("{:.4}", self.ms()),
            format!("{:.3}", self.bytes() as f64 / 1e9),
            format!("{:.0}", self.gb_per_s()),
            format!("{:.3}", self.ratio),
            self.engine.split_once(':').map_or("", |(_, rest)| rest).to_owned(),
        ]
    }

    /// Returns true if the line measures this engine and problem, whatever its date.
    pub fn is_of(
        &self,
        element: ElementType,
        pass: Pass,
        engine: &str,
        shape: (usize, usize),
    ) -> bool {
        let mine = (self.element, self.pass, self.num_seqs, self.seq_len);
        mine == (element, pass, shape.0, shape.1) && self.engine == engine
    }

    fn to_written(&self) -> Written {
        let runs: Vec<String> = self.runs.iter().map(|ms| format!("{ms:.6}")).collect();
        Written {
            date: self.date.clone(),
            // A record is read line by line.
            machine: self.machine.replace(['\n', '\r'], " "),
            element: self.element,
            direction: self.pass,
            engine: self.engine.clone(),
            num_seqs: self.num_seqs,
            seq_len: self.seq_len,
            ms: Decimal::new(self.ms(), 6),
            gb_per_s: Decimal::new(self.gb_per_s(), 1),
            ratio: Decimal::new(self.ratio, 4),
            runs: runs.join(" "),
        }
    }
}

impl TryFrom<Written> for Line {
    type Error = lesson::Error;

    fn try_from(written: Written) -> lesson::Result<Line> {
        let Written { runs, .. } = &written;
        let read: Result<Vec<f64>, _> = runs.split(' ').map(str::parse).collect();
        Ok(Line {
            runs: read
                .map_err(|_| format!("`{runs}` is not a list of numbers separated by spaces"))?,
            date: written.date,
            machine: written.machine,
            element: written.element,
            pass: written.direction,
            engine: written.engine,
            num_seqs: written.num_seqs,
            seq_len: written.seq_len,
            ratio: written.ratio.value,
        })
    }
}

fn to_csv(lines: &[Line]) -> lesson::Result<String> {
    csv::rows(&lines.iter().map(Line::to_written).collect::<Vec<_>>())
}

/// Reads a record.
///
/// # Errors
///
/// Returns an error that quotes the line if a line cannot be read.
pub fn read(text: &str) -> lesson::Result<Vec<Line>> {
    match text.lines().next() {
        Some(HEADER) => csv::read::<Written>(text)?.into_iter().map(Line::try_from).collect(),
        Some(other) => Err(format!("a record of a tuning does not begin with `{other}`").into()),
        None => Ok(Vec::new()),
    }
}

/// A record on disk, with the lines that it already contains.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    /// All lines, the oldest first.
    pub lines: Vec<Line>,
    /// The beginning of a last line that was cut off and has been removed from the file.
    pub cut: Option<String>,
}

impl Log {
    /// Opens a record, or creates one. Removes an incomplete last line, which a run leaves when it
    /// is stopped while writing.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or written, or is something else.
    pub fn open(path: &Path) -> lesson::Result<Log> {
        let failed = |error: io::Error| format!("cannot write {}: {error}", path.display());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(failed)?;
        // Another run may be writing to the same record.
        file.lock().map_err(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let lines = read(&text[..whole]).map_err(|error| format!("{}: {error}", path.display()))?;
        // A file that is not a record stays unchanged.
        if whole == 0 && !HEADER.starts_with(&text) {
            return Err(format!("{} is not a record of a tuning", path.display()).into());
        }
        file.set_len(whole as u64).map_err(failed)?;
        if whole == 0 {
            file.rewind().map_err(failed)?;
            file.write_all(format!("{HEADER}\n").as_bytes()).map_err(failed)?;
        }
        file.unlock().map_err(failed)?;
        let cut = Some(text[whole..].to_owned()).filter(|cut| !cut.is_empty());
        Ok(Log { path: path.to_owned(), file, lines, cut })
    }

    /// Returns the record's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if this has been measured with at least `runs` runs.
    pub fn has(
        &self,
        element: ElementType,
        pass: Pass,
        engine: &str,
        shape: (usize, usize),
        runs: usize,
    ) -> bool {
        let mut lines = self.lines.iter();
        lines.any(|line| line.is_of(element, pass, engine, shape) && line.runs.len() >= runs)
    }

    /// Appends lines in one piece, even while another run appends its own.
    ///
    /// # Errors
    ///
    /// Returns an error if the lines cannot be written.
    pub fn append(&mut self, lines: Vec<Line>) -> lesson::Result {
        let text = to_csv(&lines)?;
        self.file
            .lock()
            .and_then(|()| append(&mut self.file, &text).and(self.file.unlock()))
            .map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
        self.lines.extend(lines);
        Ok(())
    }
}

/// Writes after the last whole line, all or nothing.
fn append(file: &mut File, text: &str) -> io::Result<()> {
    let end = end_of_lines(file)?;
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    let written = file.write_all(text.as_bytes());
    if written.is_err() {
        file.set_len(end)?;
    }
    written
}

/// Returns the end of the last whole line. Another run may have been stopped while writing one.
fn end_of_lines(file: &mut File) -> io::Result<u64> {
    let end = file.seek(SeekFrom::End(0))?;
    let mut last = [b'\n'];
    if end > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last == [b'\n'] {
        return Ok(end);
    }
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    Ok(text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end as u64 + 1))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use lesson::recorded;

    use super::*;

    pub(crate) fn line(pass: Pass, engine: &str, shape: (usize, usize), ratio: f64) -> Line {
        Line {
            date: String::from("2026-11-21"),
            machine: String::from("NVIDIA H200"),
            element: ElementType::F32,
            pass,
            engine: engine.to_owned(),
            num_seqs: shape.0,
            seq_len: shape.1,
            ratio,
            runs: vec![0.25, 0.125, 0.5],
        }
    }

    #[test]
    fn a_record_continues_where_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        let (one, two) = (
            line(Pass::Forward, "roof", (10, 16), 1.0),
            line(Pass::Backward, "pipe:8x64:0", (10, 1000), 0.5),
        );
        let mut log = Log::open(&path).unwrap();
        log.append(vec![one.clone()]).unwrap();
        log.append(vec![two.clone()]).unwrap();
        drop(log);

        let whole = fs::read_to_string(&path).unwrap();
        for kept in 0..whole.len() {
            fs::write(&path, &whole[..kept]).unwrap();
            let mut log = Log::open(&path).unwrap();
            let end = whole[..kept].rfind('\n').map_or(0, |end| end + 1);
            assert_eq!(log.cut.as_deref().unwrap_or_default(), &whole[end..kept]);
            let count = whole[..kept].matches('\n').count();
            assert_eq!(log.lines.len(), count.saturating_sub(1));
            let missing = [&one, &two].into_iter().skip(log.lines.len()).cloned().collect();
            log.append(missing).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), whole, "cut at {kept}");
        }
        let log = Log::open(&path).unwrap();
        assert_eq!(log.lines, [one, two]);
        let shape = (10, 1000);
        assert!(log.has(ElementType::F32, Pass::Backward, "pipe:8x64:0", shape, 3));
        assert!(!log.has(ElementType::F32, Pass::Backward, "pipe:8x64:0", shape, 4));
        assert!(!log.has(ElementType::F64, Pass::Backward, "pipe:8x64:0", shape, 3));
        assert!(!log.has(ElementType::F32, Pass::Forward, "pipe:8x64:0", shape, 3));
    }

    /// Two runs write to one folder, and a third is stopped in the middle of a line.
    #[test]
    fn runs_share_a_record_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv");
        let lines = vec![line(Pass::Forward, "roof", (10, 16), 1.0); 7];
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut log = Log::open(&path).unwrap();
                    for _ in 0..50 {
                        log.append(lines.clone()).unwrap();
                    }
                });
            }
        });
        let mut log = Log::open(&path).unwrap();
        assert_eq!((log.lines.len(), log.cut.as_deref()), (2 * 50 * 7, None));
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}2026-11-21,NVIDIA")).unwrap();
        log.append(lines.clone()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&whole));
        assert_eq!(read(&text).unwrap().len(), 101 * 7);
    }

    #[test]
    fn other_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("thesis.csv");
        for text in ["precious", "precious\n", "a,b\n1,2\n"] {
            fs::write(&path, text).unwrap();
            let error = Log::open(&path).unwrap_err().to_string();
            assert!(error.contains("thesis.csv"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let broken = format!("{HEADER}\n1,2,3\n");
        fs::write(&path, &broken).unwrap();
        let error = Log::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("`1,2,3`"), "{error}");
        assert!(Log::open(&folder.path().join("no/such/folder.csv")).is_err());
    }

    #[test]
    fn committed_records_are_written_as_they_were_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../chapters");
        let read_file = |file: &str| fs::read(format!("{folder}/{file}")).unwrap();
        let types = read_file("10-speed-of-memory/results/h200/tables.json");
        let types = std::str::from_utf8(&types).unwrap();
        for text in [
            recorded::text(&read_file("11-tuning/results/h200/runs.csv.gz")).unwrap(),
            recorded::table(types, "types.csv").unwrap(),
        ] {
            let rows = csv::rows(&csv::read::<Written>(&text).unwrap()).unwrap();
            assert!(format!("{HEADER}\n{rows}") == text, "{}", &text[..200]);
            // The derived numbers equal the numbers that were computed before the runs were
            // rounded.
            for (line, row) in read(&text).unwrap().iter().zip(csv::read::<Written>(&text).unwrap())
            {
                let Written { ms, gb_per_s, .. } = line.to_written();
                assert_eq!(ms, row.ms);
                // Runs are rounded to a millionth of a ms, which is visible if next to nothing is
                // done to large arrays.
                let rounding = 0.11 + gb_per_s.value * 1e-6 / line.ms();
                assert!((gb_per_s.value - row.gb_per_s.value).abs() < rounding, "{line:?}");
            }
        }
    }

    #[test]
    fn the_median_and_the_speed() {
        let line = line(Pass::Forward, "ref:64", (1000, 1000), 1.0);
        assert_eq!(line.ms(), 0.25);
        assert_eq!(line.gb_per_s(), 48.0);
        let text = to_csv(std::slice::from_ref(&line)).unwrap();
        assert_eq!(read(&format!("{HEADER}\n{text}")).unwrap(), [line]);
    }
}
