//! One process for each rank, as torchrun, SLURM and Open MPI start them.
//!
//! Here the tests start the processes, on emulated devices, or on GPUs in the test that needs them.
//! A process runs one scenario of this module and prints what it computed or the error it got; the
//! tests compare the lines. They cover results, processes that die, end early or never come,
//! disagreements, strangers that connect to the port, and peers that drip, lie, or stop half-way.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::emulated;
use linrec::Error;
use linrec::device::{Device, ForwardOptions, Group, GroupRecurrence, Rank, Split, Way};

const SCENARIO: &str = "LINREC_TEST_GROUP";
/// The variable with the milliseconds that ranks wait for each other.
const DEADLINE: &str = "LINREC_TEST_GROUP_DEADLINE";
/// Longer than any test waits if a failure is noticed as it should be.
const LONG: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_millis(1500);
/// For ranks that wait until the deadline. It and the time after it are shorter than [`SOON`].
const SHORTEST: Duration = Duration::from_millis(600);
/// The time within which a rank ends in spite of a bad peer.
const SOON: Duration = Duration::from_millis(1900);

/// A job: its processes, and the variables of each besides its rank.
pub(super) struct Job<'a> {
    scenario: &'a str,
    ranks: &'a [usize],
    size: usize,
    deadline: Duration,
    port: u16,
    more: &'a [(usize, &'a str, &'a str)],
}

impl<'a> Job<'a> {
    pub(super) fn new(scenario: &'a str, ranks: &'a [usize], deadline: Duration) -> Job<'a> {
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        Job { scenario, ranks, size: ranks.len(), deadline, port, more: &[] }
    }

    /// Sets variables of single ranks.
    pub(super) fn with(self, more: &'a [(usize, &'a str, &'a str)]) -> Job<'a> {
        Job { more, ..self }
    }

    fn start(&self, rank: usize) -> Child {
        self.command(rank).spawn().unwrap()
    }

    fn command(&self, rank: usize) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let (_, module) = module_path!().split_once("::").unwrap();
        let child = format!("{module}::a_process_with_a_scenario");
        command
            .args([&child, "--exact", "--ignored", "--no-capture", "--test-threads=1"])
            .env(SCENARIO, self.scenario)
            .env(DEADLINE, self.deadline.as_millis().to_string())
            .env("LINREC_DEVICE", "simt")
            .env("RANK", rank.to_string())
            .env("LOCAL_RANK", rank.to_string())
            .env("WORLD_SIZE", self.size.to_string())
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", (self.port - 1).to_string())
            .env_remove("TORCHELASTIC_RUN_ID")
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        for (_, name, value) in self.more.iter().filter(|more| more.0 == rank) {
            command.env(name, value);
        }
        command
    }

    /// Connects to rank 0 as soon as it listens.
    fn connect(&self) -> TcpStream {
        loop {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                break stream;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Connects with an introduction.
    fn introduce(&self, version: u8, rank: u8) -> TcpStream {
        let mut stream = self.connect();
        let hello = [version, rank, self.size as u8, 0];
        stream.write_all(&[b"linrec\0", &hello[..]].concat()).unwrap();
        stream
    }

    /// Connects as rank 1 of two to rank 0, and begins its first request with these bytes.
    fn begin(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.introduce(VERSION, 1);
        stream.read_exact(&mut [0; ADMITTED.len()]).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    }

    fn is_set(&self, rank: usize, name: &str) -> bool {
        self.more.iter().any(|more| more.0 == rank && more.1 == name)
    }

    /// Returns the output of each process, in the order of `ranks`.
    fn run(&self) -> Vec<String> {
        self.run_with(&[], &[])
    }

    /// Does the same with the given variables set and others removed.
    pub(super) fn run_with(&self, variables: &[(&str, &str)], without: &[&str]) -> Vec<String> {
        let start = Instant::now();
        let started = self.ranks.iter().map(|&rank| {
            let mut command = self.command(rank);
            for name in without.iter().filter(|name| !self.is_set(rank, name)) {
                command.env_remove(name);
            }
            command.envs(variables.iter().copied()).spawn().unwrap()
        });
        let children: Vec<_> = started.collect();
        let texts = children.into_iter().map(output_of).collect();
        assert!(start.elapsed() < LONG / 2);
        texts
    }
}

fn output_of(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.strip_prefix("output ")).collect::<Vec<_>>().join("; ")
}

