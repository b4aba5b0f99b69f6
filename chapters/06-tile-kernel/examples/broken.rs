//! Runs a tile kernel with a planted mistake on the emulator and says what is found; without a name, lists them.
//!
//! ```text
//! cargo run --release -p ch06-tile-kernel --example broken
//! cargo run --release -p ch06-tile-kernel --example broken -- zero_for_missing_coefficients
//! ```

use std::process::ExitCode;

use ch06_tile_kernel::suspect;

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        println!("Tile kernels with one mistake each (the source marks it); name one:");
        suspect::names().for_each(|name| println!("  {name:<34} kernels/broken/{name}.cu"));
        return ExitCode::SUCCESS;
    };
    match suspect::examine(&format!("broken/{name}")) {
        Ok(Some(finding)) => println!("{}:\n  {}", finding.case, finding.what),
        Ok(None) => println!("nothing was found"),
        Err(error) => {
            eprintln!("error: {error}; without a name all are listed");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
