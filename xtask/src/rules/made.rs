//! The rule that nothing generated is tracked uncompressed.

use fs_err::{self as fs, File};
use std::io::Read;
use std::path::Path;

use anyhow::Result;

use super::repository::fault;
use crate::failure::Failure;

/// The exceptions: the beginning of a path, and the reason.
const AS_IT_IS: [(&str, &str); 8] = [
    ("chapters/05-ref-kernel/src/columns.ptx", "written by hand, and shown by the page"),
    ("crates/bench/src/empty.ptx", "written by hand, a few lines"),
    ("emulator/cli/tests/suite/kernels.ptx", "written by hand"),
    ("emulator/foreign/kernels.csv", "a list that people write and compare by lines"),
    ("emulator/simt/tests/cases/", "tests that people write"),
    (
        "emulator/simt/tests/data/",
        "what other compilers made, read by people who mend the emulator",
    ),
    ("src/kernels/tuned.csv", "compiled into the library, and compared by lines after tuning"),
    ("xtask/theme/live/example.ptx", "the example that a reader of the book edits"),
];

const COMPRESSED: [&str; 10] =
    ["br", "gz", "jpg", "npz", "png", "webp", "woff2", "xz", "zip", "zst"];

/// The files that should be compressed.
pub fn faults(root: &Path, files: &[String]) -> Result<Vec<Failure>> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| !AS_IT_IS.iter().any(|(path, _)| file.starts_with(path)))
    {
        let extension = Path::new(file).extension().unwrap_or_default().to_string_lossy();
        let bytes = fs::metadata(root.join(file))?.len();
        let what = match &*extension {
            "ptx" => "PTX belongs into an archive",
            "wasm" => "a module is tracked compressed",
            "csv" if bytes > 60_000 => "a table of more than 60 KB is tracked compressed",
            known if COMPRESSED.contains(&known) || bytes <= 100_000 => continue,
            _ if is_text(&root.join(file))? => continue,
            _ => "more than 100 KB that are not text are tracked compressed",
        };
        faults.push(fault(
            file,
            None,
            format!("{what}, or named in xtask/src/rules/made.rs with a reason"),
        ));
    }
    Ok(faults)
}

fn is_text(path: &Path) -> Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(8000).read_to_end(&mut start)?;
    Ok(!start.contains(&0))
}
