//! Ranks that are processes, and meet at rank 0 over TCP.
//!
//! Rank 0 listens. Every other rank connects, introduces itself, and sends requests. A thread of
//! rank 0's process does each request at the rank's [`Seat`] in the [`Meeting`] there, and answers.
//! So processes meet as threads do. A process that ends closes its connection, and the others get
//! an error at once. The tests are at the end of this file, and `tests/suite/group/processes.rs`.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::environment::JobProcess;
use super::exchange::Post;
use super::frame::{Answer, Hello, Request, read_hello, write_hello};
use super::meeting::{Meeting, Seat};
use super::rank::label;
use crate::Error;
use crate::device::lock::lock;

/// The time in which a process that connects must introduce itself.
const HELLO: Duration = Duration::from_secs(5);
/// The pause before another attempt.
const PAUSE: Duration = Duration::from_millis(5);
/// The time after its deadline at which an answer of rank 0 is given up.
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
pub(super) struct Line {
    label: String,
    /// The time that it spins for an answer before it blocks.
    awake: Duration,
    stream: Mutex<TcpStream>,
}

/// The seat of rank 0, whose process answers all others: it ends last.
#[derive(Debug)]
struct Host {
    seat: Seat,
}

/// Returns how long processes of a job of this size spin for each other: not at all if that takes
/// cores from those that work, a process and a thread of rank 0 for each rank.
fn awake(size: usize) -> Duration {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if size <= MOST_AWAKE && cores >= 2 * size + 2 { BETWEEN_PASSES } else { Duration::ZERO }
}

/// Connects to all other processes of a job, once all of them are there.
///
/// # Errors
///
/// If they do not all come in time, or do not belong together; the message names the variables.
pub(super) fn meet(place: &JobProcess, until: Instant) -> Result<Box<dyn Post>, Error> {
    let met: Result<Box<dyn Post>, String> = match (place.rank, place.size) {
        (_, 1) => alone(),
        (0, _) => receive_all(place, until),
        _ => call(place, until),
    };
    met.map_err(|message| Error::device(label(place.rank, place.size), message))
}

