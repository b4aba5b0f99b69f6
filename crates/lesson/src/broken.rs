//! The command-line program of a chapter that lists kernels with a planted mistake and reports the
//! mistake that is found in one of them.

use std::process::ExitCode;

use linrec::Error;
use linrec::contract::suspect::{self, Finding};

use crate::output::{self, eprintln, println};

/// The `main` function of such a program.
///
/// `twins` are the correct kernels (`linrec_tile.cu`); every broken kernel is a copy of a twin with
/// one mistake. The broken kernel that the command line names is passed to `examine`. Without a
/// name, the program lists all of them.
pub fn main(
    twins: &[&str],
    examine: impl FnOnce(&str) -> Result<Option<Finding>, Error>,
) -> ExitCode {
    let mut broken: Vec<_> =
        twins.iter().flat_map(|twin| suspect::names(twin).map(move |name| (name, twin))).collect();
    broken.sort_unstable();
    let Some(requested) = std::env::args().nth(1) else {
        println!("Kernels with one mistake each; name one to see what is found:");
        for (name, _) in broken {
            println!("  {name}");
        }
        return output::end(ExitCode::SUCCESS);
    };
    let name = requested.trim_start_matches("kernels/").trim_start_matches("broken/");
    let name = name.trim_end_matches(".cu");
    let Some((_, twin)) = broken.into_iter().find(|(broken, _)| *broken == name) else {
        eprintln!(
            "error: there is no broken kernel `{requested}` here; run without a name to list all"
        );
        return ExitCode::from(2);
    };
    println!("broken/{name}.cu, which should do what kernels/{twin} does");
    println!("(`cargo xtask ptx --show broken/{name}.cu` prints it and marks the mistake)");
    match examine(name) {
        Ok(Some(finding)) => println!("{}:\n  {}", finding.case, finding.what),
        Ok(None) => println!("nothing was found"),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    output::end(ExitCode::SUCCESS)
}
