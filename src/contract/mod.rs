//! One table of cases that every engine must pass, and the judge that holds it to the bound.
//!
//! ```
//! use linrec::contract::{self, Domain};
//!
//! let domain = Domain { max_len: 33, levels: Domain::tree_levels, ..Domain::default() };
//! let report = contract::run::<f32>(&linrec::cpu::Cpu::default(), &domain);
//! assert!(report.passed(), "{report}");
//! ```
//!
//! The oracle is the sequential loop in double precision, and the tolerance of every single result
//! is derived from the engine's order of evaluation ([`crate::reference`]). The cases ([`cases`])
//! are chosen so that near misses fail: coefficients near one, so that a lost carry shows; lengths
//! next to powers of two and to the engine's own tile; strided and reversed views; zeros, ones,
//! signs, growth and underflow. Tests run a part of the cases, [`Table::Quick`], whose
//! documentation lists what it leaves out. With `LINREC_CONTRACT=full` in the environment they run
//! all cases ([`Domain::as_asked`]). An engine that rounds in another way brings its own bound
//! ([`ErrorBound`], [`run_within`]).
//!
//! The judge is tested by planted mistakes: `tests/suite/mistakes.rs` and `tests/suite/broken`.

mod bound;
mod case;
mod domain;
pub mod golden;
mod report;
mod stored;
#[cfg(feature = "studies")]
pub mod suspect;
mod table;

pub use bound::ErrorBound;
pub use case::{Case, CoeffKind, Data, InputKind, Layout, cases};
pub use domain::Domain;
pub use report::{Failure, Report};
pub use stored::Stored;
pub use table::Table;

use std::panic::{self, AssertUnwindSafe};

use ndarray::{Array, Array2, ArrayView2, Dimension};
use rayon::prelude::*;

#[cfg(any(feature = "cuda", feature = "simt"))]
use crate::device::Storage;
use crate::reference;
use crate::{Direction, Element, Engine, Error, Gradients, Options, Outputs};

/// Runs every case of the table that is in the engine's domain: [`Domain::cases`].
pub fn run<T: Element>(engine: &dyn Engine<T>, domain: &Domain) -> Report {
    run_within(engine, domain, domain)
}

/// Runs every case of the table that is in the engine's domain, [`Domain::cases`], and judges the
/// results by `bound`.
///
/// This is for an engine that brings its own bound. The domain decides which cases are run, and
/// whether gradients and the last output are compared; its `levels` and `exp_ulps` are not used.
pub fn run_within<T: Element>(
    engine: &dyn Engine<T>,
    domain: &Domain,
    bound: &dyn ErrorBound<T>,
) -> Report {
    run_as(engine, domain, bound, T::NAME, &Stored::exactly())
}

/// Runs every case of the table that is in the domain of an engine whose arrays are stored as `S`,
/// which may have fewer bits than `S::Accum`.
///
/// The engine is given numbers that `S` holds exactly, and its results may be off by the rounding
/// to `S` as well.
#[cfg(any(feature = "cuda", feature = "simt"))]
pub fn run_stored<S: Storage>(engine: &dyn Engine<S::Accum>, domain: &Domain) -> Report {
    run_as(engine, domain, domain, S::ELEMENT.rust_name(), &Stored::as_in::<S>())
}

fn run_as<T: Element>(
    engine: &dyn Engine<T>,
    domain: &Domain,
    bound: &dyn ErrorBound<T>,
    element: &'static str,
    stored: &Stored<T>,
) -> Report {
    let judge = |case: &Case| T::judge(&Trial { engine, domain, bound, case, stored });
    let mut report = run_table(engine.name(), element, domain, &judge);
    report.add_failure("wrong shapes", unpanicked(|| wrong_shapes_are_errors(engine)));
    report
}

