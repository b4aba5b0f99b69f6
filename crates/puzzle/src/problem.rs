//! The inputs of a kernel and its expected results, with the bound that is derived for them.

use bytemuck::Pod;
use linrec::contract::{Case, Domain};
use linrec::reference::{self, Rounding};
use linrec::{Element, Error, Options};
use ndarray::{Array, Array2, ArrayView2, Dimension};
use serde::Deserialize;

/// The function that a kernel computes, and the cases that it accepts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Problem {
    pub(crate) computes: Computes,
    /// The names of its arguments, in their order.
    pub(crate) arguments: Vec<String>,
    /// The length of the longest sequence that it accepts.
    pub(crate) max_len: usize,
    /// The number of which every length must be a multiple.
    #[serde(default = "one")]
    pub(crate) multiple_of: usize,
    /// The largest number of sequences.
    #[serde(default = "many")]
    pub(crate) max_seqs: usize,
    /// A length at which the kernel changes its behaviour.
    #[serde(default = "tile")]
    pub(crate) tile: usize,
    /// Numbers of sequences and lengths in addition to the table.
    #[serde(default)]
    pub(crate) sizes: Vec<[usize; 2]>,
}

fn one() -> usize {
    1
}

fn many() -> usize {
    usize::MAX
}

fn tile() -> usize {
    64
}

/// The function that a kernel computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Computes {
    /// The sum of inputs and coefficients.
    Sum,
    /// The recurrence.
    Recurrence,
    /// Its gradients with respect to inputs and coefficients.
    Gradients,
    /// The gradients of complex numbers, by the convention with conjugated factors.
    ComplexGradients,
    /// The sum of the states of eight recurrences with constant coefficients.
    States,
}

/// The number of states of [`Computes::States`].
const STATES: usize = 8;

/// The arrays of a case: inputs by name, and expected results.
pub(crate) struct Arrays<T: Element> {
    pub(crate) given: Vec<(&'static str, Vec<T>)>,
    pub(crate) wanted: Vec<Wanted<T>>,
}

/// An expected result.
pub(crate) struct Wanted<T: Element> {
    pub(crate) name: &'static str,
    pub(crate) exact: Vec<T::Wide>,
    pub(crate) bound: Vec<f64>,
    /// The length of a row; `None` for an array without rows.
    columns: Option<usize>,
}

impl<T: Element + Pod> Wanted<T> {
    fn new<D: Dimension>(
        name: &'static str,
        exact: Array<T::Wide, D>,
        bound: Array<f64, D>,
    ) -> Wanted<T> {
        let columns = exact.shape().get(1).copied();
        let (exact, bound) = (exact.into_iter().collect(), bound.into_iter().collect());
        Wanted { name, exact, bound, columns }
    }

    /// Returns the largest error in units of its bound, or describes the first wrong element.
    pub(crate) fn judge(&self, got: &[T]) -> Result<f64, String> {
        let mut worst = 0.0_f64;
        for (number, ((&got, &exact), &bound)) in
            got.iter().zip(&self.exact).zip(&self.bound).enumerate()
        {
            let error = (got.widen() - exact).modulus();
            // Written so that NaN fails.
            if error <= bound {
                worst = if error > 0.0 { worst.max(error / bound) } else { worst };
                continue;
            }
            let place = self.place(number);
            // At first all bits of an array for results are ones, which is a NaN.
            let untouched = bytemuck::bytes_of(&got).iter().all(|&byte| byte == 0xFF);
            return Err(if untouched {
                format!("nothing is written to {place}")
            } else if error.is_nan() {
                format!("{place} is {got} instead of {exact:.6}")
            } else {
                format!(
                    "{place} is {got} instead of {exact:.6}: off by {error:.1e}, where rounding may be {bound:.1e}"
                )
            });
        }
        Ok(worst)
    }

