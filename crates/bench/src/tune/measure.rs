//! Measures shape by shape, with all configurations in turns.

use std::sync::Arc;

use lesson::output::println;
use linrec::device::{Device, Recurrence, Storage};
use linrec::kernels::Pass;

use super::{Settings, Trouble};
use crate::field::{self, Field, Roof, Runner};
use crate::log::Log;
use crate::row::{Measured, Row};
use crate::turns::{in_turns, runs_of};
use crate::{bytes, median};

/// Measures everything that the log lacks.
pub fn all<S: Storage>(
    device: &Device,
    settings: &Settings,
    candidates: Vec<Recurrence<S>>,
    log: &mut Log,
    trouble: &mut Vec<Trouble>,
) -> lesson::Result {
    let default = 100 * device.attributes().multiprocessors as usize;
    let numbers: Vec<usize> = match settings.sequences.is_empty() {
        true => vec![default],
        false => settings.sequences.iter().map(|&number| number as usize).collect(),
    };
    let lengths = settings.lengths();
    let (free, _) = device.memory()?;
    // Five arrays, with a tenth of the memory left for everything else.
    let most = (free as usize / 10 * 9 / 5) / S::ELEMENT.bytes();
    let shapes = numbers.iter().flat_map(|&n| lengths.iter().map(move |&len| (n, len)));
    let (shapes, too_large): (Vec<_>, Vec<_>) =
        shapes.partition(|&(num_seqs, seq_len)| num_seqs.saturating_mul(seq_len) <= most);
    for (num_seqs, seq_len) in too_large {
        println!("{num_seqs} sequences of {seq_len} do not fit into the memory that is free.");
    }
    let Some(largest) = shapes.iter().map(|&(num_seqs, seq_len)| num_seqs * seq_len).max() else {
        return Err("there is no shape to measure".into());
    };

    let wanted = super::wanted(S::ELEMENT);
    let mut jobs = Vec::new();
    for pass in Pass::ALL {
        for &shape in &shapes {
            let runs =
                runs_of(settings.runs as usize, bytes(pass, shape.0 * shape.1, S::ELEMENT.bytes()));
            let mut todo = Vec::new();
            for recurrence in &candidates {
                let choice = recurrence.kernel(pass, shape, true)?;
                if !wanted(choice, shape.1)
                    || log.has(S::ELEMENT, pass, &choice.to_string(), shape, runs)
                {
                    continue;
                }
                match field::refused(recurrence, pass, shape)? {
                    None => todo.push(recurrence.clone()),
                    Some(why) => {
                        trouble.push(Trouble { choice, pass: Some(pass), why, is_wrong: false });
                    }
                }
            }
            if !todo.is_empty() {
                jobs.push((pass, shape, runs, todo));
            }
        }
    }
    if jobs.is_empty() {
        return Ok(());
    }
    let mut field = Field::<S>::new(device, largest)?;
    let steps = jobs.iter().map(|(_, _, runs, todo)| (runs + 1) * todo.len()).sum();
    let progress = lesson::progress(steps, "measuring");
    for (pass, shape, runs, todo) in jobs {
        progress.set_message(format!("{} at {}", pass.name(), shape.1));
        let kernels = todo.into_iter().map(|kernel| Runner::Kernel(Arc::new(kernel)));
        let runners: Vec<Runner<S>> =
            [Runner::Roof(Roof::Vectors), Runner::Empty].into_iter().chain(kernels).collect();
        let times = in_turns(runners.len(), runs, |place| {
            progress.inc(u64::from(matches!(runners[place], Runner::Kernel(_))));
            field.time_ms(&runners[place], pass, shape)
        })?;
        let roof = median(times[0].iter().copied());
        let measured = Measured { machine: device.name(), element: S::ELEMENT, pass, shape };
        let lines = runners.iter().zip(times).map(|(runner, runs)| {
            let ms = median(runs.iter().copied());
            Row { runs, ..measured.row(&runner.name(), ms, roof) }
        });
        log.append(lines.collect())?;
    }
    progress.finish_and_clear();
    Ok(())
}
