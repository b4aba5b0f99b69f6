//! Fuzzes the PTX parser, or with `--execute` the machine that runs the accepted sources:
//! `cargo run -p simt-fuzz --example fuzz -- --execute --runs 10000000 --seed 1`. With `--programs
//! COUNT` it prints a module of random correct programs.

use std::collections::{BTreeMap, BTreeSet};
use std::panic;
use std::time::{Duration, Instant};

use simt_fuzz::execution::{self, Outcome};
use simt_fuzz::parser::{self, Random};
use simt_fuzz::programs::{self, Program, Writing};

/// An input that takes longer counts as a finding. Most inputs take 20 microseconds to parse, and
/// some hundred to execute.
const SLOW: Duration = Duration::from_secs(5);

fn main() {
    let (runs, seed) = (option("--runs", 1_000_000), option("--seed", 1));
    let programs = option("--programs", 0);
    if programs > 0 {
        let kernel = |seed| {
            let name = format!("program_{seed}");
            Program::new(seed).kernel(&name, &BTreeSet::new(), Writing::default())
        };
        let kernels: Vec<String> = (seed..seed + programs).map(kernel).collect();
        return print!("{}", programs::module(&kernels));
    }
    let mut random = Random(seed);
    if std::env::args().any(|argument| argument == "--execute") {
        let corpus = execution::corpus();
        fuzz(
            runs,
            || (execution::input(&corpus, &mut random), random.draw()),
            |input, seed| match execution::execute(input, &mut Random(seed)) {
                Outcome::Refused => "refused".to_string(),
                Outcome::Ran => "ran".to_string(),
                Outcome::Reported(kind) => format!("{kind:?}"),
            },
        );
    } else {
        let seeds = parser::corpus();
        fuzz(
            runs,
            || (parser::mutate(&seeds, &mut random), 0),
            |input, _| if parser::parse(input) { "accepted" } else { "refused" }.to_string(),
        );
    }
}

/// Runs inputs with their seeds, and counts the outcomes.
fn fuzz(
    runs: u64,
    mut input: impl FnMut() -> (Vec<u8>, u64),
    run: impl Fn(&[u8], u64) -> String + panic::RefUnwindSafe,
) {
    let (mut outcomes, mut bytes, mut findings) = (BTreeMap::new(), 0, 0);
    let start = Instant::now();
    for number in 0..runs {
        let (input, seed) = input();
        bytes += input.len();
        let begin = Instant::now();
        let result = panic::catch_unwind(|| run(&input, seed));
        if result.is_err() || begin.elapsed() > SLOW {
            findings += 1;
            let what = if result.is_err() { "panics" } else { "is slow" };
            println!("run {number}, seed {seed}, {what}:\n{}\n", String::from_utf8_lossy(&input));
        }
        *outcomes.entry(result.unwrap_or_else(|_| "panicked".to_string())).or_insert(0_u64) += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{runs} executions in {seconds:.0} s: {:.0} a second, {:.1} MB a second; {findings} findings; {outcomes:?}",
        runs as f64 / seconds,
        bytes as f64 / seconds / 1e6,
    );
    if findings > 0 {
        std::process::exit(1);
    }
}

fn option(name: &str, default: u64) -> u64 {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    arguments.next().map_or(default, |value| value.parse().expect("a number"))
}
