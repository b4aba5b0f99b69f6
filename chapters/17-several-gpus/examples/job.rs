//! One process of a job over several devices, started by torchrun, srun, mpirun or by hand.
//!
//! Each process makes its own stretch of the rows. No process has all of them.

use std::process::ExitCode;

use linrec::Error;
use linrec::device::{ForwardOptions, Group, GroupRecurrence, Rank, Split};

/// The number of rows, and of each row's steps over all ranks.
const SHAPE: (usize, usize) = (264, 1 << 14);

fn main() -> ExitCode {
    match job() {
        Ok(lines) => println!("{lines}"),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

// ANCHOR: job
fn job() -> Result<String, Error> {
    let group = Group::from_environment()?;
    let lines = group.run(|rank| {
        let recurrence = GroupRecurrence::<f32>::new(rank, Split::Steps);
        let part = recurrence.part(SHAPE)?;
        let inputs = rank.device().upload(&vec![1.0; part.len()])?;
        let coeffs = rank.device().upload(&vec![0.999; part.len()])?;
        let mut outputs = rank.device().allocate(part.len())?;
        let mut last = rank.device().allocate(SHAPE.0)?;
        let options = ForwardOptions { final_state: Some(&mut last), ..Default::default() };
        recurrence.forward_into(&inputs, &coeffs, &mut outputs, SHAPE, options)?;
        Ok(line(rank, part.steps.len(), &last.download()?))
    })?;
    Ok(lines.concat())
}
// ANCHOR_END: job

fn line(rank: &Rank, steps: usize, last: &[f32]) -> String {
    let (number, size, device) = (rank.number(), rank.size(), rank.device().label());
    format!(
        "rank {number} of {size} on {device}: {steps} steps of each row, last state {}",
        last[0]
    )
}
