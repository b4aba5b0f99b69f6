//! Reads the measurements of an H200 that the page shows: see `examples/excerpt.rs`.

use bench::csv::{self, Table};
use bench::{Row, Runs, recorded};
use linrec::kernels::Pass;

/// The file with runs of the roof and of the pipe kernel, with 4 elements for each of 128 threads
/// and in both passes.
const PASSES: &str = "passes.csv";
/// The file that compares the bits of GPU and emulator.
const BITS: &str = "bits.csv";
const H200: &str = include_str!("../results/h200/tables.json");

/// Reads the runs of one pass.
///
/// # Errors
///
/// Returns an error if the record cannot be read.
pub fn passes(pass: Pass) -> lesson::Result<Runs> {
    let rows = csv::read::<Row>(&recorded::table(H200, PASSES)?)?;
    Ok(rows.iter().filter(|row| row.pass == pass).collect())
}

/// Returns how many numbers of an element type were compared with the emulator's, and how many of
/// them differed.
///
/// # Errors
///
/// Returns an error if the record cannot be read.
pub fn compared(element: &str) -> lesson::Result<(u64, u64)> {
    let table = Table::read(&recorded::table(H200, BITS)?)?;
    table.rows_with(&[("element", element)]).try_fold((0, 0), |(words, different), row| {
        Ok((words + row.number::<u64>("words")?, different + row.number::<u64>("different")?))
    })
}

#[cfg(test)]
mod tests {
    use super::{compared, passes};
    use linrec::kernels::Pass;

    #[test]
    fn the_record_has_what_the_page_shows() {
        for pass in Pass::ALL {
            for engine in ["roof", "pipe:4x128:0"] {
                assert!(passes(pass).unwrap().median(engine, 4096).is_some(), "{engine}");
            }
        }
        assert!(compared("f32").unwrap().0 > 0);
        assert_eq!(compared("nothing").unwrap(), (0, 0));
    }
}