    fn place(&self, number: usize) -> String {
        match self.columns {
            Some(columns) => {
                format!("{}[{}, {}]", self.name, number / columns.max(1), number % columns.max(1))
            }
            None => format!("{}[{number}]", self.name),
        }
    }
}

/// Returns the arrays of a case of real numbers.
pub(crate) fn real(computes: Computes, case: &Case) -> Result<Arrays<f32>, Error> {
    match computes {
        Computes::Sum => Ok(sum(case)),
        Computes::States => states(case),
        Computes::Recurrence => recurrence(case),
        Computes::Gradients | Computes::ComplexGradients => gradients(case),
    }
}

fn rounding(seq_len: usize) -> Rounding {
    Rounding { levels: Domain::tree_levels(seq_len), exp_ulps: 0.0 }
}

fn values<T: Element>(array: ArrayView2<T>) -> Vec<T> {
    array.iter().copied().collect()
}

fn sum(case: &Case) -> Arrays<f32> {
    let data = case.data::<f32>();
    let (inputs, coeffs) = (data.inputs.view(), data.coeffs());
    let exact = inputs.mapv(f64::from) + coeffs.mapv(f64::from);
    // One rounding.
    let bound = exact.mapv(|sum| f32::UNIT_ROUNDOFF * sum.abs());
    Arrays {
        given: vec![("inputs", values(inputs)), ("coeffs", values(coeffs))],
        wanted: vec![Wanted::new("outputs", exact.into_flat(), bound.into_flat())],
    }
}

fn recurrence(case: &Case) -> Result<Arrays<f32>, Error> {
    let data = case.data::<f32>();
    let (inputs, coeffs) = (data.inputs.view(), data.coeffs());
    let exact = reference::forward(inputs, coeffs, &data.options)?;
    let bound = reference::forward_bound(inputs, coeffs, &data.options, rounding(case.seq_len))?;
    Ok(Arrays {
        given: vec![("inputs", values(inputs)), ("coeffs", values(coeffs))],
        wanted: vec![
            Wanted::new("outputs", exact.outputs, bound.outputs),
            Wanted::new("final_state", exact.final_state, bound.final_state),
        ],
    })
}

/// Returns the arrays of the backward pass. One of the inputs is the outputs of the forward pass,
/// which are the outputs of the reference, rounded to `T`.
///
/// No gradient depends on the coefficient of a sequence's first step. In all sequences but the
/// first it is NaN, so that a kernel that reads past the end of the previous sequence gives NaN.
pub(crate) fn gradients<T: Element + Pod>(case: &Case) -> Result<Arrays<T>, Error> {
    let data = case.data::<T>();
    let (coeffs, d_outputs) = (data.coeffs(), data.d_outputs.view());
    let outputs =
        reference::forward(data.inputs.view(), coeffs, &data.options)?.outputs.mapv(T::narrow);
    let exact = reference::backward(d_outputs, coeffs, outputs.view(), &data.options)?;
    let bound = reference::backward_bound(
        d_outputs,
        coeffs,
        outputs.view(),
        &data.options,
        rounding(case.seq_len),
    )?;
    let mut given = values(coeffs);
    for first in given.chunks_mut(case.seq_len).skip(1).filter_map(<[T]>::first_mut) {
        bytemuck::bytes_of_mut(first).fill(0xFF);
    }
    Ok(Arrays {
        given: vec![
            ("d_outputs", values(d_outputs)),
            ("coeffs", given),
            ("outputs", values(outputs.view())),
        ],
        wanted: vec![
            Wanted::new("d_inputs", exact.d_inputs, bound.d_inputs),
            Wanted::new("d_coeffs", exact.d_coeffs, bound.d_coeffs),
        ],
    })
}

/// Returns the arrays of the sum of states. The bound of an output adds the bounds of the states
/// to the bound of the sum's rounding: each state takes part in at most `STATES` additions.
fn states(case: &Case) -> Result<Arrays<f32>, Error> {
    let data = case.data::<f32>();
    let inputs = data.inputs.view();
    let decays = Case { seq_len: STATES, ..case.clone() }.data::<f32>();
    let decays = decays.coeffs();
    let shape = inputs.dim();
    let (mut exact, mut bound) = (Array2::zeros(shape), Array2::zeros(shape));
    let additions = STATES as f64 * (f32::UNIT_ROUNDOFF + f64::UNIT_ROUNDOFF);
    let additions = additions / (1.0 - additions);
    for state in 0..STATES {
        let coeffs = Array2::from_shape_fn(shape, |(row, _)| decays[[row, state]]);
        let options = Options::default();
        let own = reference::forward(inputs, coeffs.view(), &options)?.outputs;
        let error = reference::forward_bound(inputs, coeffs.view(), &options, rounding(1))?.outputs;
        bound = bound + &error + (own.mapv(f64::abs) + &error) * additions;
        exact += &own;
    }
    Ok(Arrays {
        given: vec![("inputs", values(inputs)), ("coeffs", values(decays))],
        wanted: vec![Wanted::new("outputs", exact, bound)],
    })
}
