//! Ranks that are processes, and meet at rank 0 over TCP.
//!
//! Rank 0 listens. Every other rank connects, introduces itself, and sends requests. A thread of
//! rank 0's process does each request at the rank's [`Seat`] in the [`Meeting`] there, and answers.
//! So processes meet as threads do. A process that ends closes its connection, and the others get
//! an error at once. Until all ranks are there, one thread listens to all that connect, so that
//! strangers cost neither threads nor, beyond a number and a time, connections. Every message has
//! one deadline for all its bytes. The tests are at the end of this file, and
//! `tests/suite/group/processes.rs`.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_bytes::Bytes;

use super::environment::JobProcess;
use super::frame::{self, Answer, Hello, Request};
use super::link::{Post, label};
use super::meeting::{Meeting, Seat, named};
use super::rank::after;
use crate::Error;
use crate::device::lock::lock;

/// The most time in which a process that connects must introduce itself, and a message must begin.
const HELLO: Duration = Duration::from_secs(5);
/// The most processes that have connected and not yet introduced themselves, beyond the ranks.
const MOST_GUESTS: usize = 256;
/// The pause before another attempt.
const PAUSE: Duration = Duration::from_millis(5);
/// The most time after its deadline at which an answer of rank 0 is given up.
const GRACE: Duration = Duration::from_secs(2);
/// The time that rank 0 waits for the others to end.
const FAREWELL: Duration = Duration::from_secs(60);
/// The time to spin before blocking. Waking a blocked thread takes some 50 microseconds, which is
/// 3 % of a pass of 1.8 milliseconds, and a rank mostly sends its next request within this time.
const BETWEEN_PASSES: Duration = Duration::from_millis(10);
/// The most ranks for which anything spins, since rank 0 has a thread for each.
const MOST_AWAKE: usize = 8;

/// The reason that the others get for a rank whose connection ended.
const GONE: &str = "its process has ended, or cannot be reached any more";

/// A rank's connection to rank 0.
#[derive(Debug)]
struct Line {
    label: String,
    /// The time that it spins for an answer before it blocks.
    awake: Duration,
    /// The time that it waits for an answer after a deadline.
    grace: Duration,
    stream: Mutex<TcpStream>,
}

/// Returns how long processes of a job of this size spin for each other: not at all if that takes
/// cores from those that work, a process and a thread of rank 0 for each rank.
fn awake(size: usize) -> Duration {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if size <= MOST_AWAKE && cores >= 2 * size + 2 { BETWEEN_PASSES } else { Duration::ZERO }
}

/// Returns the time after a deadline at which an answer is given up: the answer has the reason.
fn grace(until: Instant) -> Duration {
    (remaining(until) / 4).min(GRACE)
}

/// Connects to all other processes of a job, once all of them are there.
///
/// # Errors
///
/// If they do not all come in time, or do not belong together; the message names the variables.
pub(super) fn meet(place: &JobProcess, until: Instant) -> Result<Box<dyn Post>, Error> {
    let met: Result<Box<dyn Post>, String> = match (place.rank, place.size) {
        (_, 1) => Meeting::of_threads(1).pop().map(seated).ok_or_else(|| String::from("no seat")),
        (0, _) => receive_all(place, until).map(seated),
        _ => call(place, until),
    };
    met.map_err(|message| Error::device(label(place.rank, place.size), message))
}

fn seated(seat: Seat) -> Box<dyn Post> {
    Box::new(seat)
}

/// Returns where ranks meet, for messages.
fn there(place: &JobProcess) -> String {
    format!("{}:{} (MASTER_ADDR, MASTER_PORT + 1)", place.host, place.port)
}

fn addresses(place: &JobProcess) -> Result<Vec<SocketAddr>, String> {
    let found = (place.host.as_str(), place.port).to_socket_addrs();
    let found = found.map_err(|error| format!("no address for {}: {error}", there(place)))?;
    Ok(found.collect())
}

// Rank 0.

/// A process that has connected, and what it has said.
struct Guest {
    stream: TcpStream,
    heard: Vec<u8>,
    until: Instant,
}

