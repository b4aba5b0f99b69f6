//! Trains the networks that look for the ball under three cups, and records how often they find it.
//!
//! ```text
//! cargo run --release -p ch16-gallery --example state_tracking -- \
//!     --csv chapters/16-gallery/results/trained/cups.csv
//! ```

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{fs, thread};

use ch16_gallery::cups::training::{CONTESTANTS, Plan, right_after};
use clap::Parser;
use lesson::{Table, machine};

/// Trains all networks with every seed.
#[derive(Debug, Parser)]
struct Arguments {
    /// Path of the results
    #[arg(long)]
    csv: Option<PathBuf>,
    /// Seeds for each network
    #[arg(long, default_value_t = 3)]
    seeds: u64,
    /// Training steps
    #[arg(long, default_value_t = Plan::RECORDED.steps)]
    steps: usize,
}

/// The number of test sequences, and their length.
const TESTED: (usize, usize) = (2000, 256);

/// The numbers of swaps that the record contains.
const SWAPS: [usize; 15] = [1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 96, 128, 192, 256];

fn main() -> lesson::Result {
    let arguments = Arguments::parse();
    let plan = Plan { steps: arguments.steps, ..Plan::RECORDED };
    let runs: Vec<_> = CONTESTANTS
        .iter()
        .flat_map(|contestant| (0..arguments.seeds).map(move |seed| (contestant, seed)))
        .collect();
    let (next, results) = (AtomicUsize::new(0), Mutex::new(vec![Vec::new(); runs.len()]));
    let work = || -> Result<(), linrec::Error> {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(contestant, seed)) = runs.get(place) else { return Ok(()) };
            let (start, mut last) = (Instant::now(), f64::NAN);
            let network = plan.train(contestant.layers, seed, &mut |_, loss| last = loss)?;
            let right = right_after(&network, TESTED.0, TESTED.1)?;
            println!(
                "{}, seed {seed}: loss {last:.4}, right after 32, 64, 256 swaps: {:.3} {:.3} {:.3} ({:.0} s)",
                contestant.name,
                right[31],
                right[63],
                right[255],
                start.elapsed().as_secs_f64()
            );
            if let Ok(mut results) = results.lock() {
                results[place] = right;
            }
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(outcome) => outcome.map_err(lesson::Error::from),
            Err(_) => Err("a worker has panicked".into()),
        })
    })?;

    let mut table = Table::new(["date", "machine", "network", "seed", "swaps", "right"]);
    let results = results.into_inner().map_err(|_| "a worker has panicked")?;
    for ((contestant, seed), right) in runs.iter().zip(results) {
        for swaps in SWAPS {
            table.row([
                machine::date(),
                machine::describe(),
                contestant.name.to_owned(),
                seed.to_string(),
                swaps.to_string(),
                format!("{:.3}", right[swaps - 1]),
            ]);
        }
    }
    if let Some(path) = arguments.csv {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, table.to_csv())?;
    }
    Ok(())
}
