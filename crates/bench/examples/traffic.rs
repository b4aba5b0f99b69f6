//! Makes `traffic.csv` from the output of Nsight Compute: the traffic between the L1 caches, the L2
//! cache and the memory for each kernel, and how busy they are. On the machine with the GPU (`race`
//! is an example of this package; its first kernel in every round is the roof):
//!
//! ```text
//! ncu --csv --page raw --print-units base --clock-control none \
//!     --kernel-name 'regex:linrec|elementwise' --section MemoryWorkloadAnalysis \
//!     --section MemoryWorkloadAnalysis_Tables --section SpeedOfLight --section Occupancy \
//!     race --kernels pipe:4x128:0 --lengths 4096 --passes forward --runs 1 >one.csv
//! ```
//!
//! Then, with all these files:
//!
//! ```text
//! cargo run -p bench --example traffic -- chapters/07-pipe-kernel/results/h200/traffic.csv one.csv
//! cargo xtask pack chapters/07-pipe-kernel/results/h200
//! ```

use std::path::Path;
use std::process::ExitCode;

use bench::{ncu, read, write};
use lesson::output::{self, eprintln};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((table, files)) = arguments.split_first().filter(|(_, files)| !files.is_empty())
    else {
        eprintln!("usage: traffic TABLE FILE...");
        return ExitCode::from(2);
    };
    output::finish(make(table, files))
}

fn make(table: &str, files: &[String]) -> lesson::Result {
    let texts: lesson::Result<Vec<String>> =
        files.iter().map(|file| read(Path::new(file))).collect();
    write(Path::new(table), &ncu::by_shape(texts?.iter().map(String::as_str))?)
}
