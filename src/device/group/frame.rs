//! The messages between ranks in several processes: requests of one rank, and the answers of rank
//! 0.
//!
//! Numbers are little-endian and have 64 bits; bytes follow their length. Nothing that is read is
//! trusted: a length that is too large is refused before the bytes are read, and memory grows only
//! as bytes come. The tests are at the end of this file.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::time::Duration;

/// A rank's introduction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) job: String,
}

/// A request of a rank to rank 0; `within` is how long the rank waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    Gather {
        what: String,
        bytes: Vec<u8>,
        within: Duration,
    },
    Post {
        to: usize,
        bytes: Vec<u8>,
        within: Duration,
    },
    Fetch {
        from: usize,
        within: Duration,
    },
    /// Asks whether a rank has failed.
    Failure,
    Leave {
        why: Option<String>,
    },
}

/// An answer of rank 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Done(Vec<Vec<u8>>),
    Refused(String),
}

/// The first bytes of an introduction, with which other programs hardly begin; the last is a
/// version.
const GREETING: [u8; 8] = *b"linrec\0\x01";
/// The most bytes of a job's name, and of a reason.
const MOST_OF_TEXT: u64 = 4096;
/// The most bytes of an array that goes through the host.
const MOST_OF_BYTES: u64 = 8 << 30;
/// The most ranks that have a part.
const MOST_PARTS: u64 = 1 << 16;

impl From<Result<Vec<Vec<u8>>, String>> for Answer {
    fn from(result: Result<Vec<Vec<u8>>, String>) -> Answer {
        result.map_or_else(Answer::Refused, Answer::Done)
    }
}

impl From<Result<Vec<Vec<u8>>, &str>> for Answer {
    fn from(result: Result<Vec<Vec<u8>>, &str>) -> Answer {
        result.map_err(str::to_owned).into()
    }
}

pub(super) fn write_hello(to: &mut impl Write, hello: &Hello) -> io::Result<()> {
    let mut frame = GREETING.to_vec();
    put_number(&mut frame, hello.rank as u64);
    put_number(&mut frame, hello.size as u64);
    put_bytes(&mut frame, hello.job.as_bytes());
    to.write_all(&frame)
}

pub(super) fn read_hello(from: &mut impl Read) -> io::Result<Hello> {
    let mut greeting = [0; GREETING.len()];
    from.read_exact(&mut greeting)?;
    if greeting != GREETING {
        return Err(odd("the greeting is another one"));
    }
    Ok(Hello { rank: size(from)?, size: size(from)?, job: text(from)? })
}

impl Request {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut frame = Vec::new();
        match self {
            Request::Gather { what, bytes, within } => {
                frame.push(0);
                put_number(&mut frame, millis(*within));
                put_bytes(&mut frame, shortened(what));
                put_bytes(&mut frame, bytes);
            }
            Request::Post { to, bytes, within } => {
                frame.push(1);
                put_number(&mut frame, millis(*within));
                put_number(&mut frame, *to as u64);
                put_bytes(&mut frame, bytes);
            }
            Request::Fetch { from, within } => {
                frame.push(2);
                put_number(&mut frame, millis(*within));
                put_number(&mut frame, *from as u64);
            }
            Request::Failure => frame.push(5),
            Request::Leave { why: None } => frame.push(3),
            Request::Leave { why: Some(why) } => {
                frame.push(4);
                put_bytes(&mut frame, shortened(why));
            }
        }
        to.write_all(&frame)
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Request> {
        Ok(match kind(from)? {
            0 => {
                let within = time(from)?;
                Request::Gather { what: text(from)?, bytes: bytes(from, MOST_OF_BYTES)?, within }
            }
            1 => {
                let within = time(from)?;
                Request::Post { to: size(from)?, bytes: bytes(from, MOST_OF_BYTES)?, within }
            }
            2 => {
                let within = time(from)?;
                Request::Fetch { from: size(from)?, within }
            }
            3 => Request::Leave { why: None },
            4 => Request::Leave { why: Some(text(from)?) },
            5 => Request::Failure,
            _ => return Err(odd("an unknown kind of request")),
        })
    }
}

impl Answer {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut frame = Vec::new();
        match self {
            Answer::Done(parts) => {
                frame.push(0);
                put_number(&mut frame, parts.len() as u64);
                parts.iter().for_each(|part| put_bytes(&mut frame, part));
            }
            Answer::Refused(why) => {
                frame.push(1);
                put_bytes(&mut frame, shortened(why));
            }
        }
        to.write_all(&frame)
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Answer> {
        match kind(from)? {
            0 => {
                let parts = number(from)?;
                if parts > MOST_PARTS {
                    return Err(odd("too many parts"));
                }
                let parts = (0..parts).map(|_| bytes(from, MOST_OF_BYTES));
                parts.collect::<io::Result<_>>().map(Answer::Done)
            }
            1 => text(from).map(Answer::Refused),
            _ => Err(odd("an unknown kind of answer")),
        }
    }
}