fn receive_all(place: &JobProcess, until: Instant) -> Result<Seat, String> {
    let listener = listen(place)?;
    listener.set_nonblocking(true).map_err(|error| failed(place, &error))?;
    let (awake, patience) = (awake(place.size), remaining(until).min(HELLO));
    let mut seats = Meeting::seats(place.size, awake, Some([grace(until), FAREWELL])).into_iter();
    let mine = seats.next().ok_or("a meeting has no seat")?;
    let mut waiting: Vec<Option<Seat>> = seats.map(Some).collect();
    let (mut guests, mut lines) = (VecDeque::<Guest>::new(), Vec::new());
    let mut refused = String::new();
    let outcome: Result<(), String> = 'meeting: loop {
        let missing: Vec<_> = (1..place.size).filter(|rank| waiting[rank - 1].is_some()).collect();
        if missing.is_empty() {
            break Ok(());
        }
        if Instant::now() >= until {
            let (missing, there) = (named(&missing), there(place));
            break Err(format!("{missing} did not come to {there} in time{refused}"));
        }
        match listener.accept() {
            Ok((stream, _)) => {
                // A process of the job introduces itself at once, so the oldest guest is a
                // stranger.
                if guests.len() >= MOST_GUESTS + place.size {
                    guests.pop_front();
                }
                if stream.set_nonblocking(true).is_ok() {
                    guests.push_back(Guest { stream, heard: Vec::new(), until: after(patience) });
                }
            }
            Err(error) if is_momentary(&error) => thread::sleep(PAUSE),
            // Too many files are open.
            Err(_) if guests.pop_front().is_some() => {}
            Err(error) => break Err(failed(place, &error)),
        }
        for index in (0..guests.len()).rev() {
            let admitted = match guests[index].hear() {
                Ok(None) => continue,
                Ok(Some(hello)) => admit(place, &mut waiting, &hello),
                Err(error) => Err(error),
            };
            let Some(Guest { stream, .. }) = guests.remove(index) else { continue };
            match admitted {
                Ok(Ok(seat)) => lines.push((stream, seat)),
                Ok(Err(why)) => {
                    drop(answer(&stream, Err(&why), patience));
                    break 'meeting Err(why);
                }
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    drop(answer(&stream, Err(&error.to_string()), patience));
                    refused = format!("; another process was refused: {error}");
                }
                Err(_) => {}
            }
        }
    };
    if let Err(why) = outcome {
        let those = guests.iter().map(|guest| &guest.stream);
        let all = lines.iter().map(|(stream, _)| stream).chain(those);
        all.for_each(|stream| drop(answer(stream, Err(&why), patience)));
        return Err(why);
    }
    for (stream, seat) in lines {
        if answer(&stream, Ok(()), patience).is_err() {
            seat.leave(Some(GONE));
            continue;
        }
        let serving = thread::Builder::new().name(String::from("a rank's line"));
        let serving = serving.spawn(move || serve(&stream, &seat, (awake, patience)));
        serving.map_err(|error| failed(place, &error))?;
    }
    Ok(mine)
}

/// Listens at the addresses that the other ranks have for this host, or at all addresses if these
/// are not its own.
fn listen(place: &JobProcess) -> Result<TcpListener, String> {
    let own = addresses(place)?;
    let bound = TcpListener::bind(&own[..]);
    let bound = bound.or_else(|error| match error.kind() {
        ErrorKind::AddrNotAvailable => TcpListener::bind(("::", place.port))
            .or_else(|_| TcpListener::bind(("0.0.0.0", place.port))),
        _ => Err(error),
    });
    bound.map_err(|error| failed(place, &error))
}

fn failed(place: &JobProcess, error: &io::Error) -> String {
    format!("listening at {} failed: {error}", there(place))
}

/// True if a listener goes on after the error: no process was there, or it went away again.
fn is_momentary(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    [WouldBlock, Interrupted, ConnectionAborted, ConnectionReset].contains(&error.kind())
}

impl Guest {
    /// Reads what has come of an introduction; `None` if more is to come.
    fn hear(&mut self) -> io::Result<Option<Hello<'_>>> {
        let mut bytes = [0; frame::MOST_OF_HELLO];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => self.heard.extend_from_slice(&bytes[..len]),
            Err(error) if is_momentary(&error) && Instant::now() < self.until => return Ok(None),
            Err(error) => return Err(error),
        }
        Hello::read(&self.heard)
    }
}

