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

use crate::csv;
use crate::row::{Row, WITH_RUNS};

/// A record on disk, with the lines that it already contains.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    /// All lines, the oldest first.
    pub lines: Vec<Row>,
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
        // A file that is not a record stays unchanged.
        match text[..whole].lines().next() {
            None if !WITH_RUNS.starts_with(&text) => {
                return Err(format!("{} is not a record of a tuning", path.display()).into());
            }
            Some(other) if other != WITH_RUNS => {
                let what = format!("a record of a tuning does not begin with `{other}`");
                return Err(format!("{}: {what}", path.display()).into());
            }
            _ => {}
        }
        let lines =
            csv::read(&text[..whole]).map_err(|error| format!("{}: {error}", path.display()))?;
        file.set_len(whole as u64).map_err(failed)?;
        if whole == 0 {
            file.rewind().map_err(failed)?;
            file.write_all(format!("{WITH_RUNS}\n").as_bytes()).map_err(failed)?;
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
    pub fn append(&mut self, lines: Vec<Row>) -> lesson::Result {
        let text = csv::rows(&lines)?;
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

    use super::*;
    use crate::row::Measured;

    pub(crate) fn line(pass: Pass, engine: &str, shape: (usize, usize), ratio: f64) -> Row {
        let measured = Measured { machine: "NVIDIA H200", element: ElementType::F32, pass, shape };
        Row { runs: vec![0.25, 0.125, 0.5], ..measured.row(engine, 0.25, 0.25 * ratio) }
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
        assert_eq!(csv::write(WITH_RUNS, &log.lines).unwrap(), whole);
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
        assert_eq!(csv::read::<Row>(&text).unwrap().len(), 101 * 7);
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
        let broken = format!("{WITH_RUNS}\n1,2,3\n");
        fs::write(&path, &broken).unwrap();
        let error = Log::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("`1,2,3`"), "{error}");
        assert!(Log::open(&folder.path().join("no/such/folder.csv")).is_err());
    }

    #[test]
    fn the_median_and_the_speed() {
        let line = line(Pass::Forward, "ref:64", (1000, 1000), 1.0);
        assert_eq!((line.ms.value, line.throughput()), (0.25, 48.0));
        let text = csv::write(WITH_RUNS, std::slice::from_ref(&line)).unwrap();
        assert_eq!(csv::read::<Row>(&text).unwrap(), [line]);
    }
}
