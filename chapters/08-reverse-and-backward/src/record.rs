//! The measurements of an H200 that the page shows: see `examples/excerpt.rs` and `examples/traffic`.

use ch07_pipe_kernel::measured::Runs;

/// Every run of the bundle that is shown here, forward and backward.
const SPEED: &str = include_str!("../results/h200/speed.csv");
/// Every run of `examples/traffic`: more kernels, and more element types.
const TIMES: &str = include_str!("../results/h200/times.csv");
/// What Nsight Compute counted.
const TRAFFIC: &str = include_str!("../results/h200/traffic.csv");
/// How far apart the loads and stores of a tile are in the machine code.
const SPANS: &str = include_str!("../results/h200/spans.csv");

/// Which way data flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Two arrays are read and one is written.
    Forward,
    /// Three and two.
    Backward,
}

impl Pass {
    /// Both.
    pub const BOTH: [Pass; 2] = [Pass::Forward, Pass::Backward];

    /// Its name in the record.
    pub fn name(self) -> &'static str {
        match self {
            Pass::Forward => "forward",
            Pass::Backward => "backward",
        }
    }

    /// How many arrays are moved.
    pub fn arrays(self) -> usize {
        match self {
            Pass::Forward => 3,
            Pass::Backward => 5,
        }
    }
}

/// The bundle's runs of one pass.
///
/// # Errors
///
/// A sentence, if the record cannot be read.
pub fn speed(pass: Pass) -> Result<Runs, String> {
    Runs::read(&lines_with(SPEED, &[("direction", pass.name())]))
}

/// The runs of `examples/traffic` of one pass and one element type: `f32`.
///
/// # Errors
///
/// A sentence, if the record cannot be read.
pub fn times(pass: Pass, element: &str) -> Result<Runs, String> {
    Runs::read(&lines_with(TIMES, &[("direction", pass.name()), ("element", element)]))
}

/// What Nsight Compute counted in one launch: a number of the column `what`.
pub fn traffic(pass: Pass, engine: &str, what: &str) -> Option<f64> {
    cell(TRAFFIC, &[("direction", pass.name()), ("engine", engine)], what)
}

/// The number of elements that were computed in each of these launches.
pub fn traffic_elements() -> f64 {
    let of = |what| cell(TRAFFIC, &[("direction", "forward"), ("engine", "roof")], what);
    of("num_seqs").unwrap_or(f64::NAN) * of("seq_len").unwrap_or(f64::NAN)
}

/// A number of the machine code of an instance of `variable_stride.cu`, by its name in the PTX.
pub fn span(kernel: &str, what: &str) -> Option<f64> {
    cell(SPANS, &[("kernel", kernel)], what)
}

/// The header and those lines of a table that have these words in these columns.
fn lines_with(csv: &str, wanted: &[(&str, &str)]) -> String {
    let mut lines = csv.lines();
    let header = lines.next().unwrap_or_default();
    let places: Vec<Option<usize>> = wanted.iter().map(|(name, _)| place(header, name)).collect();
    let kept = lines.filter(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        wanted.iter().zip(&places).all(|((_, word), place)| {
            place.and_then(|place| cells.get(place)).is_some_and(|cell| cell == word)
        })
    });
    [header].into_iter().chain(kept).map(|line| format!("{line}\n")).collect()
}

fn cell(csv: &str, wanted: &[(&str, &str)], what: &str) -> Option<f64> {
    let lines = lines_with(csv, wanted);
    let mut lines = lines.lines();
    let place = place(lines.next()?, what)?;
    lines.next()?.split(',').nth(place)?.parse().ok()
}

fn place(header: &str, name: &str) -> Option<usize> {
    header.split(',').position(|column| column == name)
}

#[cfg(test)]
mod tests {
    use super::{Pass, lines_with, span, speed, times, traffic, traffic_elements};

    #[test]
    fn lines_are_chosen_by_their_cells() {
        let csv = "a,b,c\n1,x,2\n3,y,4\n5,x,6\n";
        assert_eq!(lines_with(csv, &[("b", "x")]), "a,b,c\n1,x,2\n5,x,6\n");
        assert_eq!(lines_with(csv, &[("b", "x"), ("a", "5")]), "a,b,c\n5,x,6\n");
        assert_eq!(lines_with(csv, &[("d", "x")]), "a,b,c\n");
    }

    #[test]
    fn the_record_has_what_the_page_shows() {
        for pass in Pass::BOTH {
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
}