#[test]
#[ignore = "is started by other tests, with a scenario"]
fn a_process_with_a_scenario() {
    let Ok(scenario) = std::env::var(SCENARIO) else {
        return println!("there is no scenario in {SCENARIO}");
    };
    let millis = std::env::var(DEADLINE).unwrap().parse().unwrap();
    let outcome = Group::from_environment_within(Duration::from_millis(millis))
        .and_then(|group| group.run(|rank| play(&scenario, rank)));
    match outcome {
        Ok(results) => println!("\noutput {}", results[0]),
        Err(error) => println!("\noutput {error}"),
    }
}

fn play(scenario: &str, rank: &Rank) -> Result<String, Error> {
    rank.barrier()?;
    match scenario {
        "recurrence" => computed(rank),
        "exchange" => {
            let mut array = rank.device().upload(&vec![rank.number() as u8; 100_000])?;
            let (next, last) = ((rank.number() + 1) % rank.size(), rank.size() - 1);
            rank.send(&array, next)?;
            rank.receive(&mut array, (rank.number() + last) % rank.size())?;
            let element = array.download()?[99_999];
            rank.broadcast(&mut array, last)?;
            Ok(format!("{element} {}", array.download()?[0]))
        }
        "arrays" | "rank 1 dies in NCCL" => {
            if scenario != "arrays" && rank.number() == 1 {
                thread::spawn(|| {
                    // While the others wait for the operation that this rank has begun.
                    thread::sleep(Duration::from_millis(300));
                    std::process::abort()
                });
            }
            let number = rank.number() as u8;
            let mut mine = rank.device().upload(&[number, number])?;
            let mut all = rank.device().allocate::<u8>(2 * rank.size())?;
            rank.all_gather(&mine, &mut all)?;
            rank.broadcast(&mut mine, 2)?;
            let broadcast = mine.download()?;
            // A send may wait for its receive, so not all of the ring send first.
            let one = rank.device().upload(&[number])?;
            let mut received = rank.device().allocate::<u8>(1)?;
            let (next, last) = ((rank.number() + 1) % rank.size(), rank.size() - 1);
            let before = (rank.number() + last) % rank.size();
            if rank.number().is_multiple_of(2) {
                rank.send(&one, next)?;
                rank.receive(&mut received, before)?;
            } else {
                rank.receive(&mut received, before)?;
                rank.send(&one, next)?;
            }
            Ok(format!("{:?} {broadcast:?} {}", all.download()?, received.download()?[0]))
        }
        "other lengths" => {
            let mut array = rank.device().upload(&vec![1_u8; 3 + rank.number()])?;
            match rank.number() {
                0 => rank.send(&array, 1)?,
                1 => rank.receive(&mut array, 0)?,
                _ => {}
            }
            rank.barrier().map(|()| String::from("all came"))
        }
        "mailboxes" => {
            // The fake driver computes nothing.
            computed_by(rank, Way::Mailboxes, (3, 8 * 40))?;
            Ok(String::from("opened and closed"))
        }
        "ways" => by_all_ways(rank),
        "disagreement" if rank.number() == 1 => computed_of(rank, (2, 72)),
        "disagreement" => computed_of(rank, (2, 64)),
        _ => {
            if scenario == format!("rank {} dies", rank.number()) {
                std::process::abort();
            }
            if scenario == format!("rank {} ends", rank.number()) {
                return Ok(String::from("ended"));
            }
            rank.barrier().map(|()| String::from("all came"))
        }
    }
}

fn computed(rank: &Rank) -> Result<String, Error> {
    computed_of(rank, (3, 8 * 40))
}

fn computed_of(rank: &Rank, shape: (usize, usize)) -> Result<String, Error> {
    computed_by(rank, Way::Passes, shape)
}

