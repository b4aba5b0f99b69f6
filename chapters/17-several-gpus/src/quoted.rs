//! What was measured on several H200s: by programs that were written to find out whether this is worth building, and not
//! with this library.

use bench::csv::Table;

/// The measurements, with their source.
const TRIALS: &str = include_str!("../results/h200/trials.csv");
/// Those of this library, by `tour bench --group` or the bundle: none so far.
const RECORD: &str = include_str!("../results/h200/group.csv");

/// One of the measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// `link`, `time` or `efficiency`.
    pub what: String,
    /// Of what.
    pub case: String,
    /// On so many GPUs.
    pub gpus: usize,
    /// How much.
    pub value: f64,
    /// In what: `us`, `GB/s`, or `part` of the time that a GPU takes alone.
    pub unit: String,
}

/// All of them, in the order of the file.
///
/// # Errors
///
/// If the file cannot be read.
pub fn trials() -> Result<Vec<Trial>, Box<dyn std::error::Error + Send + Sync>> {
    let table = Table::read(TRIALS)?;
    let rows = table.rows().map(|row| {
        Ok(Trial {
            what: row.text("what")?.to_owned(),
            case: row.text("case")?.to_owned(),
            gpus: row.number("gpus")?,
            value: row.number("value")?,
            unit: row.text("unit")?.to_owned(),
        })
    });
    rows.collect()
}

/// How many measurements there are of this library.
///
/// # Errors
///
/// If the file cannot be read.
pub fn recorded() -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
    Ok(Table::read(RECORD)?.rows().count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linrec::device::Links;

    #[test]
    fn the_library_s_rule_has_the_links_that_were_measured() {
        let trials = trials().unwrap();
        let value =
            |case: &str| trials.iter().find(|trial| trial.case.starts_with(case)).unwrap().value;
        for (case, unit, taken) in [
            ("NCCL send and receive of 8 bytes", 1e-6, Links::H200.message),
            ("NCCL send and receive of 64 MiB", 1e9, Links::H200.link),
            ("NCCL all-gather", 1e-6, Links::H200.all_gather),
            ("store of a kernel", 1e-6, Links::H200.store),
        ] {
            assert!((value(case) * unit / taken - 1.0).abs() < 1e-9, "{case}");
        }
    }

    #[test]
    fn every_measurement_says_where_it_is_from() {
        let table = Table::read(TRIALS).unwrap();
        for row in table.rows() {
            assert!(
                ["date", "machine", "source"]
                    .iter()
                    .all(|column| !row.get(column).unwrap().is_empty())
            );
        }
        assert_eq!(recorded().unwrap(), 0);
    }
}
