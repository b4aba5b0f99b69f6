//! Fuzzes the PTX parser: `cargo run -p linrec --example fuzz_parser -- --runs 10000000 --seed 1`.

#[path = "../fuzz/parser.rs"]
mod fuzz;

use std::panic;
use std::time::{Duration, Instant};

/// An input that takes longer counts as a finding; the usual one takes 20 microseconds.
const SLOW: Duration = Duration::from_secs(1);

fn main() {
    let (runs, seed) = (option("--runs", 1_000_000), option("--seed", 1));
    let seeds = fuzz::corpus();
    let mut random = fuzz::Random(seed);
    let (mut accepted, mut bytes, mut findings) = (0u64, 0usize, 0u64);
    let start = Instant::now();
    for run in 0..runs {
        let input = fuzz::mutate(&seeds, &mut random);
        bytes += input.len();
        let begin = Instant::now();
        let result = panic::catch_unwind(|| fuzz::parse(&input));
        if result.is_err() || begin.elapsed() > SLOW {
            findings += 1;
            let what = if result.is_err() { "panics" } else { "is slow" };
            println!("run {run} {what}:\n{}\n", String::from_utf8_lossy(&input));
        }
        accepted += u64::from(result.unwrap_or(false));
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{runs} executions from {} seeds in {seconds:.0} s: {:.0} a second, {:.1} MB a second; \
         {accepted} accepted, {findings} findings",
        seeds.len(),
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
