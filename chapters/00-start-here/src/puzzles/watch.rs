//! Waits until a file is saved or the reader types a command.

use std::io::{self, BufRead, ErrorKind};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;
use std::{fs, thread};

const INTERVAL: Duration = Duration::from_millis(250);

/// The lines that the reader types while a file is watched.
pub struct Watch {
    typed: Receiver<String>,
}

/// The event that ended the waiting.
pub enum Change {
    /// The file was saved with this new text.
    Saved(String),
    /// The reader asked for a hint.
    Hint,
    /// The reader asked to stop.
    Stop,
}

impl Watch {
    /// Begins to read lines from the standard input. The thread ends with the program, or with its
    /// standard input.
    pub fn begin() -> Watch {
        let (sender, typed) = mpsc::channel();
        thread::spawn(move || {
            let lines = io::stdin().lock().lines().map_while(Result::ok);
            lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        Watch { typed }
    }

    /// Waits until the file's text differs from `old`, or the reader types a command. If the file
    /// is missing, for example while an editor replaces it, waits for it to reappear.
    pub fn wait(&self, file: &Path, old: &str) -> lesson::Result<Change> {
        loop {
            match fs::read_to_string(file) {
                Ok(text) if text != old => return Ok(Change::Saved(text)),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot read {}: {error}", file.display()).into()),
            }
            match self.typed.recv_timeout(INTERVAL) {
                Ok(line) if line.trim() == "h" => return Ok(Change::Hint),
                Ok(line) if line.trim() == "q" => return Ok(Change::Stop),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                // The standard input has ended, so no command will come.
                Err(RecvTimeoutError::Disconnected) => thread::sleep(INTERVAL),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(change: Change) -> Option<String> {
        if let Change::Saved(text) = change { Some(text) } else { None }
    }

    #[test]
    fn a_new_text_is_noticed_even_if_the_file_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.cu");
        let (_sender, typed) = mpsc::channel();
        let watch = Watch { typed };
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(2 * INTERVAL); // not there
                let new = folder.path().join("b.cu");
                fs::write(&new, "new").and_then(|()| fs::rename(&new, &file)).expect("a file");
            });
            let change = watch.wait(&file, "old").expect("a change");
            assert_eq!(saved(change).as_deref(), Some("new"));
        });
    }

    #[test]
    fn commands_are_read_and_other_lines_are_ignored() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.cu");
        fs::write(&file, "old").expect("a file");
        let (sender, typed) = mpsc::channel();
        for line in ["", "what", "h", "q"] {
            sender.send(line.to_owned()).expect("it is received");
        }
        let watch = Watch { typed };
        assert!(matches!(watch.wait(&file, "old"), Ok(Change::Hint)));
        assert!(matches!(watch.wait(&file, "old"), Ok(Change::Stop)));
        // Without a standard input, the file is still watched.
        drop(sender);
        fs::write(&file, "new").expect("a file");
        assert_eq!(watch.wait(&file, "old").ok().and_then(saved).as_deref(), Some("new"));
    }
}
