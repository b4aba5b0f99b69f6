//! The backward kernel with a planted mistake, and the cases that find it.

use ch07_pipe_kernel::PIPE;
use linrec::contract::{self, CoeffKind, Domain, suspect};
use linrec::device::KernelEngine;
use linrec::{Direction, Engine, Error, Options};
use ndarray::Array2;

/// The name of the mistake.
pub const NAME: &str = "unshifted_in_scan";

/// The verdict of the test contract on one kind of coefficients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The kind of coefficients.
    pub kind: CoeffKind,
    /// The number of its cases, and the number of failures.
    pub cases: (usize, usize),
}

/// Loads the broken kernel on the emulator, with its domain.
///
/// # Errors
///
/// Returns [`Error::Device`] if it is not shipped.
pub fn load() -> Result<(KernelEngine<f32>, Domain), Error> {
    suspect::load(&format!("broken/{NAME}"), PIPE)
}

/// Tries all cases of the test contract up to a length, and counts by kind.
pub fn by_kind(engine: &dyn Engine<f32>, domain: &Domain, max_len: usize) -> Vec<Verdict> {
    let verdict = |kind: CoeffKind| {
        let cases = contract::cases(domain.tile).into_iter();
        let cases: Vec<_> = cases
            .filter(|case| domain.contains(case) && case.coeffs == kind && case.seq_len <= max_len)
            .collect();
        let wrong = |case: &&contract::Case| contract::check::<f32>(engine, domain, case).is_err();
        Verdict { kind, cases: (cases.len(), cases.iter().filter(wrong).count()) }
    };
    CoeffKind::ALL.into_iter().map(verdict).collect()
}

/// Returns the largest relative errors of `engine`'s gradients against `other`, in `d_inputs` and
/// in `d_initial`, if all steps share one coefficient.
///
/// # Errors
///
/// Returns the engines' errors.
pub fn shared_coefficient(
    engine: &dyn Engine<f32>,
    other: &dyn Engine<f32>,
    seq_len: usize,
) -> Result<[f32; 2], Error> {
    let at = |l: usize| (l as f32 * 0.7).sin();
    let d_outputs = Array2::from_shape_fn((1, seq_len), |(_, l)| at(l));
    let coeffs = Array2::from_elem((1, seq_len), 0.99_f32);
    let options = Options { direction: Direction::Forward, ..Options::default() };
    let run = |engine: &dyn Engine<f32>| {
        engine.backward(d_outputs.view(), coeffs.view(), d_outputs.view(), &options)
    };
    let (mine, theirs) = (run(engine)?, run(other)?);
    let most = |values: &mut dyn Iterator<Item = (f32, f32)>| {
        values.map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f32::max)
    };
    let inputs = mine.d_inputs.iter().copied().zip(theirs.d_inputs.iter().copied());
    let initial = mine.d_initial.iter().copied().zip(theirs.d_initial.iter().copied());
    Ok([most(&mut { inputs }), most(&mut { initial })])
}
