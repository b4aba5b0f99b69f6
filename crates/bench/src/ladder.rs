//! Measures a ladder: the steps on the way to a kernel against the roof and kernels of the library.

use linrec::device::Device;
use linrec::kernels::{ElementType, KernelChoice, Pass, Query};

use crate::Row;
use crate::field::{Field, Roof, Runner};
use crate::row::{Baseline, Measured};
use crate::turns::runs_of;

/// A step.
#[derive(Debug, Clone)]
pub struct Step {
    /// The kernel of this step.
    pub kernel: Runner<f32>,
    /// The number of elements per tile.
    pub tile: usize,
}

/// The settings of the measurement.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Families of the library's kernels; the fastest configuration of each takes part, by the
    /// library's own rule.
    pub families: Vec<&'static str>,
    /// The lengths of the sequences.
    pub lengths: Vec<usize>,
    /// The number of sequences.
    pub num_seqs: usize,
    /// The smallest number of measurements of each kernel.
    pub runs: usize,
}

/// Measures all steps at all lengths, forward over `f32`, in turns with the roof, and returns every
/// run.
///
/// # Errors
///
/// Returns an error if the device refuses or fails, or a kernel is not available.
pub fn measure(device: &Device, steps: &[Step], settings: &Settings) -> lesson::Result<Vec<Row>> {
    let Settings { families, lengths, num_seqs, runs } = settings;
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut field = Field::<f32>::new(device, num_seqs * longest)?;
    let mut rows = Vec::new();
    let progress = lesson::progress(lengths.len(), "measuring");
    for &seq_len in lengths {
        let mut runners = vec![Runner::Roof(Roof::Vectors)];
        for family in families {
            let query = Query {
                element: ElementType::F32,
                pass: Pass::Forward,
                num_seqs: *num_seqs as u64,
                seq_len: seq_len as u64,
                whole: true,
                shipped_only: false,
            };
            if let Some(choice) = KernelChoice::best_named(family, query) {
                runners.push(Runner::kernel(device, choice)?);
            }
        }
        // A tile far longer than the row would only add idle threads.
        let here = steps.iter().filter(|step| step.tile <= (2 * seq_len).max(128));
        runners.extend(here.map(|step| step.kernel.clone()));
        let measured = Measured {
            machine: device.name(),
            element: ElementType::F32,
            pass: Pass::Forward,
            shape: (*num_seqs, seq_len),
        };
        let runs = runs_of(*runs, measured.bytes());
        rows.extend(field.race(&measured, &runners, runs, Baseline::Round)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::tests::twice;

    #[test]
    fn steps_run_unless_their_tiles_are_far_too_long() {
        let step = |name, tile| Step { kernel: twice(name, 512), tile };
        let steps = [step("short", 128), step("long", 1024)];
        let settings = Settings { families: vec![], lengths: vec![32, 512], num_seqs: 2, runs: 1 };
        let rows = measure(&Device::simt(), &steps, &settings).unwrap();
        let count = |engine: &str, len: usize| {
            let mine = |row: &&Row| row.engine.starts_with(engine) && row.seq_len == len;
            rows.iter().filter(mine).count()
        };
        for engine in ["roof", "short"] {
            assert_eq!([count(engine, 32), count(engine, 512)], [5, 5], "{engine}");
        }
        assert_eq!([count("long", 32), count("long", 512)], [0, 5]);
    }
}
