//! The messages between ranks in several processes: requests of a rank, and the answers of rank 0.
//!
//! A message is a head of 16 bytes, and a body that `postcard` encodes. The head has the time that
//! the sender waits, in milliseconds, and the length of the body. Every message has one deadline
//! for all its bytes, however few of them come at a time. Nothing that is read is trusted: a length
//! that is too large is refused before the bytes are read, and memory grows only as bytes come.
//! The tests are at the end of this file, and `tests/suite/group/processes.rs`.

use std::fmt::Display;
use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;

/// A rank's introduction, which follows the greeting and the version.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello<'a> {
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) job: &'a str,
}

/// A request of a rank to rank 0.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request<'a> {
    Gather {
        what: &'a str,
        #[serde(borrow)]
        bytes: &'a Bytes,
    },
    Post {
        to: usize,
        #[serde(borrow)]
        bytes: &'a Bytes,
    },
    Fetch {
        from: usize,
    },
    /// Asks whether a rank has failed.
    Failure,
    Leave {
        #[serde(borrow)]
        why: Option<&'a str>,
    },
}

/// An answer of rank 0.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer<'a> {
    #[serde(borrow)]
    Done(Vec<&'a Bytes>),
    Refused(&'a str),
}

/// The first bytes of an introduction, with which other programs hardly begin.
const GREETING: &[u8] = b"linrec\0";
/// The version of the messages, which follows the greeting.
const VERSION: u8 = 2;
/// The most bytes of an introduction.
pub(super) const MOST_OF_HELLO: usize = 512;
/// The most bytes of a message: arrays of all ranks that go through the host.
const MOST_OF_BYTES: u64 = 64 << 30;
/// The most bytes that are kept of a reason.
const MOST_OF_TEXT: usize = 4096;

impl Hello<'_> {
    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        postcard::to_extend(self, [GREETING, &[VERSION]].concat()).map_err(odd)
    }

    /// Reads an introduction; `None` if more bytes are to come.
    pub(super) fn read(bytes: &[u8]) -> io::Result<Option<Hello<'_>>> {
        let rest = match bytes.strip_prefix(GREETING).map(<[u8]>::split_first) {
            None if !GREETING.starts_with(bytes) => return Err(odd("the greeting is another one")),
            None | Some(None) => return Ok(None),
            Some(Some((&VERSION, rest))) => rest,
            // Other versions may have other fields, so nothing after the version is read.
            Some(Some((version, _))) => {
                let why = format!("its version is {version}, and rank 0 has {VERSION}");
                return Err(odd(why));
            }
        };
        match postcard::take_from_bytes(rest) {
            Ok((hello, [])) => Ok(Some(hello)),
            Ok(_) => Err(odd("the introduction is too long")),
            Err(postcard::Error::DeserializeUnexpectedEnd) if bytes.len() < MOST_OF_HELLO => {
                Ok(None)
            }
            Err(error) => Err(odd(error)),
        }
    }
}

/// A stream whose reads and writes end at one time, all of them together.
struct Timed<'a>(&'a TcpStream, Instant);

impl Timed<'_> {
    /// Returns the time that is left as a timeout, which must not be zero.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.1.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(late()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.set_read_timeout(self.left()?)?;
        self.0.read(bytes).map_err(in_words)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.set_write_timeout(self.left()?)?;
        self.0.write(bytes).map_err(in_words)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes all bytes until a deadline.
pub(super) fn write(stream: &TcpStream, bytes: &[u8], until: Instant) -> io::Result<()> {
    Timed(stream, until).write_all(bytes)
}

