//! Reads the measurements of an H200 that the page shows: see `examples/excerpt.rs` and
//! `examples/traffic`.

use bench::csv::{self, Table};
use bench::{Row, Runs, recorded};
use linrec::kernels::Pass;

/// The bundle's runs that are shown here, forward and backward.
const SPEED: &[u8] = include_bytes!("../results/h200/speed.csv.gz");
/// Every run of `examples/traffic`: more kernels, and more element types.
const TIMES: &[u8] = include_bytes!("../results/h200/times.csv.gz");
/// The file with the counts of Nsight Compute.
const TRAFFIC: &str = "traffic.csv";
/// The file with the distances between the loads and stores of a tile in the machine code.
const SPANS: &str = "spans.csv";

/// Reads the bundle's runs of one pass.
///
/// # Errors
///
/// Returns an error if the record cannot be read.
pub fn speed(pass: Pass) -> lesson::Result<Runs> {
    Ok(csv::read::<Row>(&recorded::text(SPEED)?)?.iter().filter(|row| row.pass == pass).collect())
}

/// Reads the runs of `examples/traffic` of one pass and one element type, such as `f32`.
///
/// # Errors
///
/// Returns an error if the record cannot be read.
pub fn times(pass: Pass, element: &str) -> lesson::Result<Runs> {
    let is_it = |row: &&Row| row.pass == pass && row.element.to_string() == element;
    Ok(csv::read::<Row>(&recorded::text(TIMES)?)?.iter().filter(is_it).collect())
}

/// Returns a count of Nsight Compute in one launch: a number of the column `what`.
pub fn traffic(pass: Pass, engine: &str, what: &str) -> Option<f64> {
    cell(TRAFFIC, &[("direction", pass.name()), ("engine", engine)], what)
}

/// Returns the number of elements in each of these launches.
pub fn traffic_elements() -> f64 {
    let of = |what| cell(TRAFFIC, &[("direction", "forward"), ("engine", "roof")], what);
    of("num_seqs").unwrap_or(f64::NAN) * of("seq_len").unwrap_or(f64::NAN)
}

/// Returns a number about the machine code of an instance of `variable_stride.cu`, by its name in
/// the PTX.
pub fn span(kernel: &str, what: &str) -> Option<f64> {
    cell(SPANS, &[("kernel", kernel)], what)
}

/// Returns a number of the first row of a table that has the `wanted` words in these columns.
fn cell(file: &str, wanted: &[(&str, &str)], what: &str) -> Option<f64> {
    let csv = recorded::table(include_str!("../results/h200/tables.json"), file).ok()?;
    Table::read(&csv).ok()?.rows_with(wanted).next()?.number(what).ok()
}

#[cfg(test)]
mod tests {
    use super::{span, speed, times, traffic, traffic_elements};
    use ch08_reverse_and_backward::record::passes;
    use linrec::kernels::Pass;

    #[test]
    fn the_record_has_what_the_page_shows() {
        for pass in Pass::ALL {
            for engine in ["roof", "pipe:8x64:0", "pipe:8x64:1", "pipe:8x64:2", "pipe:4x128:0"] {
                assert!(speed(pass).unwrap().median(engine, 4096).is_some(), "{engine}");
                assert!(times(pass, "f32").unwrap().median(engine, 4096).is_some(), "{engine}");
                assert!(traffic(pass, engine, "dram_read").is_some(), "{engine}");
            }
        }
        assert_eq!(traffic_elements(), 13_200.0 * 4096.0);
        assert!(span("linrec_strides_8_64_true_false", "stores_span").is_some());
        assert!(traffic(Pass::Forward, "nothing", "dram_read").is_none());
    }

    /// Chapter 8 has an excerpt of these runs.
    #[test]
    fn chapter_8_shows_the_same_runs() {
        for pass in Pass::ALL {
            let (excerpt, all) = (passes(pass).unwrap(), times(pass, "f32").unwrap());
            for engine in ["roof", "pipe:4x128:0"] {
                let of = |runs: &bench::Runs| {
                    let median = runs.median(engine, 4096).unwrap();
                    (runs.count(engine, 4096), median.ms, median.gb_per_s)
                };
                assert_eq!(of(&excerpt), of(&all), "{engine}");
            }
        }
    }
}
