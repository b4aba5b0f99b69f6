//! The record of a tuning: a CSV file that grows, so that nothing is measured twice.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use linrec::kernels::{ElementType, Pass};
use linrec::lesson;

/// One configuration at one shape, with all of its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The day.
    pub date: String,
    /// The GPU.
    pub machine: String,
    /// What the arrays hold.
    pub element: ElementType,
    /// Which computation.
    pub pass: Pass,
    /// Who ran: `roof`, `empty`, or a kernel's [`spec`](linrec::kernels::KernelChoice::spec).
    pub engine: String,
    /// How many sequences.
    pub num_seqs: usize,
    /// How long they are.
    pub seq_len: usize,
    /// The roof's median over ours, both from the same rounds.
    pub ratio: f64,
    /// What each run took, in milliseconds.
    pub runs: Vec<f64>,
}

/// The columns. `runs` are all times, with a blank between them; `ms` is their median.
pub const HEADER: &str =
    "date,machine,element,direction,engine,num_seqs,seq_len,ms,gb_per_s,ratio,runs";

impl Line {
    /// The median of its runs.
    pub fn ms(&self) -> f64 {
        crate::median(self.runs.iter().copied())
    }

    /// The bytes that have to be moved.
    pub fn bytes(&self) -> usize {
        crate::field::bytes(self.pass, self.num_seqs * self.seq_len, self.element.bytes())
    }

    /// Bytes per second, in units of 10^9.
    pub fn gb_per_s(&self) -> f64 {
        self.bytes() as f64 / self.ms() / 1e6
    }

    /// Whether it is the same measurement as another, made at whatever time.
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

    fn to_csv(&self) -> String {
        let Line { date, machine, element, pass, engine, num_seqs, seq_len, ratio, runs } = self;
        let (pass, ms, gb_per_s) = (pass.name(), self.ms(), self.gb_per_s());
        let runs: Vec<String> = runs.iter().map(|ms| format!("{ms:.6}")).collect();
        format!(
            "{date},{},{element},{pass},{engine},{num_seqs},{seq_len},{ms:.6},{gb_per_s:.1},{ratio:.4},{}\n",
            machine.replace([',', '\n', '"'], " "),
            runs.join(" ")
        )
    }

    fn read(line: &str) -> Option<Line> {
        let cells: Vec<&str> = line.split(',').collect();
        let [date, machine, element, pass, engine, num_seqs, seq_len, _, _, ratio, runs] =
            cells[..]
        else {
            return None;
        };
        let runs: Result<Vec<f64>, _> = runs.split(' ').map(str::parse).collect();
        Some(Line {
            date: date.to_owned(),
            machine: machine.to_owned(),
            element: element.parse().ok()?,
            pass: pass.parse().ok()?,
            engine: engine.to_owned(),
            num_seqs: num_seqs.parse().ok()?,
            seq_len: seq_len.parse().ok()?,
            ratio: ratio.parse().ok()?,
            runs: runs.ok().filter(|runs| !runs.is_empty())?,
        })
    }
}

/// Reads a record.
///
/// # Errors
///
/// A sentence with the line that cannot be read.
pub fn read(text: &str) -> lesson::Result<Vec<Line>> {
    let mut lines = text.lines().enumerate();
    match lines.next() {
        Some((_, HEADER)) => {}
        Some((_, other)) => {
            return Err(format!("no record of a tuning begins with `{other}`").into());
        }
        None => return Ok(Vec::new()),
    }
    let read = |(number, line): (usize, &str)| {
        Line::read(line)
            .ok_or_else(|| format!("line {} cannot be read: `{line}`", number + 1).into())
    };
    lines.map(read).collect()
}

/// A record on disk, and what of it is there already.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    /// All lines, the oldest first.
    pub lines: Vec<Line>,
    /// The beginning of a last line that was cut off, and has been taken out of the file.
    pub cut: Option<String>,
}

impl Log {
    /// Opens a record, or begins one. What follows the last whole line is taken out of the file: whoever wrote
    /// it was stopped in the middle.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or written, or is something else.
    // ANCHOR: open
    pub fn open(path: &Path) -> lesson::Result<Log> {
        let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display()).into()),
        };
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let lines = read(&text[..whole]).map_err(|error| format!("{}: {error}", path.display()))?;
        // Something that is no record at all is left as it is.
        if whole == 0 && !HEADER.starts_with(&text) {
            return Err(format!("{} is no record of a tuning", path.display()).into());
        }
        let mut options = OpenOptions::new();
        let mut file =
            options.create(true).write(true).truncate(false).open(path).map_err(failed)?;
        file.set_len(whole as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        if whole == 0 {
            file.write_all(format!("{HEADER}\n").as_bytes()).map_err(failed)?;
        }
        let cut = Some(text[whole..].to_owned()).filter(|cut| !cut.is_empty());
        Ok(Log { path: path.to_owned(), file, lines, cut })
    }
    // ANCHOR_END: open

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this has been measured, with at least so many runs.
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

    /// Adds lines, in one piece.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn append(&mut self, lines: Vec<Line>) -> lesson::Result {
        let text: String = lines.iter().map(Line::to_csv).collect();
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.flush())
            .map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
        self.lines.extend(lines);
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A line with these runs.
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
    fn a_record_goes_on_where_it_was_cut() {
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
    fn the_median_and_the_speed() {
        let line = line(Pass::Forward, "ref:64", (1000, 1000), 1.0);
        assert_eq!(line.ms(), 0.25);
        assert_eq!(line.gb_per_s(), 48.0);
        assert_eq!(Line::read(line.to_csv().trim_end()), Some(line));
    }
}
