//! Runs a kernel with a planted mistake on the emulator and says what is found; without a name, lists them.
//!
//! ```text
//! cargo run --release -p ch05-ref-kernel --example broken
//! cargo run --release -p ch05-ref-kernel --example broken -- lost_carry
//! ```

use std::process::ExitCode;

use ch05_ref_kernel::Suspect;

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        println!(
            "Kernels with one mistake each (the source marks it); name one to see what is found:"
        );
        for name in Suspect::names() {
            println!("  {name:<34} kernels/broken/{name}.cu");
        }
        return ExitCode::SUCCESS;
    };
    let name = name.trim_start_matches("kernels/").trim_start_matches("broken/");
    let suspect = match Suspect::new(name.trim_end_matches(".cu")) {
        Ok(suspect) => suspect,
        Err(error) => {
            eprintln!("error: {error}; without a name all are listed");
            return ExitCode::from(2);
        }
    };
    let [file, twin] = suspect.files();
    println!("{file}, which should do what {twin} does");
    match suspect.examine() {
        Some(finding) => println!("{}:\n  {}", finding.case, finding.what),
        None => println!("nothing was found"),
    }
    ExitCode::SUCCESS
}
