//! Rounds of measurements: every engine runs once, in turn, on the same problem.

use std::time::Instant;

use linrec::Engine;
use linrec::Options;
use linrec::cpu::{Cpu, roof};
use linrec::kernels::Pass;
use ndarray::{ArrayView2, ArrayViewMut2};

use super::buffers::{Buffers, Problem};
use super::plain as by_loop;
use crate::median;

/// The engines, in the order in which they take turns: both [roofs](linrec::cpu::roof), the plain
/// loop, the library's engine.
pub const ENGINES: [&str; 4] = ["roof", "roof:streaming", "loop", "cpu"];

/// Returns the index of a problem's roof, the faster of the first two engines.
pub fn roof(rounds: &[Round]) -> usize {
    let seconds = |engine: usize| median(rounds.iter().map(|round| round[engine]));
    usize::from(seconds(1) < seconds(0))
}

/// The seconds that each engine took in a round.
pub type Round = [f64; ENGINES.len()];

/// The shortest sample in seconds. A run is repeated until the sample is this long, and the time is
/// divided by the number of repetitions.
const SHORTEST_SAMPLE: f64 = 2e-3;

/// Runs every engine `runs` times, in turn, after one round that warms up the caches.
///
/// # Errors
///
/// Returns the engine's own error.
pub fn rounds(
    problem: &Problem,
    buffers: &mut Buffers,
    cpu: &Cpu,
    runs: u32,
) -> lesson::Result<Vec<Round>> {
    let cpu = if problem.threads == 1 { cpu.clone().single_threaded() } else { cpu.clone() };
    let (plain, streaming) =
        (cpu.clone().streaming_beyond(usize::MAX), cpu.clone().streaming_beyond(0));
    let options = Options::default();
    let shape = (problem.num_seqs, problem.seq_len);
    let (loop_threads, row) = (problem.threads, problem.seq_len);

    let n = problem.elements();
    let given: Vec<&[f32]> = buffers.given.iter().map(|array| &array[..n]).collect();
    let mut results = buffers.results.iter_mut().map(|array| &mut array[..n]);
    match (buffers.pass, &given[..], results.next(), results.next()) {
        (Pass::Forward, &[x, c], Some(y), _) => time(runs, |engine| {
            match engine {
                "roof" => roof::forward(&plain, x, c, y),
                "roof:streaming" => roof::forward(&streaming, x, c, y),
                "loop" => by_loop::forward(loop_threads, row, x, c, y),
                _ => {
                    let outputs = ArrayViewMut2::from_shape(shape, &mut *y)?;
                    cpu.forward_into(rows(shape, x)?, rows(shape, c)?, &options, outputs)?;
                }
            }
            Ok(())
        }),
        (Pass::Backward, &[d_y, c, y], Some(d_x), Some(d_c)) => time(runs, |engine| {
            match engine {
                "roof" => roof::backward(&plain, [d_y, c, y], d_x, d_c),
                "roof:streaming" => roof::backward(&streaming, [d_y, c, y], d_x, d_c),
                "loop" => by_loop::backward(loop_threads, row, [d_y, c, y], d_x, d_c),
                _ => {
                    let d_inputs = ArrayViewMut2::from_shape(shape, &mut *d_x)?;
                    let d_coeffs = ArrayViewMut2::from_shape(shape, &mut *d_c)?;
                    cpu.backward_into(
                        rows(shape, d_y)?,
                        rows(shape, c)?,
                        rows(shape, y)?,
                        &options,
                        d_inputs,
                        d_coeffs,
                    )?;
                }
            }
            Ok(())
        }),
        _ => Err("the buffers do not belong to this pass".into()),
    }
}

fn rows(shape: (usize, usize), array: &[f32]) -> lesson::Result<ArrayView2<'_, f32>> {
    Ok(ArrayView2::from_shape(shape, array)?)
}

/// Times `runs` rounds of `work`, which runs the named engine once.
fn time(runs: u32, mut work: impl FnMut(&str) -> lesson::Result) -> lesson::Result<Vec<Round>> {
    let mut sample = |engine: usize, repeats: u32| -> lesson::Result<f64> {
        let start = Instant::now();
        for _ in 0..repeats {
            work(ENGINES[engine])?;
        }
        Ok(start.elapsed().as_secs_f64() / f64::from(repeats))
    };
    let mut repeats = [1; ENGINES.len()];
    for (engine, repeats) in repeats.iter_mut().enumerate() {
        // The first call finds cold caches; the second measures the duration of one call.
        sample(engine, 1)?;
        *repeats = (SHORTEST_SAMPLE / sample(engine, 1)?.max(1e-9)).ceil() as u32;
    }
    let mut rounds = vec![[0.0; ENGINES.len()]; runs as usize];
    for round in &mut rounds {
        for (engine, seconds) in round.iter_mut().enumerate() {
            *seconds = sample(engine, repeats[engine])?;
        }
    }
    Ok(rounds)
}