/// Returns the seat of a process, or why the job fails.
///
/// # Errors
///
/// If the process belongs to another job, and is to be ignored.
fn admit(
    place: &JobProcess,
    waiting: &mut [Option<Seat>],
    hello: &Hello,
) -> io::Result<Result<Seat, String>> {
    let (&Hello { rank, size, job }, own) = (hello, place.size);
    if job != place.job {
        let why = format!("rank 0 at {} belongs to another job", there(place));
        return Err(io::Error::new(ErrorKind::InvalidData, why));
    }
    let why = match rank.checked_sub(1).and_then(|index| waiting.get_mut(index)).map(Option::take) {
        _ if size != own => {
            format!("rank {rank} was started with {size} ranks, and rank 0 with {own}")
        }
        Some(Some(seat)) => return Ok(Ok(seat)),
        None if rank > 0 => format!("there is no rank {rank}: the job has {own} ranks, from 0"),
        _ => format!("there are two processes that say they are rank {rank} of {own}"),
    };
    Ok(Err(why))
}

/// Answers an introduction.
fn answer(stream: &TcpStream, outcome: Result<(), &str>, within: Duration) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let answer = outcome.map_or_else(Answer::Refused, |()| Answer::Done(Vec::new()));
    frame::send(stream, &answer, after(within))
}

/// Does a rank's requests until it ends.
fn serve(stream: &TcpStream, seat: &Seat, times: (Duration, Duration)) {
    let ended = loop {
        if let Err(error) = serve_one(stream, seat, times) {
            break error;
        }
    };
    let why = match ended.kind() {
        ErrorKind::InvalidData | ErrorKind::TimedOut => {
            format!("no message of its process: {ended}")
        }
        _ => GONE.to_owned(),
    };
    // A rank that has left before leaves nothing behind.
    seat.leave(Some(&why));
    drop(stream.shutdown(std::net::Shutdown::Both));
}

fn serve_one(
    stream: &TcpStream,
    seat: &Seat,
    (awake, patience): (Duration, Duration),
) -> io::Result<()> {
    stay_awake(stream, awake)?;
    // A rank may work for any time before its next request, but then all of it must come.
    stream.set_read_timeout(None)?;
    while stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::Interrupted) {}
    let (within, len) = frame::receive_head(stream, after(patience))?;
    let until = after(within);
    let body = frame::receive_body(stream, len, until + patience)?;
    let done: Result<Vec<Arc<[u8]>>, Error> = match frame::decode(&body)? {
        Request::Gather { what, bytes } => seat.gather(&frame::shown(what), bytes, until),
        Request::Post { to, bytes } => seat.post(to, bytes.to_vec(), until).map(|()| Vec::new()),
        Request::Fetch { from } => seat.fetch(from, until).map(|letter| vec![letter.into()]),
        Request::Failure => {
            Ok(seat.failure(until).into_iter().map(|why| why.into_bytes().into()).collect())
        }
        Request::Leave { why } => {
            seat.leave(why.map(frame::shown).as_deref());
            Ok(Vec::new())
        }
    };
    let done = done.map_err(|error| message(&error));
    let answer = match &done {
        Ok(parts) => Answer::Done(parts.iter().map(|part| Bytes::new(part)).collect()),
        Err(why) => Answer::Refused(why),
    };
    frame::send(stream, &answer, until.max(Instant::now()) + patience)
}

/// Waits until bytes have come, or the time is over.
fn stay_awake(stream: &TcpStream, time: Duration) -> io::Result<()> {
    if time.is_zero() {
        return Ok(());
    }
    let end = after(time);
    let is_early =
        |error: &io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
    stream.set_nonblocking(true)?;
    let seen = loop {
        match stream.peek(&mut [0]) {
            Err(error) if is_early(&error) && Instant::now() < end => thread::yield_now(),
            Err(error) if is_early(&error) => break Ok(()),
            // An error is sent once.
            seen => break seen.map(drop),
        }
    };
    stream.set_nonblocking(false)?;
    seen
}

