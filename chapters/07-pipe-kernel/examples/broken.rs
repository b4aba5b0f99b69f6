//! Runs a pipe kernel with a planted mistake on the emulator and says what is found; without a name, lists them.
//!
//! ```text
//! cargo run --release -p ch07-pipe-kernel --example broken
//! cargo run --release -p ch07-pipe-kernel --example broken -- forgotten_between_tiles
//! ```

use std::process::ExitCode;

use ch07_pipe_kernel::suspect;

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        println!("Pipe kernels with one mistake each (the source marks it):");
        for name in suspect::names() {
            println!("  {name:<28} kernels/broken/{name}.cu");
        }
        return ExitCode::SUCCESS;
    };
    let name = name.trim_start_matches("kernels/").trim_start_matches("broken/");
    let name = name.trim_end_matches(".cu");
    let (engine, domain) = match suspect::load(name) {
        Ok(suspect) => suspect,
        Err(error) => {
            eprintln!("error: {error}; without a name all are listed");
            return ExitCode::from(2);
        }
    };
    println!("kernels/broken/{name}.cu, which should do what kernels/linrec_pipe.cu does");
    match suspect::examine(&engine, &domain) {
        Some(finding) => println!("{}:\n  {}", finding.case, finding.what),
        None => println!("nothing was found"),
    }
    ExitCode::SUCCESS
}
