//! Golden data: results that other people's code computed once, in double precision.
//!
//! `tests/data/` holds NumPy archives made with PyTorch 2.11, whose autograd computed the
//! gradients: the blog post's own reference loop (`linrec_f64.npz`), and the same loop with complex
//! coefficients of modulus 0.9 to 1 (`complex_f64.npz`). They are compiled in, so that any program
//! can check itself.

use std::io::Cursor;

use ndarray::{Array, Array1, Array2, ArrayBase, Data, Dimension, Ix1, Ix2};
use ndarray_npy::{NpzReader, ReadNpzError, ReadableElement};
use num_complex::Complex;

use crate::{Direction, Element, Engine, Gradients, Options, Outputs};

/// One golden case: a problem and its solution.
#[derive(Debug, Clone)]
pub struct Golden<W> {
    /// The case's name in the archive, such as `L33_rev_signed`.
    pub name: String,
    /// `x`.
    pub inputs: Array2<W>,
    /// `c`.
    pub coeffs: Array2<W>,
    /// The loss's gradient with respect to the outputs.
    pub d_outputs: Array2<W>,
    /// The direction of the recurrence.
    pub direction: Direction,
    /// The state before the first step, if one was given.
    pub initial: Option<Array1<W>>,
    /// `y`.
    pub outputs: Array2<W>,
    /// The gradient with respect to the inputs.
    pub d_inputs: Array2<W>,
    /// The gradient with respect to the coefficients.
    pub d_coeffs: Array2<W>,
    /// The gradient with respect to the initial state, if one was given.
    pub d_initial: Option<Array1<W>>,
}

/// Reads the real cases: lengths 1 to 1000, both directions, gates, signed coefficients, initial
/// states.
///
/// # Errors
///
/// If the archive inside this program cannot be read.
pub fn real() -> Result<Vec<Golden<f64>>, ReadNpzError> {
    read(include_bytes!("../../tests/data/linrec_f64.npz"))
}

/// Reads the complex cases: lengths 1 to 300, forward, from zero.
///
/// # Errors
///
/// If the archive inside this program cannot be read.
pub fn complex() -> Result<Vec<Golden<Complex<f64>>>, ReadNpzError> {
    read(include_bytes!("../../tests/data/complex_f64.npz"))
}

/// Returns the distance of an engine from a golden case: the largest `max |a − b| / max |b|` of its
/// arrays.
///
/// The engine computes in `T`; the golden numbers are rounded to it first, so for `f32` the
/// difference includes that rounding.
///
/// # Errors
///
/// The errors of the engine.
pub fn distance<T: Element>(
    engine: &dyn Engine<T>,
    golden: &Golden<T::Wide>,
) -> Result<f64, crate::Error> {
    let narrow = |array: &Array2<T::Wide>| array.mapv(T::narrow);
    let options = golden.options_as::<T>();
    let (inputs, coeffs) = (narrow(&golden.inputs), narrow(&golden.coeffs));
    let Outputs { outputs, .. } = engine.forward(inputs.view(), coeffs.view(), &options)?;

    let (d_outputs, given) = (narrow(&golden.d_outputs), narrow(&golden.outputs));
    let Gradients { d_inputs, d_coeffs, d_initial } =
        engine.backward(d_outputs.view(), coeffs.view(), given.view(), &options)?;

    let mut worst = array_distance(&outputs, &golden.outputs)
        .max(array_distance(&d_inputs, &golden.d_inputs))
        .max(array_distance(&d_coeffs, &golden.d_coeffs));
    if let Some(expected) = &golden.d_initial {
        worst = worst.max(array_distance(&d_initial, expected));
    }
    Ok(worst)
}

impl<W> Golden<W> {
    /// Returns the options, rounded to the element type `T`.
    pub fn options_as<T: Element<Wide = W>>(&self) -> Options<'static, T>
    where
        W: Clone,
    {
        Options {
            direction: self.direction,
            initial: self.initial.as_ref().map(|y| y.map(|y| T::narrow(y.clone())).into()),
            log_coeffs: false,
        }
    }
}

/// Returns the distance of an array from the expected one: `max |a − b| / max |b|`, or infinity if
/// the array has a NaN or another shape.
pub fn array_distance<T: Element, D: Dimension>(
    got: &ArrayBase<impl Data<Elem = T>, D>,
    expected: &ArrayBase<impl Data<Elem = T::Wide>, D>,
) -> f64 {
    if got.shape() != expected.shape() {
        return f64::INFINITY;
    }
    let largest = expected.iter().fold(0.0, |m: f64, b| m.max(b.modulus()));
    let error = got.iter().zip(expected).fold(0.0, |m: f64, (a, b)| {
        let difference = (a.widen() - *b).modulus();
        if difference.is_nan() { f64::INFINITY } else { m.max(difference) }
    });
    if error == 0.0 { 0.0 } else { error / largest }
}

fn read<W: ReadableElement>(archive: &[u8]) -> Result<Vec<Golden<W>>, ReadNpzError> {
    let mut npz = NpzReader::new(Cursor::new(archive))?;
    let arrays = npz.names()?;
    let cases =
        arrays.iter().filter_map(|array| array.trim_end_matches(".npy").strip_suffix("_inputs"));
    let cases: Vec<_> = cases.filter(|name| !name.ends_with("_d")).map(str::to_owned).collect();
    cases.into_iter().map(|name| read_case(&mut npz, name, &arrays)).collect()
}

type Npz<'a> = NpzReader<Cursor<&'a [u8]>>;

fn read_case<W: ReadableElement>(
    npz: &mut Npz,
    name: String,
    arrays: &[String],
) -> Result<Golden<W>, ReadNpzError> {
    let mut matrix = |array: &str| read_array::<W, Ix2>(npz, &name, array);
    let (inputs, coeffs, outputs) = (matrix("inputs")?, matrix("coeffs")?, matrix("outputs")?);
    let (d_outputs, d_inputs, d_coeffs) =
        (matrix("d_outputs")?, matrix("d_inputs")?, matrix("d_coeffs")?);
    let (mut initial, mut d_initial) = (None, None);
    if arrays.iter().any(|array| array.trim_end_matches(".npy") == format!("{name}_initial")) {
        initial = Some(read_array::<W, Ix1>(npz, &name, "initial")?);
        d_initial = Some(read_array::<W, Ix1>(npz, &name, "d_initial")?);
    }
    let direction = if name.contains("_rev") { Direction::Reverse } else { Direction::Forward };
    Ok(Golden {
        name,
        inputs,
        coeffs,
        d_outputs,
        direction,
        initial,
        outputs,
        d_inputs,
        d_coeffs,
        d_initial,
    })
}

fn read_array<W: ReadableElement, D: Dimension>(
    npz: &mut Npz,
    case: &str,
    array: &str,
) -> Result<Array<W, D>, ReadNpzError> {
    npz.by_name(&format!("{case}_{array}"))
}

#[cfg(test)]
mod tests {
    use super::array_distance;
    use ndarray::array;

    #[test]
    fn the_distance_of_nan_or_another_shape_is_infinite() {
        let b = array![1.0, -4.0];
        assert_eq!(array_distance(&array![1.0, -4.0], &b), 0.0);
        assert_eq!(array_distance(&array![2.0, -4.0], &b), 0.25);
        assert_eq!(array_distance(&array![f64::NAN, -4.0], &b), f64::INFINITY);
        assert_eq!(array_distance(&array![1.0], &b), f64::INFINITY);
    }
}
