//! Trains chapter 13's block with its scan on a device, fused and unfused, and prints the times:
//!
//! ```text
//! cargo run --release -p ch14-fused-scan --example train
//! ```
//!
//! The device is the best one of the machine: a GPU, or the emulator, whose time means nothing. The
//! processor computes the rest of the block in all cases.

use std::process::ExitCode;
use std::time::Instant;

use ch13_mamba::block::{Scanner, engine};
use ch13_mamba::on_device::Scan;
use ch13_mamba::training::Plan;
use ch14_fused_scan::training::Fused;
use clap::Parser;
use lesson::output::{self, println};
use linrec::device::{Choice, Device, Exponential};

/// Trains chapter 13's block with its scan on a device, fused and unfused.
#[derive(Parser)]
struct Cli {
    /// Number of training steps
    #[arg(long, default_value_t = 100)]
    steps: usize,
    /// Sequences per step
    #[arg(long, default_value_t = 16)]
    batch: usize,
    /// Seed of the training's random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    output::finish(run(&Cli::parse()))
}

fn run(cli: &Cli) -> lesson::Result {
    let device = Device::auto()?;
    let plan = Plan {
        steps: cli.steps,
        batch: cli.batch,
        every: cli.steps.max(1),
        ..Plan::of_the_chapter(true)
    };
    let tokens = cli.steps * cli.batch * plan.task.len();
    println!("{}, {} steps of {} sequences, {tokens} tokens", device.label(), cli.steps, cli.batch);
    println!("scan,s,tokens_per_s,right");
    let unfused = Scan::<f32>::new(&device, Choice::FastestShipped)?;
    let fused = Fused::new(&device, Exponential::Fast);
    timed("processor", &plan, &engine(), cli, tokens)?;
    timed("unfused", &plan, &unfused, cli, tokens)?;
    timed("fused", &plan, &fused, cli, tokens)
}

fn timed(
    name: &str,
    plan: &Plan,
    scanner: &impl Scanner<f32>,
    cli: &Cli,
    tokens: usize,
) -> lesson::Result {
    let start = Instant::now();
    let trained = plan.train_by(scanner, cli.seed, &|| ())?;
    let (s, right) = (start.elapsed().as_secs_f64(), trained.accuracy());
    println!("{name},{s:.2},{:.0},{right:.4}", tokens as f64 / s);
    Ok(())
}