/// The part of a run that knows no type of elements: so it is compiled once.
fn run_table(
    engine: &str,
    element: &'static str,
    domain: &Domain,
    judge: &(dyn Fn(&Case) -> Result<f64, String> + Sync),
) -> Report {
    let mine = domain.cases();
    let outside =
        domain.table.cases(domain.tile).iter().filter(|case| domain.fitted(case).is_none()).count();
    let mut report = Report::new(engine, element, outside);
    let outcomes: Vec<_> = mine.par_iter().map(|case| unpanicked(|| judge(case))).collect();
    for (case, outcome) in mine.iter().zip(outcomes) {
        report.add(case, outcome);
    }
    report
}

/// Runs one case; returns the largest error in units of its bound, or a sentence about what went
/// wrong.
pub fn check<T: Element>(
    engine: &dyn Engine<T>,
    domain: &Domain,
    case: &Case,
) -> Result<f64, String> {
    check_within(engine, domain, domain, case)
}

/// Runs one case of an engine that brings its own bound; returns the largest error in units of
/// `bound`, or a sentence about what went wrong.
pub fn check_within<T: Element>(
    engine: &dyn Engine<T>,
    domain: &Domain,
    bound: &dyn ErrorBound<T>,
    case: &Case,
) -> Result<f64, String> {
    T::judge(&Trial { engine, domain, bound, case, stored: &Stored::exactly() })
}

/// An engine, a case, and what the engine is judged by.
#[doc(hidden)]
pub struct Trial<'a, T: Element> {
    engine: &'a dyn Engine<T>,
    domain: &'a Domain,
    bound: &'a dyn ErrorBound<T>,
    case: &'a Case,
    stored: &'a Stored<T>,
}

impl<T: Element> Trial<'_, T> {
    /// [`Element::judge`], which calls this for each type of elements.
    pub(crate) fn judge(&self) -> Result<f64, String> {
        self.worst().map_err(|Complaint(what)| what)
    }

    /// Returns the largest error in units of its bound.
    fn worst(&self) -> Result<f64, Complaint> {
        let Trial { engine, domain, bound, case, stored } = *self;
        let data: Data<T> = stored.data(case.data());
        let (inputs, coeffs) = (data.inputs.view(), data.coeffs());
        let exact = reference::forward(inputs, coeffs, &data.options)?;
        let mut limit = bound.forward_bound(inputs, coeffs, &data.options)?;
        widen(&mut limit.outputs, &exact.outputs, stored);
        let got = engine.forward(inputs, coeffs, &data.options)?;
        let mut worst = compare_outputs(&got, &exact, &limit)?;
        if domain.final_is_last {
            same_last_state(&got, data.options.direction, stored)?;
        }
        if domain.backward {
            // The outputs are the reference's, rounded, and not the engine's: so each pass is
            // judged by itself.
            let outputs = case.layout.apply(stored.array(exact.outputs.mapv(T::narrow)));
            let (d_outputs, outputs) = (data.d_outputs.view(), outputs.view());
            let exact = reference::backward(d_outputs, coeffs, outputs, &data.options)?;
            let mut limit = bound.backward_bound(d_outputs, coeffs, outputs, &data.options)?;
            widen(&mut limit.d_inputs, &exact.d_inputs, stored);
            widen(&mut limit.d_coeffs, &exact.d_coeffs, stored);
            let got = engine.backward(d_outputs, coeffs, outputs, &data.options)?;
            worst = worst.max(compare_gradients(&got, &exact, &limit)?);
        }
        Ok(worst)
    }
}

/// Adds the rounding of storage to the bounds of an array.
fn widen<T: Element>(bound: &mut Array2<f64>, exact: &Array2<T::Wide>, stored: &Stored<T>) {
    for (bound, exact) in bound.iter_mut().zip(exact) {
        *bound = stored.bound(exact.modulus(), *bound);
    }
}

/// Returns what `work` returns, or a failure if it panics, which no engine may do.
fn unpanicked<R>(work: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    // The engine is only read, and its results are dropped: nobody sees anything half-done.
    panic::catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(String::from("the engine panicked")))
}

/// A mismatch or an engine's error, as a sentence.
struct Complaint(String);

impl From<Error> for Complaint {
    fn from(error: Error) -> Self {
        Complaint(error.to_string())
    }
}

