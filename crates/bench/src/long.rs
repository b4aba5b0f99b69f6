//! Measures ways to compute one sequence with a whole GPU against the roof.

use linrec::Error;
use linrec::device::Device;
use linrec::kernels::{ElementType, KernelChoice, Pass};

use crate::Row;
use crate::field::{Field, Roof, Runner};
use crate::row::{Baseline, Measured};
use crate::turns::runs_of;

/// The settings of the measurement.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Kernels of the library, each with the pass to measure.
    pub choices: Vec<(Pass, KernelChoice)>,
    /// The lengths of the sequence.
    pub lengths: Vec<usize>,
    /// The smallest number of measurements of each way.
    pub runs: usize,
}

/// Measures the library's kernels and `others` (forward only) over one sequence of `f32` at all
/// lengths, in turns with the roof, and returns every run. A way that does not support a length is
/// left out there.
///
/// # Errors
///
/// Returns an error if the device refuses or fails, or a kernel is not available.
pub fn measure(
    device: &Device,
    others: &[Runner<f32>],
    settings: &Settings,
) -> lesson::Result<Vec<Row>> {
    let Settings { choices, lengths, runs } = settings;
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut field = Field::<f32>::new(device, longest)?;
    let mut rows = Vec::new();
    let progress = lesson::progress(lengths.len(), "measuring");
    for &seq_len in lengths {
        for pass in Pass::ALL {
            let mut runners = vec![Runner::Roof(Roof::Vectors)];
            for &(_, choice) in choices.iter().filter(|(of, _)| *of == pass) {
                runners.push(Runner::kernel(device, choice)?);
            }
            if pass == Pass::Forward {
                runners.extend(others.iter().cloned());
            }
            let shape = (1, seq_len);
            let mut here = Vec::new();
            for runner in runners {
                match field.run(&runner, pass, shape) {
                    Ok(()) => here.push(runner),
                    Err(Error::Unsupported { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let measured =
                Measured { machine: device.name(), element: ElementType::F32, pass, shape };
            let runs = runs_of(*runs, measured.bytes());
            rows.extend(field.race(&measured, &here, runs, Baseline::Round)?);
        }
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
    fn ways_are_left_out_at_unsupported_lengths() {
        let pipe = KernelChoice::Pipe(Default::default());
        let choices = vec![(Pass::Forward, pipe), (Pass::Backward, pipe)];
        let settings = Settings { choices, lengths: vec![64, 256], runs: 1 };
        let rows = measure(&Device::simt(), &[twice("short", 100)], &settings).unwrap();
        let count = |engine: &str, pass: Pass, len: usize| {
            let is_it = |row: &&Row| (row.pass, row.seq_len) == (pass, len) && row.engine == engine;
            rows.iter().filter(is_it).count()
        };
        let pipe = pipe.to_string();
        for len in [64, 256] {
            for pass in Pass::ALL {
                assert_eq!([count("roof", pass, len), count(&pipe, pass, len)], [5, 5]);
            }
            assert_eq!(count("short", Pass::Forward, len), if len == 64 { 5 } else { 0 });
            assert_eq!(count("short", Pass::Backward, len), 0);
        }
    }
}