/// Computes the same sum by each way.
fn by_all_ways(rank: &Rank) -> Result<String, Error> {
    let ways = [Way::Passes, Way::TailFirst, Way::Mailboxes, Way::TailByMail];
    // Stretches long enough for a search for their tails.
    let sums = ways.map(|way| computed_by(rank, way, (40, 40 * 1024)));
    Ok(sums.into_iter().collect::<Result<Vec<_>, _>>()?.join(" | "))
}

/// Returns the sum of the bits of this rank's outputs, and its final states, by a fixed kernel.
fn computed_by(rank: &Rank, way: Way, shape: (usize, usize)) -> Result<String, Error> {
    let kernel: linrec::kernels::KernelChoice = "pipe:8x64:0".parse()?;
    let recurrence = GroupRecurrence::<f32>::by(rank, Split::Steps, kernel)?.with_way(way);
    let part = recurrence.part(shape)?;
    let place = |row, step| (row * 31 + step * 7) % 97;
    let rows =
        part.rows.clone().flat_map(|row| part.steps.clone().map(move |step| place(row, step)));
    let numbers: Vec<f32> = rows.map(|number| number as f32 / 97.0).collect();
    let inputs = rank.device().upload(&numbers)?;
    let mut outputs = rank.device().allocate(part.len())?;
    let mut final_state = rank.device().allocate(shape.0)?;
    let options = ForwardOptions { final_state: Some(&mut final_state), ..Default::default() };
    recurrence.forward_into(&inputs, &inputs, &mut outputs, shape, options)?;
    let bits: u64 = outputs.download()?.iter().map(|y| u64::from(y.to_bits())).sum();
    Ok(format!("{bits:x} {:?}", final_state.download()?))
}

#[test]
fn processes_give_the_results_of_threads() {
    let threads = emulated(3).run(computed).unwrap();
    assert_eq!(
        Job::new("recurrence", &[2, 0, 1], LONG).run(),
        [2, 0, 1].map(|rank| threads[rank].clone())
    );
    assert_eq!(Job::new("recurrence", &[0], LONG).run(), emulated(1).run(computed).unwrap());
}

#[test]
#[ignore = "needs a GPU, which processes share, and whose memory they reach"]
fn processes_on_gpus_give_the_bits_of_threads() {
    let device = Device::simt();
    let threads = Group::through_host(&[device.clone(), device]).unwrap().run(by_all_ways).unwrap();
    let variables = [("LINREC_DEVICE", "cuda"), ("LINREC_NCCL", "none"), ("LOCAL_RANK", "0")];
    assert_eq!(Job::new("ways", &[0, 1], LONG).run_with(&variables, &[]), threads);
}

#[test]
fn processes_exchange_arrays() {
    assert_eq!(Job::new("exchange", &[0, 1, 2], LONG).run(), ["2 1", "0 1", "1 1"]);
}

#[test]
fn a_process_that_dies_ends_all() {
    let texts = Job::new("rank 1 dies", &[0, 1, 2], LONG).run();
    assert_eq!(texts[1], "");
    for rank in [0, 2] {
        let expected = "rank 1 failed: its process has ended, or cannot be reached any more";
        assert!(texts[rank].contains(expected), "{texts:?}");
    }
    let texts = Job::new("rank 0 dies", &[0, 1, 2], LONG).run();
    for rank in [1, 2] {
        let expected = format!("rank {rank} of 3: rank 0 has ended, or cannot be reached any more");
        assert!(texts[rank].starts_with(&expected), "{texts:?}");
    }
}

#[test]
fn a_process_that_ends_is_not_waited_for() {
    let texts = Job::new("rank 2 ends", &[0, 1, 2], LONG).run();
    assert_eq!(texts[2], "ended");
    for rank in [0, 1] {
        assert!(texts[rank].contains("rank 2 has ended, and takes no part"), "{texts:?}");
    }
}