/// Sends a message until a deadline, of which the receiver learns.
pub(super) fn send(stream: &TcpStream, message: &impl Serialize, until: Instant) -> io::Result<()> {
    let mut frame = postcard::to_extend(message, vec![0; 16]).map_err(odd)?;
    let within = until.saturating_duration_since(Instant::now());
    // Rounded up, so that the other side does not give up before this one.
    let millis = u64::try_from(within.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
    let len = frame.len() as u64 - 16;
    frame[..8].copy_from_slice(&millis.to_le_bytes());
    frame[8..16].copy_from_slice(&len.to_le_bytes());
    write(stream, &frame, until)
}

/// Receives a head: the time that the sender waits, and the length of the body.
pub(super) fn receive_head(stream: &TcpStream, until: Instant) -> io::Result<(Duration, u64)> {
    let mut numbers = [[0; 8]; 2];
    Timed(stream, until).read_exact(numbers.as_flattened_mut())?;
    let [millis, len] = numbers.map(u64::from_le_bytes);
    // At most a century: longer times overflow elsewhere.
    let within = Duration::from_millis(millis).min(Duration::from_secs(100 * 365 * 86_400));
    if len > MOST_OF_BYTES { Err(odd(format!("a body of {len} bytes"))) } else { Ok((within, len)) }
}

/// Receives a body of `len` bytes.
pub(super) fn receive_body(stream: &TcpStream, len: u64, until: Instant) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let read = Timed(stream, until).take(len).read_to_end(&mut body)?;
    if read as u64 == len { Ok(body) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// Reads what a body says.
pub(super) fn decode<'a, M: Deserialize<'a>>(body: &'a [u8]) -> io::Result<M> {
    postcard::from_bytes(body).map_err(odd)
}

/// Returns a text of another process for messages: without what would control a terminal, and not
/// longer than a page.
pub(super) fn shown(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MOST_OF_TEXT)];
    text.replace(|letter: char| letter.is_control() && letter != '\n', "\u{fffd}")
}

fn odd(what: impl Display) -> Error {
    Error::new(ErrorKind::InvalidData, format!("bad message: {what}"))
}

fn late() -> Error {
    Error::new(ErrorKind::TimedOut, "the time is over")
}

/// Returns the error of a timeout in words; on Unix it says that another attempt may succeed.
fn in_words(error: Error) -> Error {
    if error.kind() == ErrorKind::WouldBlock { late() } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is written is read, and half of it is an error.
    #[test]
    fn what_is_written_is_read() {
        let hello = Hello { rank: 3, size: 8, job: "77" };
        let bytes = hello.bytes().unwrap();
        assert_eq!(Hello::read(&bytes).unwrap(), Some(hello));
        assert!((0..bytes.len()).all(|len| Hello::read(&bytes[..len]).unwrap().is_none()));
        for request in [
            Request::Gather { what: "all-gather", bytes: Bytes::new(&[1, 2, 3]) },
            Request::Post { to: 3, bytes: Bytes::new(&[0; 100]) },
            Request::Fetch { from: 2 },
            Request::Failure,
            Request::Leave { why: None },
            Request::Leave { why: Some("it was enough") },
        ] {
            let body = postcard::to_stdvec(&request).unwrap();
            assert_eq!(decode::<Request>(&body).unwrap(), request);
            assert!((0..body.len()).all(|len| decode::<Request>(&body[..len]).is_err()));
        }
        let parts = [&[1][..], &[], &[2, 3]].map(Bytes::new).to_vec();
        for answer in [Answer::Done(parts), Answer::Refused("rank 2 has ended")] {
            assert_eq!(decode::<Answer>(&postcard::to_stdvec(&answer).unwrap()).unwrap(), answer);
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        let long = [GREETING, &[VERSION, 1, 2, 255, 255, 3], &[b'a'; MOST_OF_HELLO]].concat();
        let other = [GREETING, &[1]].concat();
        for nonsense in [b"GET / HTTP/1.1\r\n\r\n", &[255; 64][..], &[0; 64], &long, &other] {
            assert!(Hello::read(nonsense).is_err());
        }
        for kind in 0..10 {
            let body = [&[kind][..], &[255; 64]].concat();
            let is_failure = kind == 3;
            assert_eq!(decode::<Request>(&body).is_ok(), is_failure, "{kind}");
            assert!(decode::<Answer>(&body).is_err(), "{kind}");
        }
    }

    #[test]
    fn a_text_of_another_process_is_shortened_and_harmless() {
        assert_eq!(shown(&"ä".repeat(4000)).chars().count(), 2048);
        assert_eq!(shown("\u{1b}[2J line\nnext"), "\u{fffd}[2J line\nnext");
    }
}