fn alone() -> Result<Box<dyn Post>, String> {
    let seat = Meeting::seats(1, Duration::ZERO).pop().ok_or("a meeting has no seat")?;
    Ok(Box::new(seat))
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

fn receive_all(place: &JobProcess, until: Instant) -> Result<Box<dyn Post>, String> {
    let listener = listen(place)?;
    listener.set_nonblocking(true).map_err(|error| failed(place, &error))?;
    let awake = awake(place.size);
    let mut seats = Meeting::seats(place.size, awake).into_iter();
    let mine = seats.next().ok_or("a meeting has no seat")?;
    let mut waiting: Vec<Option<Seat>> = seats.map(Some).collect();
    let (come, coming) = mpsc::channel();
    let mut lines = Vec::new();
    let outcome = loop {
        match coming.try_recv() {
            Ok((stream, hello)) => match admit(place, &mut waiting, &hello) {
                Ok(seat) => lines.push((stream, seat)),
                Err(Refusal::Stranger(why)) => drop(answer(stream, Err(&why))),
                Err(Refusal::Ours(why)) => {
                    drop(answer(stream, Err(&why)));
                    break Err(why);
                }
            },
            Err(_) if waiting.iter().all(Option::is_none) => break Ok(()),
            Err(_) if Instant::now() >= until => {
                let missing = (1..place.size).filter(|rank| waiting[rank - 1].is_some());
                let missing: Vec<_> = missing.map(|rank| rank.to_string()).collect();
                let (missing, there) = (missing.join(", "), there(place));
                break Err(format!("rank {missing} did not come to {there} in time"));
            }
            Err(_) => match listener.accept() {
                Ok((stream, _)) => greet(stream, come.clone()),
                Err(error) if is_momentary(&error) => thread::sleep(PAUSE),
                Err(error) => break Err(failed(place, &error)),
            },
        }
    };
    for (stream, seat) in lines {
        let told = outcome.as_ref().map(|()| Vec::new()).map_err(String::as_str);
        let Ok(stream) = answer(stream, told) else {
            seat.leave(Some(GONE));
            continue;
        };
        let serving = thread::Builder::new().name(String::from("a rank's line"));
        serving
            .spawn(move || serve(stream, &seat, awake))
            .map_err(|error| failed(place, &error))?;
    }
    outcome.map(|()| -> Box<dyn Post> { Box::new(Host { seat: mine }) })
}

impl Post for Host {
    fn gather(&self, what: &str, mine: Vec<u8>, until: Instant) -> Result<Vec<Arc<[u8]>>, Error> {
        self.seat.gather(what, mine, until)
    }

    fn post(&self, to: usize, letter: Vec<u8>, until: Instant) -> Result<(), Error> {
        self.seat.post(to, letter, until)
    }

    fn fetch(&self, from: usize, until: Instant) -> Result<Vec<u8>, Error> {
        self.seat.fetch(from, until)
    }

    fn failure(&self, until: Instant) -> Option<String> {
        self.seat.failure(until)
    }

    fn leave(&self, why: Option<&str>) {
        self.seat.leave(why);
        let patience = if why.is_some() { GRACE } else { FAREWELL };
        self.seat.wait_for_others(Instant::now() + patience);
    }
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

/// Reads an introduction on another thread, so that a silent process delays no other.
fn greet(mut stream: TcpStream, come: mpsc::Sender<(TcpStream, Hello)>) {
    let greeting = thread::Builder::new().name(String::from("a greeting"));
    // Without a thread the connection is closed, and the process connects again.
    drop(greeting.spawn(move || {
        let heard = stream.set_nonblocking(false).and_then(|()| {
            stream.set_read_timeout(Some(HELLO))?;
            stream.set_write_timeout(Some(HELLO))?;
            stream.set_nodelay(true)?;
            read_hello(&mut stream)
        });
        if let Ok(hello) = heard {
            drop(come.send((stream, hello)));
        }
    }));
}

/// Why a process is not let in.
enum Refusal {
    /// It belongs to another job, and is ignored.
    Stranger(String),
    /// It belongs to this job, and something is wrong.
    Ours(String),
}

fn admit(place: &JobProcess, waiting: &mut [Option<Seat>], hello: &Hello) -> Result<Seat, Refusal> {
    if hello.job != place.job {
        let why = format!("rank 0 at {} belongs to another job", there(place));
        return Err(Refusal::Stranger(why));
    }
    let Hello { rank, size, .. } = *hello;
    if size != place.size {
        let own = place.size;
        let why = format!("rank {rank} was started with {size} ranks, and rank 0 with {own}");
        return Err(Refusal::Ours(why));
    }
    let seat = rank.checked_sub(1).and_then(|index| waiting.get_mut(index)).and_then(Option::take);
    seat.ok_or_else(|| {
        Refusal::Ours(format!("there are two processes that say they are rank {rank}"))
    })
}

fn answer(mut stream: TcpStream, answer: Result<Vec<u8>, &str>) -> io::Result<TcpStream> {
    Answer::from(answer.map(|bytes| vec![bytes])).write(&mut stream)?;
    Ok(stream)
}

/// Does a rank's requests until it ends.
fn serve(mut stream: TcpStream, seat: &Seat, awake: Duration) {
    let untimed = stream.set_read_timeout(None).and_then(|()| stream.set_write_timeout(None));
    let mut has_left = false;
    while untimed.is_ok() {
        let request = stay_awake(&stream, awake).and_then(|()| Request::read(&mut stream));
        let Ok(request) = request else { break };
        let answer = match request {
            Request::Gather { what, bytes, within } => seat
                .gather(&what, bytes, Instant::now() + within)
                .map(|parts| parts.iter().map(|part| part.to_vec()).collect()),
            Request::Post { to, bytes, within } => {
                seat.post(to, bytes, Instant::now() + within).map(|()| Vec::new())
            }
            Request::Fetch { from, within } => {
                seat.fetch(from, Instant::now() + within).map(|letter| vec![letter])
            }
            Request::Failure => {
                Ok(seat.failure(Instant::now()).map(String::into_bytes).into_iter().collect())
            }
            Request::Leave { why } => {
                has_left = true;
                seat.leave(why.as_deref());
                Ok(Vec::new())
            }
        };
        let answer = Answer::from(answer.map_err(|error| message(&error)));
        if answer.write(&mut stream).is_err() {
            break;
        }
    }
    if !has_left {
        seat.leave(Some(GONE));
    }
}

/// Waits until bytes have come, or the time is over.
fn stay_awake(stream: &TcpStream, time: Duration) -> io::Result<()> {
    if time.is_zero() {
        return Ok(());
    }
    stream.set_nonblocking(true)?;
    let begun = Instant::now();
    let seen = loop {
        match stream.peek(&mut [0]) {
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // An error is sent once.
            seen => break seen.map(drop),
        }
        if begun.elapsed() >= time {
            break Ok(());
        }
        thread::yield_now();
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
    let mut stream = connect(place, until)?;
    let lost = |error: io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("not all ranks came to {} in time", there(place))
        }
        _ => format!("rank 0 at {} has closed the connection: {error}", there(place)),
    };
    let hello = Hello { rank: place.rank, size: place.size, job: place.job.clone() };
    let begun = stream.set_nodelay(true).and_then(|()| {
        stream.set_write_timeout(Some(HELLO))?;
        stream.set_read_timeout(Some(remaining(until) + GRACE))?;
        write_hello(&mut stream, &hello)?;
        Answer::read(&mut stream)
    });
    match begun.map_err(lost)? {
        Answer::Done(_) => {
            let (label, awake) = (label(place.rank, place.size), awake(place.size));
            Ok(Box::new(Line { label, awake, stream: Mutex::new(stream) }))
        }
        Answer::Refused(why) => Err(why),
    }
}

/// Returns at least a moment, since a timeout of zero means none.
fn remaining(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

/// Connects to rank 0, which may begin later than this rank.
fn connect(place: &JobProcess, until: Instant) -> Result<TcpStream, String> {
    loop {
        let mut refusal = format!("no address for {}", there(place));
        // The host's name may be known later, too.
        match addresses(place) {
            Ok(addresses) => {
                for address in addresses {
                    match TcpStream::connect_timeout(&address, remaining(until).min(HELLO)) {
                        Ok(stream) => return Ok(stream),
                        Err(error) => refusal = format!("{address}: {error}"),
                    }
                }
            }
            Err(error) => refusal = error,
        }
        if Instant::now() >= until {
            return Err(format!("rank 0 was not met at {} in time: {refusal}", there(place)));
        }
        thread::sleep(10 * PAUSE);
    }
}

impl Line {
    fn ask(&self, request: &Request, until: Instant) -> Result<Vec<Vec<u8>>, Error> {
        let mut stream = lock(&self.stream);
        let timeout = Some(remaining(until) + GRACE);
        let answered = stream.set_read_timeout(timeout).and_then(|()| {
            stream.set_write_timeout(timeout)?;
            request.write(&mut *stream)?;
            stay_awake(&stream, self.awake)?;
            Answer::read(&mut *stream)
        });
        match answered {
            Ok(Answer::Done(parts)) => Ok(parts),
            Ok(Answer::Refused(why)) => Err(Error::device(&self.label, why)),
            Err(error) => {
                // A later answer would be taken for the answer to another request.
                let _ = stream.shutdown(std::net::Shutdown::Both);
                let message = format!("rank 0 has ended, or cannot be reached any more: {error}");
                Err(Error::device(&self.label, message))
            }
        }
    }
}

impl Post for Line {
    fn gather(&self, what: &str, mine: Vec<u8>, until: Instant) -> Result<Vec<Arc<[u8]>>, Error> {
        let (what, within) = (what.to_owned(), remaining(until));
        let parts = self.ask(&Request::Gather { what, bytes: mine, within }, until)?;
        Ok(parts.into_iter().map(Arc::from).collect())
    }

    fn post(&self, to: usize, letter: Vec<u8>, until: Instant) -> Result<(), Error> {
        let within = remaining(until);
        self.ask(&Request::Post { to, bytes: letter, within }, until).map(drop)
    }

    fn fetch(&self, from: usize, until: Instant) -> Result<Vec<u8>, Error> {
        let letters = self.ask(&Request::Fetch { from, within: remaining(until) }, until)?;
        letters
            .into_iter()
            .next()
            .ok_or_else(|| Error::device(&self.label, "rank 0 sent an empty answer"))
    }

    fn failure(&self, until: Instant) -> Option<String> {
        match self.ask(&Request::Failure, until) {
            Ok(words) => words.first().map(|words| String::from_utf8_lossy(words).into_owned()),
            Err(error) => Some(message(&error)),
        }
    }

    fn leave(&self, why: Option<&str>) {
        let request = Request::Leave { why: why.map(str::to_owned) };
        // A rank that leaves does not wait for the outcome.
        drop(self.ask(&request, Instant::now() + GRACE));
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