#[test]
fn processes_that_disagree_get_an_error() {
    for text in Job::new("disagreement", &[0, 1], LONG).run() {
        assert!(text.contains("ranks disagree: `forward of f32 [2, "), "{text}");
        assert!(text.contains("[2, 64]") && text.contains("[2, 72]"), "{text}");
    }
}

#[test]
fn a_missing_process_is_named() {
    let job = Job { size: 3, ..Job::new("", &[0, 2], SHORT) };
    let there = format!("127.0.0.1:{} (MASTER_ADDR, MASTER_PORT + 1)", job.port);
    for text in job.run() {
        assert!(text.contains(&format!("rank 1 did not come to {there} in time")), "{text}");
    }
    let job = Job { size: 2, ..Job::new("", &[1], SHORT) };
    let there = format!("127.0.0.1:{} (MASTER_ADDR, MASTER_PORT + 1)", job.port);
    let text = &job.run()[0];
    let expected = format!("rank 1 of 2: rank 0 was not met at {there} in time");
    assert!(text.starts_with(&expected), "{text}");
}

#[test]
fn processes_of_different_jobs_get_an_error() {
    let more = [(1, "WORLD_SIZE", "4")];
    let texts = Job { more: &more, ..Job::new("", &[0, 1], LONG) }.run();
    for text in &texts {
        assert!(text.contains("rank 1 was started with 4 ranks, and rank 0 with 2"), "{text}");
    }
    for text in (Job { size: 3, ..Job::new("", &[0, 1, 1], LONG) }.run()) {
        let expected = "there are two processes that say they are rank 1 of 3";
        assert!(text.contains(expected), "{text}");
    }
    let more = [(1, "TORCHELASTIC_RUN_ID", "another")];
    let texts = Job { more: &more, ..Job::new("", &[0, 1], SHORT) }.run();
    assert!(texts[0].contains("rank 1 did not come"), "{texts:?}");
    assert!(texts[1].contains("belongs to another job"), "{texts:?}");
    let more = [(0, "RANK", "one")];
    let texts = Job { more: &more, ..Job::new("", &[0], SHORT) }.run();
    assert_eq!(texts[0], "a group: RANK=one is not a number from 0 to 65535");
}

#[test]
fn strangers_that_connect_are_ignored() {
    let job = Job::new("exchange", &[0, 1], LONG);
    let first = job.start(0);
    let words = [&b"GET / HTTP/1.1\r\n\r\n"[..], b"", b"linrec\0\x02", &[255; 4096]];
    let strangers = words.map(|words| {
        let mut stranger = job.connect();
        stranger.write_all(words).unwrap();
        stranger
    });
    assert_eq!(output_of(job.start(1)), "0 0");
    assert_eq!(output_of(first), "1 0");
    drop(strangers);
}

/// The version of the messages.
const VERSION: u8 = 2;
/// The answer to an introduction once all ranks have come: a time of 0, a length of 2, no arrays.
const ADMITTED: [u8; 18] = [0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Returns what is sent until the other end closes.
fn all_of(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends a byte every 50 milliseconds, for three seconds or until the other end has had enough.
fn drip(mut stream: TcpStream) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let _ = (0..60).all(|_| {
            thread::sleep(Duration::from_millis(50));
            stream.write_all(&[0]).is_ok()
        });
    })
}

/// Returns the output of a process that a bad peer must not keep.
fn soon(child: Child, since: Instant) -> String {
    let text = output_of(child);
    assert!(since.elapsed() < SOON, "{text} after {:?}", since.elapsed());
    text
}

/// A rank 0 that sends a byte now and then keeps no rank beyond the deadline: neither when ranks
/// meet, nor later.
#[test]
fn a_rank_0_that_drips_keeps_no_rank() {
    for (answer, expected) in [
        (&[][..], "rank 1 of 2: not all ranks came to 127.0.0.1"),
        (&ADMITTED, "rank 1 of 2: rank 0 has ended, or cannot be reached any more: the time is"),
    ] {
        let start = Instant::now();
        let job = Job { size: 2, ..Job::new("", &[1], SHORTEST) };
        let listener = TcpListener::bind(("127.0.0.1", job.port)).unwrap();
        let child = job.start(1);
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(answer).unwrap();
        let dripping = drip(stream);
        let text = soon(child, start);
        assert!(text.starts_with(expected), "{text}");
        dripping.join().unwrap();
    }
}