fn odd(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("bad message: {what}"))
}

fn put_number(frame: &mut Vec<u8>, number: u64) {
    frame.extend_from_slice(&number.to_le_bytes());
}

fn put_bytes(frame: &mut Vec<u8>, bytes: &[u8]) {
    put_number(frame, bytes.len() as u64);
    frame.extend_from_slice(bytes);
}

/// Returns as much of a text as may be sent.
fn shortened(text: &str) -> &[u8] {
    &text.as_bytes()[..text.floor_char_boundary(MOST_OF_TEXT as usize)]
}

/// Rounds a time up, so that the other side does not give up before this one.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).saturating_add(1)
}

fn kind(from: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    from.read_exact(&mut byte).map(|()| byte[0])
}

fn number(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
}

fn size(from: &mut impl Read) -> io::Result<usize> {
    usize::try_from(number(from)?).map_err(|_| odd("a number is too large"))
}

/// Reads a time of at most a century.
fn time(from: &mut impl Read) -> io::Result<Duration> {
    const CENTURY: u64 = 100 * 365 * 86_400 * 1000;
    number(from).map(|millis| Duration::from_millis(millis.min(CENTURY)))
}

fn bytes(from: &mut impl Read, most: u64) -> io::Result<Vec<u8>> {
    let len = number(from)?;
    if len > most {
        return Err(odd("a part is too long"));
    }
    let mut bytes = Vec::new();
    let read = from.take(len).read_to_end(&mut bytes)?;
    if read as u64 == len { Ok(bytes) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

fn text(from: &mut impl Read) -> io::Result<String> {
    let bytes = bytes(from, MOST_OF_TEXT)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> [Request; 6] {
        let within = Duration::from_millis(7);
        [
            Request::Gather { what: "all-gather".into(), bytes: vec![1, 2, 3], within },
            Request::Post { to: 3, bytes: vec![0; 100], within },
            Request::Fetch { from: 2, within },
            Request::Failure,
            Request::Leave { why: None },
            Request::Leave { why: Some("it was enough".into()) },
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let mut frames = Vec::new();
        let hello = Hello { rank: 3, size: 8, job: "77".into() };
        write_hello(&mut frames, &hello).unwrap();
        requests().iter().for_each(|request| request.write(&mut frames).unwrap());
        let answers = [
            Answer::Done(vec![vec![1], vec![], vec![2, 3]]),
            Answer::Refused("rank 2 has ended".into()),
        ];
        answers.iter().for_each(|answer| answer.write(&mut frames).unwrap());

        let mut frames = &frames[..];
        assert_eq!(read_hello(&mut frames).unwrap(), hello);
        for request in requests() {
            let mut read = Request::read(&mut frames).unwrap();
            // A deadline is rounded up.
            if let Request::Gather { within, .. }
            | Request::Post { within, .. }
            | Request::Fetch { within, .. } = &mut read
            {
                *within -= Duration::from_millis(1);
            }
            assert_eq!(read, request);
        }
        answers.iter().for_each(|answer| assert_eq!(Answer::read(&mut frames).unwrap(), *answer));
        assert!(frames.is_empty());
    }

    #[test]
    fn half_of_it_and_nonsense_are_errors() {
        for request in requests() {
            let mut frame = Vec::new();
            request.write(&mut frame).unwrap();
            for len in 0..frame.len() {
                assert!(Request::read(&mut &frame[..len]).is_err());
            }
        }
        for nonsense in [&b"GET / HTTP/1.1\r\nHost: rank0\r\n\r\n"[..], &[255; 64], &[0; 64]] {
            assert!(read_hello(&mut &*nonsense).is_err());
        }
        for kind in [0, 1, 4] {
            let mut frame = vec![kind];
            frame.extend_from_slice(&[255; 64]);
            assert!(Request::read(&mut &frame[..]).is_err(), "{kind}");
            assert!(Answer::read(&mut &frame[..]).is_err(), "{kind}");
        }
        assert!(Request::read(&mut &[9_u8; 64][..]).is_err());
    }

    #[test]
    fn a_long_text_is_shortened() {
        let mut frame = Vec::new();
        Answer::Refused("ä".repeat(4000)).write(&mut frame).unwrap();
        let Answer::Refused(text) = Answer::read(&mut &frame[..]).unwrap() else { panic!() };
        assert_eq!(text.chars().count(), 2048);
    }
}