/// Returns an error's text without the rank in front, which the other side knows.
fn message(error: &Error) -> String {
    match error {
        Error::Device { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

// All others.

fn call(place: &JobProcess, until: Instant) -> Result<Box<dyn Post>, String> {
    let (label, awake, grace) = (label(place.rank, place.size), awake(place.size), grace(until));
    let stream = connect(place, until)?;
    let hello = Hello { rank: place.rank, size: place.size, job: &place.job };
    let begun = stream.set_nodelay(true).and_then(|()| {
        frame::write(&stream, &hello.bytes()?, until + grace)?;
        receive(&stream, until + grace)
    });
    let met = begun.map_err(|error| match error.kind() {
        ErrorKind::TimedOut => format!("not all ranks came to {} in time", there(place)),
        _ => format!("rank 0 at {} has closed the connection: {error}", there(place)),
    })?;
    met.map(|_| -> Box<dyn Post> { Box::new(Line { label, awake, grace, stream: stream.into() }) })
}

/// Receives the answer to a request.
fn receive(stream: &TcpStream, until: Instant) -> io::Result<Result<Vec<Arc<[u8]>>, String>> {
    let (_, len) = frame::receive_head(stream, until)?;
    Ok(match frame::decode(&frame::receive_body(stream, len, until)?)? {
        Answer::Done(parts) => Ok(parts.iter().map(|part| Arc::from(&part[..])).collect()),
        Answer::Refused(why) => Err(frame::shown(why)),
    })
}

/// Returns at least a moment, since a timeout of zero means none.
fn remaining(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

/// Connects to rank 0, which may begin later than this rank.
fn connect(place: &JobProcess, until: Instant) -> Result<TcpStream, String> {
    let connect = |address: &SocketAddr| {
        let met = TcpStream::connect_timeout(address, remaining(until).min(HELLO));
        met.map_err(|error| format!("{address}: {error}"))
    };
    loop {
        let none = Err(format!("no address for {}", there(place)));
        // The host's name may be known later, too.
        let met = addresses(place).and_then(|all| {
            all.iter().fold(none, |met, address| met.or_else(|_| connect(address)))
        });
        match met {
            Err(why) if Instant::now() >= until => {
                return Err(format!("rank 0 was not met at {} in time: {why}", there(place)));
            }
            Err(_) => thread::sleep(10 * PAUSE),
            Ok(stream) => return Ok(stream),
        }
    }
}

impl Line {
    fn ask(&self, request: &Request, until: Instant) -> Result<Vec<Arc<[u8]>>, Error> {
        let stream = lock(&self.stream);
        // A request that is already late still gets a moment: its answer may be there.
        let until = after(remaining(until));
        let answered = frame::send(&stream, request, until).and_then(|()| {
            stay_awake(&stream, self.awake)?;
            receive(&stream, until + self.grace)
        });
        let answered = answered.unwrap_or_else(|error| {
            // A later answer would be taken for the answer to another request.
            let _ = stream.shutdown(std::net::Shutdown::Both);
            Err(format!("rank 0 has ended, or cannot be reached any more: {error}"))
        });
        answered.map_err(|why| Error::device(&self.label, why))
    }
}

impl Post for Line {
    fn gather(&self, what: &str, mine: &[u8], until: Instant) -> Result<Vec<Arc<[u8]>>, Error> {
        self.ask(&Request::Gather { what, bytes: Bytes::new(mine) }, until)
    }

    fn post(&self, to: usize, letter: Vec<u8>, until: Instant) -> Result<(), Error> {
        self.ask(&Request::Post { to, bytes: Bytes::new(&letter) }, until).map(drop)
    }

    fn fetch(&self, from: usize, until: Instant) -> Result<Vec<u8>, Error> {
        let letters = self.ask(&Request::Fetch { from }, until)?;
        let letter = letters.first().map(|letter| letter.to_vec());
        letter.ok_or_else(|| Error::device(&self.label, "rank 0 sent an empty answer"))
    }

    fn failure(&self, until: Instant) -> Option<String> {
        match self.ask(&Request::Failure, until) {
            Ok(words) => words.first().map(|words| frame::shown(&String::from_utf8_lossy(words))),
            Err(error) => Some(message(&error)),
        }
    }

    fn leave(&self, why: Option<&str>) {
        // A rank that leaves does not wait for the outcome.
        drop(self.ask(&Request::Leave { why }, Instant::now() + self.grace));
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn both_ends() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (here, listener.accept().unwrap().0)
    }

    /// Bytes come at once, or after the time of spinning, or never because the other end is closed.
    #[test]
    fn what_comes_is_read_whenever_it_comes() {
        let (mut here, mut there) = both_ends();
        let long = Duration::from_secs(60);
        there.write_all(b"1").unwrap();
        stay_awake(&here, long).unwrap();
        let sent = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            there.write_all(b"2").unwrap();
        });
        stay_awake(&here, Duration::from_millis(1)).unwrap();
        // It blocks again until the second one is there, and then there are no more.
        let mut both = [0; 2];
        here.read_exact(&mut both).unwrap();
        assert_eq!(&both, b"12");
        sent.join().unwrap();
        stay_awake(&here, long).unwrap();
        assert_eq!(here.read(&mut both).unwrap(), 0);
    }

    #[test]
    fn nobody_stays_awake_for_many() {
        assert_eq!(awake(MOST_AWAKE + 1), Duration::ZERO);
        assert_eq!(awake(usize::MAX / 4), Duration::ZERO);
    }
}