fn compare_outputs<T: Element>(
    got: &Outputs<T>,
    exact: &Outputs<T::Wide>,
    bound: &Outputs<f64>,
) -> Result<f64, Complaint> {
    let outputs = compare("outputs", &got.outputs, &exact.outputs, &bound.outputs)?;
    let state = compare("final_state", &got.final_state, &exact.final_state, &bound.final_state)?;
    Ok(outputs.max(state))
}

/// Checks that the final state is the last output, to the bit, or rounds to it when it is stored.
fn same_last_state<T: Element>(
    got: &Outputs<T>,
    direction: Direction,
    stored: &Stored<T>,
) -> Result<(), Complaint> {
    let seq_len = got.outputs.ncols();
    if seq_len == 0 {
        return Ok(()); // the final state is the initial one, and was compared with it
    }
    let last = got.outputs.column(direction.position(seq_len - 1, seq_len));
    for (row, (&state, &last)) in got.final_state.iter().zip(last).enumerate() {
        if stored.number(state) != last {
            return Err(Complaint(format!(
                "final_state[{row}] is {state}, and the last output {last}: they are one number"
            )));
        }
    }
    Ok(())
}

fn compare_gradients<T: Element>(
    got: &Gradients<T>,
    exact: &Gradients<T::Wide>,
    bound: &Gradients<f64>,
) -> Result<f64, Complaint> {
    let d_inputs = compare("d_inputs", &got.d_inputs, &exact.d_inputs, &bound.d_inputs)?;
    let d_coeffs = compare("d_coeffs", &got.d_coeffs, &exact.d_coeffs, &bound.d_coeffs)?;
    let d_initial = compare("d_initial", &got.d_initial, &exact.d_initial, &bound.d_initial)?;
    Ok(d_inputs.max(d_coeffs).max(d_initial))
}

/// The largest `|got − exact| / bound` of an array; an error if one exceeds 1 or is not a number.
fn compare<T: Element, D: Dimension>(
    name: &str,
    got: &Array<T, D>,
    exact: &Array<T::Wide, D>,
    bound: &Array<f64, D>,
) -> Result<f64, Complaint> {
    if got.shape() != exact.shape() {
        let (got, exact) = (got.shape(), exact.shape());
        return Err(Complaint(format!("{name} has shape {got:?} instead of {exact:?}")));
    }
    let mut worst = 0.0_f64;
    for ((index, got), (exact, &bound)) in got.indexed_iter().zip(exact.iter().zip(bound)) {
        let error = (got.widen() - *exact).modulus();
        // Written so that NaN fails.
        let within = error <= bound;
        if !within {
            return Err(Complaint(format!(
                "{name}{index:?} is {got} instead of {exact}: off by {error:.3e}, bound {bound:.3e}"
            )));
        }
        if error > 0.0 {
            worst = worst.max(error / bound);
        }
    }
    Ok(worst)
}

/// Checks that arrays which do not fit together give an error that names their shapes.
fn wrong_shapes_are_errors<T: Element>(engine: &dyn Engine<T>) -> Result<(), String> {
    let ones = |shape: (usize, usize)| Array2::<T>::ones(shape);
    let (three_by_four, three_by_five) = (ones((3, 4)), ones((3, 5)));
    let plain = Options::default();
    let wrong_initial =
        Options { initial: Some(ndarray::Array1::ones(2).into()), ..Options::default() };
    let (a, b): (ArrayView2<T>, ArrayView2<T>) = (three_by_four.view(), three_by_five.view());

    let complaints = [
        ("coeffs of another length", engine.forward(a, b, &plain).err()),
        ("an initial state of another length", engine.forward(a, a, &wrong_initial).err()),
        ("coeffs of another length, backward", engine.backward(a, b, a, &plain).err()),
        ("outputs of another length, backward", engine.backward(a, a, b, &plain).err()),
        ("a wrong initial state, backward", engine.backward(a, a, a, &wrong_initial).err()),
    ];
    for (what, error) in complaints {
        if !matches!(error, Some(Error::ShapeMismatch { .. })) {
            return Err(format!("{what} gave {error:?} instead of a shape mismatch"));
        }
    }
    Ok(())
}