#[test]
fn a_rank_that_drips_keeps_no_rank() {
    let start = Instant::now();
    let job = Job { size: 2, ..Job::new("", &[0], SHORTEST) };
    let child = job.start(0);
    let dripping = drip(job.begin(&[7, 0]));
    let text = soon(child, start);
    assert!(text.contains("meeting the other ranks: rank 1 "), "{text}");
    dripping.join().unwrap();
}

/// Strangers that say nothing, or little, cost rank 0 no threads and a bounded number of
/// connections, and the job goes on.
#[test]
fn a_flood_of_silent_strangers_is_bounded() {
    let start = Instant::now();
    let job = Job::new("exchange", &[0, 1], LONG);
    let first = job.start(0);
    let dripping = drip(job.connect());
    // In portions that fit in the queue of connections: what does not is sent again a second later.
    let connect = |number: usize| {
        thread::sleep(Duration::from_millis(if number.is_multiple_of(40) { 20 } else { 0 }));
        job.connect()
    };
    let strangers: Vec<_> = (0..400).map(connect).collect();
    let of_first = |name: &str| format!("/proc/{}/{name}", first.id());
    let deadline = Instant::now() + Duration::from_secs(1);
    // Rank 0 has met all of them when no more are open than it keeps.
    let mut open = usize::MAX;
    while Instant::now() < deadline && !(250..300).contains(&open) {
        thread::sleep(Duration::from_millis(10));
        open = fs::read_dir(of_first("fd")).unwrap().count();
    }
    let status = fs::read_to_string(of_first("status")).unwrap();
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
    assert!(open < 300 && threads.trim().parse::<usize>().unwrap() < 16, "{open}, {threads}");
    assert_eq!(soon(job.start(1), start), "0 0");
    assert_eq!(soon(first, start), "1 0");
    drop(strangers);
    dripping.join().unwrap();
}

#[test]
fn another_version_and_a_rank_out_of_range_are_refused() {
    let start = Instant::now();
    let job = Job { size: 2, ..Job::new("", &[0], SHORTEST) };
    let first = job.start(0);
    let why = "bad message: its version is 1, and rank 0 has 2";
    assert!(all_of(job.introduce(1, 1)).contains(why));
    let text = soon(first, start);
    let expected = format!("in time; another process was refused: {why}");
    assert!(text.contains("rank 1 did not come to") && text.ends_with(&expected), "{text}");
    // All ranks get to know a rank that cannot be, at once.
    let start = Instant::now();
    let job = Job { size: 3, ..Job::new("", &[0, 1], LONG) };
    let children = [job.start(0), job.start(1)];
    thread::sleep(Duration::from_millis(300));
    let why = "there is no rank 9: the job has 3 ranks";
    assert!(all_of(job.introduce(VERSION, 9)).contains(why));
    for child in children {
        let text = soon(child, start);
        assert!(text.contains(why), "{text}");
    }
}

/// A rank that cannot be understood, or ends within a message, ends the wait of all others at once.
#[test]
fn a_huge_length_and_half_a_message_end_all() {
    let huge = [[0; 8], (1_u64 << 63).to_le_bytes()].concat();
    let unknown = [&ADMITTED[..16], &[77, 0]].concat();
    for (bytes, expected) in [
        (&huge[..], "no message of its process: bad message: a body of 9223372036854775808"),
        (&unknown, "no message of its process: bad message: "),
        (&huge[..9], "its process has ended, or cannot be reached any more"),
    ] {
        let start = Instant::now();
        let job = Job { size: 2, ..Job::new("", &[0], LONG) };
        let child = job.start(0);
        let stream = job.begin(bytes);
        if bytes.len() < 16 {
            drop(stream);
        }
        let text = soon(child, start);
        assert!(text.contains(&format!("rank 1 failed: {expected}")), "{text}");
    }
}
