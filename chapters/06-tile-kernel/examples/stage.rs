//! Runs one stage of the kernel, and shows what it leaves undone.
//!
//! ```text
//! cargo run --release -p ch06-tile-kernel --example stage -- ALGOCODE [LENGTH] [COEFFICIENT]
//! cargo run --release -p ch06-tile-kernel --example stage -- 2 1000 0.99
//! ```

use std::process::ExitCode;

use ch06_tile_kernel::layout::shares;
use ch06_tile_kernel::levels::LANES;
use ch06_tile_kernel::stages::{self, CHOICE, STAGES};
use lesson::Table;
use lesson::output::{self, println};
use linrec::device::Device;
use linrec::kernels::{Algocode, ElementType, Pass};
use ndarray::Array2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: stage ALGOCODE [LENGTH] [COEFFICIENT], for example: stage 2 1000 0.99";
    output::finish(show(&arguments).map_err(|error| format!("{error}\n{usage}")))
}

fn show(arguments: &[String]) -> lesson::Result {
    let argument = |index: usize, default: &str| {
        arguments.get(index).cloned().unwrap_or_else(|| default.to_owned())
    };
    let algocode = Algocode::from_code(argument(0, "3").parse()?);
    let algocode = algocode.ok_or("algocode is 0, 1, 2 or 3")?;
    let (seq_len, coeff): (usize, f32) =
        (argument(1, "1000").parse()?, argument(2, "0.99").parse()?);
    let level = STAGES[algocode.code() as usize];
    let (inputs, coeffs) = (Array2::ones((1, seq_len)), Array2::from_elem((1, seq_len), coeff));
    let run = |algocode| stages::outputs(&Device::simt(), algocode, inputs.view(), coeffs.view());
    let (outputs, right) = (run(algocode)?, run(Algocode::Block)?);

    println!("{}, last level: {level}", stages::stage(algocode));
    println!("{seq_len} steps, inputs 1, coefficients {coeff}; some steps around the borders:\n");
    let threads =
        CHOICE.geometry(ElementType::F32, Pass::Forward, 1, seq_len as u64).threads as usize;
    let mut table = Table::new(["step", "thread", "warp", "output", "with all levels", "missing"]);
    for (thread, share) in shares(seq_len, threads).into_iter().enumerate() {
        // Prints only the first threads and the threads on both sides of a warp's border.
        if thread > 2 && (1..LANES - 1).contains(&(thread % LANES)) {
            continue;
        }
        for step in share.steps() {
            let (output, right) = (outputs[[0, step]], right[[0, step]]);
            table.row([
                step.to_string(),
                thread.to_string(),
                (thread / LANES).to_string(),
                output.to_string(),
                right.to_string(),
                (right - output).to_string(),
            ]);
        }
    }
    println!("{}", table.to_text().trim_end());
    Ok(())
}
