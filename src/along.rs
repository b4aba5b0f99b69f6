//! The recurrence along any axis of arrays with any number of dimensions.
//!
//! The engine of the CPU takes rows `[num_seqs, seq_len]` of any strides. So arrays with more axes
//! are not copied: the axis of the sequences is moved to the end, axes that are one in memory are
//! merged, and what remains are loops over groups of rows. One type, [`Arrays`], does this for the
//! forward and the backward pass, which differ in the number of arrays alone. Shapes are checked
//! once, before the first group.
//!
//! The tests are at the end of this file, and `python/tests` calls it with arrays of any strides.

use ndarray::{
    Array1, ArrayBase, ArrayView, ArrayView2, ArrayViewD, ArrayViewMut, ArrayViewMut2,
    ArrayViewMutD, Axis, Data, Dimension, Ix1, IxDyn, RemoveAxis,
};

use crate::cpu::Cpu;
use crate::validate::{allocate, same_shape};
use crate::{Direction, Element, Error, Gradients, Options, Outputs};

const FORWARD: &str = "forward_along";
const BACKWARD: &str = "backward_along";

/// Computes the recurrence along `axis` of arrays with any number of dimensions, on this machine's
/// CPU: along axis 2 of `[batch, channels, length]`, say, or along axis 1 of
/// `[batch, length, channels]`.
///
/// `inputs` and `coeffs` have the same shape; the initial and the final state have this shape
/// without `axis`. Any strides are accepted, and no array is copied as a whole. Everything else is
/// as in [`forward`](crate::forward).
///
/// ```
/// use linrec::Options;
/// use ndarray::{Axis, array};
///
/// // Two batches, three steps, two channels.
/// let inputs = array![[[1.0, 10.0], [1.0, 10.0], [1.0, 10.0]], [[2.0, 0.0], [0.0, 0.0], [0.0, 4.0]]];
/// let coeffs = inputs.mapv(|_| 0.5);
/// let result = linrec::forward_along(inputs.view(), coeffs.view(), Axis(1), &Options::default())?;
/// assert_eq!(result.final_state, array![[1.75, 17.5], [0.5, 4.0]]);
/// # Ok::<(), linrec::Error>(())
/// ```
///
/// # Errors
///
/// If the shapes do not match or there is no such axis.
pub fn forward_along<T: Element, D: RemoveAxis>(
    inputs: ArrayView<T, D>,
    coeffs: ArrayView<T, D>,
    axis: Axis,
    options: &Options<T, D::Smaller>,
) -> Result<Outputs<T, D>, Error> {
    let states = shape_of_states(FORWARD, &inputs.raw_dim(), axis)?;
    let mut outputs = allocate(FORWARD, inputs.raw_dim())?;
    let mut final_state = allocate(FORWARD, states)?;
    let (y, last) = (outputs.view_mut(), final_state.view_mut());
    forward_along_into(inputs, coeffs, axis, options, y, last)?;
    Ok(Outputs { outputs, final_state })
}

/// Computes the outputs and the final state into arrays of the caller, of any strides.
///
/// Every element of `outputs` and `final_state` is written, and none is read. Everything else is as
/// in [`forward_along`].
///
/// ```
/// use linrec::Options;
/// use ndarray::{Array1, Array2, Axis, array};
///
/// let inputs = array![[1.0, 10.0], [1.0, 10.0]];
/// let coeffs = inputs.mapv(|_| 0.5);
/// let (mut outputs, mut last) = (Array2::zeros((2, 2)), Array1::zeros(2));
/// let (y, state) = (outputs.view_mut(), last.view_mut());
/// linrec::forward_along_into(inputs.view(), coeffs.view(), Axis(0), &Options::default(), y, state)?;
/// assert_eq!((outputs, last), (array![[1.0, 10.0], [1.5, 15.0]], array![1.5, 15.0]));
/// # Ok::<(), linrec::Error>(())
/// ```
///
/// # Errors
///
/// If the shapes do not match or there is no such axis.
pub fn forward_along_into<T: Element, D: RemoveAxis>(
    inputs: ArrayView<T, D>,
    coeffs: ArrayView<T, D>,
    axis: Axis,
    options: &Options<T, D::Smaller>,
    outputs: ArrayViewMut<T, D>,
    final_state: ArrayViewMut<T, D::Smaller>,
) -> Result<(), Error> {
    Cpu::default().forward_along_into(inputs, coeffs, axis, options, outputs, final_state)
}

/// Computes the gradients along `axis` of arrays with any number of dimensions, on this machine's
/// CPU.
///
/// `outputs` are the outputs of [`forward_along`] with the same `coeffs`, `axis` and `options`.
/// Everything else is as in [`backward`](crate::backward).
///
/// # Errors
///
/// If the shapes do not match or there is no such axis.
pub fn backward_along<T: Element, D: RemoveAxis>(
    d_outputs: ArrayView<T, D>,
    coeffs: ArrayView<T, D>,
    outputs: ArrayView<T, D>,
    axis: Axis,
    options: &Options<T, D::Smaller>,
) -> Result<Gradients<T, D>, Error> {
    let states = shape_of_states(BACKWARD, &d_outputs.raw_dim(), axis)?;
    let mut d_inputs = allocate(BACKWARD, d_outputs.raw_dim())?;
    let mut d_coeffs = allocate(BACKWARD, d_outputs.raw_dim())?;
    let mut d_initial = allocate(BACKWARD, states)?;
    let (dx, dc, dh) = (d_inputs.view_mut(), d_coeffs.view_mut(), d_initial.view_mut());
    backward_along_into(d_outputs, coeffs, outputs, axis, options, dx, dc, dh)?;
    Ok(Gradients { d_inputs, d_coeffs, d_initial })
}

/// Computes the gradients into arrays of the caller, of any strides.
///
/// Every element of `d_inputs`, `d_coeffs` and `d_initial` is written, and none is read. Everything
/// else is as in [`backward_along`].
///
/// # Errors
///
/// If the shapes do not match or there is no such axis.
// Six arrays of one kind go in and out; a struct would name them no better.
#[allow(clippy::too_many_arguments)]
pub fn backward_along_into<T: Element, D: RemoveAxis>(
    d_outputs: ArrayView<T, D>,
    coeffs: ArrayView<T, D>,
    outputs: ArrayView<T, D>,
    axis: Axis,
    options: &Options<T, D::Smaller>,
    d_inputs: ArrayViewMut<T, D>,
    d_coeffs: ArrayViewMut<T, D>,
    d_initial: ArrayViewMut<T, D::Smaller>,
) -> Result<(), Error> {
    Cpu::default().backward_along_into(
        d_outputs, coeffs, outputs, axis, options, d_inputs, d_coeffs, d_initial,
    )
}

impl Cpu {
    /// Computes [`forward_along_into`] by this engine: in order, say, or on this thread alone.
    ///
    /// # Errors
    ///
    /// If the shapes do not match or there is no such axis.
    pub fn forward_along_into<T: Element, D: RemoveAxis>(
        &self,
        inputs: ArrayView<T, D>,
        coeffs: ArrayView<T, D>,
        axis: Axis,
        options: &Options<T, D::Smaller>,
        outputs: ArrayViewMut<T, D>,
        final_state: ArrayViewMut<T, D::Smaller>,
    ) -> Result<(), Error> {
        let (inputs, results) = ([("inputs", inputs), ("coeffs", coeffs)], [("outputs", outputs)]);
        let states = ("final_state", final_state);
        Arrays::new(FORWARD, axis, inputs, results, options, states)?
            .each(|inputs, options, outputs| self.outputs(inputs, options, outputs))
    }

    /// Computes [`backward_along_into`] by this engine.
    ///
    /// # Errors
    ///
    /// If the shapes do not match or there is no such axis.
    // Six arrays of one kind go in and out; a struct would name them no better.
    #[allow(clippy::too_many_arguments)]
    pub fn backward_along_into<T: Element, D: RemoveAxis>(
        &self,
        d_outputs: ArrayView<T, D>,
        coeffs: ArrayView<T, D>,
        outputs: ArrayView<T, D>,
        axis: Axis,
        options: &Options<T, D::Smaller>,
        d_inputs: ArrayViewMut<T, D>,
        d_coeffs: ArrayViewMut<T, D>,
        d_initial: ArrayViewMut<T, D::Smaller>,
    ) -> Result<(), Error> {
        let inputs = [("d_outputs", d_outputs), ("coeffs", coeffs), ("outputs", outputs)];
        let results = [("d_inputs", d_inputs), ("d_coeffs", d_coeffs)];
        let states = ("d_initial", d_initial);
        Arrays::new(BACKWARD, axis, inputs, results, options, states)?
            .each(|inputs, options, gradients| self.gradients(inputs, options, gradients))
    }
}

/// Returns the shape of the states: the shape of the arrays without the axis of the sequences.
fn shape_of_states<D: RemoveAxis>(
    operation: &'static str,
    shape: &D,
    axis: Axis,
) -> Result<D::Smaller, Error> {
    if axis.index() < shape.ndim() {
        return Ok(shape.remove_axis(axis));
    }
    Err(Error::NoSuchAxis { operation, axis: axis.index(), shape: shape.slice().to_vec() })
}

/// The arrays of a pass that reads `I` and writes `O`, with the axis of the sequences last.
struct Arrays<'a, 'r, T, const I: usize, const O: usize> {
    direction: Direction,
    log_coeffs: bool,
    inputs: [ArrayViewD<'a, T>; I],
    results: [ArrayViewMutD<'r, T>; O],
    /// The initial states.
    initial: Option<ArrayViewD<'a, T>>,
    /// The states that are written.
    states: ArrayViewMutD<'r, T>,
}

/// A change of the axes of all arrays of a pass.
#[derive(Clone, Copy)]
enum Change {
    /// A first axis of length one is inserted.
    Inserted,
    /// The first two axes become one.
    Merged,
    /// The first axis is dropped, with everything that is not at this index.
    At(usize),
}

impl<'a, 'r, T: Element, const I: usize, const O: usize> Arrays<'a, 'r, T, I, O> {
    /// Takes the arrays with their names, and checks all shapes.
    fn new<D: RemoveAxis>(
        operation: &'static str,
        axis: Axis,
        inputs: [(&'static str, ArrayView<'a, T, D>); I],
        results: [(&'static str, ArrayViewMut<'r, T, D>); O],
        options: &'a Options<T, D::Smaller>,
        (name, written): (&'static str, ArrayViewMut<'r, T, D::Smaller>),
    ) -> Result<Self, Error> {
        let (first, shape) = (inputs[0].0, inputs[0].1.raw_dim());
        let states = shape_of_states(operation, &shape, axis)?;
        if inputs.iter().any(|(_, array)| array.raw_dim() != shape) {
            let named = inputs.iter().map(|(name, array)| (*name, array.shape().to_vec()));
            return Err(Error::ShapeMismatch { operation, arrays: named.collect() });
        }
        for (name, array) in &results {
            same_shape(operation, (first, shape.slice()), (name, array.shape()))?;
        }
        let initial = options.initial.as_ref().map(|initial| initial.view());
        if let Some(initial) = initial.as_ref().filter(|initial| initial.raw_dim() != states) {
            let (shape, initial) = (shape.slice().to_vec(), initial.shape().to_vec());
            let arrays = vec![(first, shape), ("initial", initial)];
            return Err(Error::ShapeMismatch { operation, arrays });
        }
        same_shape(operation, ("states", states.slice()), (name, written.shape()))?;

        let mut inputs = inputs.map(|(_, array)| array.into_dyn());
        let mut results = results.map(|(_, array)| array.into_dyn());
        for i in axis.index() + 1..shape.ndim() {
            inputs.iter_mut().for_each(|array| array.swap_axes(i - 1, i));
            results.iter_mut().for_each(|array| array.swap_axes(i - 1, i));
        }
        let Options { direction, log_coeffs, .. } = *options;
        let initial = initial.map(ArrayBase::into_dyn);
        Ok(Arrays { direction, log_coeffs, inputs, results, initial, states: written.into_dyn() })
    }

    /// Calls `compute` for all sequences, with as many rows at a time as the strides allow.
    fn each<F>(mut self, compute: F) -> Result<(), Error>
    where
        F: Copy,
        F: Fn([ArrayView2<T>; I], &Options<T>, [ArrayViewMut2<T>; O]) -> Result<Array1<T>, Error>,
    {
        if self.states.is_empty() {
            return Ok(());
        }
        match self.states.ndim() {
            // A single sequence is a row.
            0 => self.change(Change::Inserted).each(compute),
            1 => {
                let Arrays { direction, log_coeffs, .. } = self;
                let initial = self.initial.map(|array| fixed::<_, Ix1>(array).into());
                let options = Options { direction, initial, log_coeffs };
                let states = compute(self.inputs.map(fixed), &options, self.results.map(fixed))?;
                fixed::<_, Ix1>(self.states).assign(&states);
                Ok(())
            }
            _ if self.first_two_are_one() => self.change(Change::Merged).each(compute),
            _ => (0..self.states.len_of(Axis(0)))
                .try_for_each(|i| self.views().change(Change::At(i)).each(compute)),
        }
    }

    /// True if the first two axes of every array are one axis in memory.
    fn first_two_are_one(&self) -> bool {
        let is_one = |shape: &[usize], strides: &[isize]| {
            shape[0] == 1 || shape[1] == 1 || strides[0] == shape[1] as isize * strides[1]
        };
        self.inputs.iter().chain(&self.initial).all(|array| is_one(array.shape(), array.strides()))
            && self.results.iter().all(|array| is_one(array.shape(), array.strides()))
            && is_one(self.states.shape(), self.states.strides())
    }

    /// Views of the same arrays.
    fn views(&mut self) -> Arrays<'_, '_, T, I, O> {
        Arrays {
            direction: self.direction,
            log_coeffs: self.log_coeffs,
            inputs: self.inputs.each_ref().map(|array| array.view()),
            results: self.results.each_mut().map(|array| array.view_mut()),
            initial: self.initial.as_ref().map(|array| array.view()),
            states: self.states.view_mut(),
        }
    }

    fn change(self, change: Change) -> Self {
        Arrays {
            direction: self.direction,
            log_coeffs: self.log_coeffs,
            inputs: self.inputs.map(|array| changed(array, change)),
            results: self.results.map(|array| changed(array, change)),
            initial: self.initial.map(|array| changed(array, change)),
            states: changed(self.states, change),
        }
    }
}

fn changed<S: Data>(mut array: ArrayBase<S, IxDyn>, change: Change) -> ArrayBase<S, IxDyn> {
    match change {
        Change::Inserted => array.insert_axis(Axis(0)),
        Change::Merged => {
            array.merge_axes(Axis(0), Axis(1));
            array.index_axis_move(Axis(0), 0)
        }
        Change::At(index) => array.index_axis_move(Axis(0), index),
    }
}

/// An array with the number of axes that it was found to have.
fn fixed<S: Data, D: Dimension>(array: ArrayBase<S, IxDyn>) -> ArrayBase<S, D> {
    array.into_dimensionality().expect("its axes were counted")
}

#[cfg(test)]
mod tests {
    use super::{backward_along, backward_along_into, forward_along, forward_along_into};
    use crate::{Direction, Error, Options, reference};
    use ndarray::{
        Array, Array1, Array2, Array4, ArrayD, ArrayView, Axis, Ix4, RemoveAxis, ShapeBuilder,
        array, s,
    };

    /// Small integers, so that every order of evaluation gives the same bits.
    fn numbers(shape: Ix4, seed: usize) -> Array4<f64> {
        let mut next = seed;
        Array::from_shape_simple_fn(shape, || {
            next = next * 31 % 97;
            (next % 3) as f64 - 1.0
        })
    }

    /// A copy of `array`: in the same layout (0), with the first axis the fastest in memory (1), or
    /// as every second element of a larger array (2), with two axes backwards.
    fn laid_out(array: &Array4<f64>, layout: usize) -> Array4<f64> {
        match layout {
            0 => array.clone(),
            1 => {
                let mut other = Array::zeros(array.raw_dim().f());
                other.assign(array);
                other
            }
            _ => {
                let larger: Vec<usize> = array.shape().iter().map(|size| 2 * size).collect();
                let mut larger = ArrayD::from_elem(larger, f64::NAN);
                larger.slice_mut(s![..;-2, ..;2, ..;-2, ..;2]).assign(array);
                larger.slice_move(s![..;-2, ..;2, ..;-2, ..;2])
            }
        }
    }

    /// The sequences along an axis.
    fn sequences<D: RemoveAxis>(array: ArrayView<f64, D>, axis: Axis) -> Vec<Array1<f64>> {
        array.lanes(axis).into_iter().map(|lane| lane.to_owned()).collect()
    }

    fn row(sequence: &Array1<f64>) -> Array2<f64> {
        sequence.clone().insert_axis(Axis(0))
    }

    #[test]
    fn every_axis_in_every_layout_agrees_with_the_loop() {
        let shape = Ix4(3, 1, 4, 5);
        let (x, c, d) = (numbers(shape, 5), numbers(shape, 11), numbers(shape, 23));
        for axis in (0..4).map(Axis) {
            for direction in [Direction::Forward, Direction::Reverse] {
                for layouts in [[0, 0, 0], [1, 1, 1], [0, 1, 2], [2, 2, 0]] {
                    let [x, c, d] = [(&x, layouts[0]), (&c, layouts[1]), (&d, layouts[2])]
                        .map(|(array, layout)| laid_out(array, layout));
                    let before = x.index_axis(axis, 0).mapv(|x| x + 2.0);
                    let options = Options {
                        direction,
                        initial: Some(before.view().into()),
                        log_coeffs: false,
                    };
                    let got = forward_along(x.view(), c.view(), axis, &options).unwrap();
                    let gradients =
                        backward_along(d.view(), c.view(), got.outputs.view(), axis, &options)
                            .unwrap();

                    let all = [&x, &c, &d, &got.outputs, &gradients.d_inputs, &gradients.d_coeffs];
                    let all = all.map(|array| sequences(array.view(), axis));
                    let states = before.iter().zip(&got.final_state).zip(&gradients.d_initial);
                    for (i, ((&before, &last), &d_before)) in states.enumerate() {
                        let [x, c, d, y, dx, dc] = all.each_ref().map(|array| row(&array[i]));
                        let options = Options {
                            direction,
                            initial: Some(array![before].into()),
                            log_coeffs: false,
                        };
                        let exact = reference::forward(x.view(), c.view(), &options).unwrap();
                        assert_eq!(
                            (&y, last),
                            (&exact.outputs, exact.final_state[0]),
                            "{axis:?} {layouts:?}"
                        );
                        let exact =
                            reference::backward(d.view(), c.view(), y.view(), &options).unwrap();
                        assert_eq!(
                            (dx, dc),
                            (exact.d_inputs, exact.d_coeffs),
                            "{axis:?} {layouts:?}"
                        );
                        assert_eq!(d_before, exact.d_initial[0]);
                    }
                }
            }
        }
    }

    #[test]
    fn results_go_into_arrays_of_any_strides() {
        let shape = Ix4(3, 1, 4, 5);
        let (x, c, d) = (numbers(shape, 5), numbers(shape, 11), numbers(shape, 23));
        let poison = |layout| laid_out(&Array4::from_elem(shape, f64::NAN), layout);
        for axis in (0..4).map(Axis) {
            let options = Options::default();
            let got = forward_along(x.view(), c.view(), axis, &options).unwrap();
            let y = got.outputs.view();
            let gradients = backward_along(d.view(), c.view(), y, axis, &options).unwrap();
            for layout in 0..3 {
                let (mut y, mut last) = (poison(layout), got.final_state.mapv(|_| f64::NAN));
                let (x, c, d) = (x.view(), c.view(), d.view());
                forward_along_into(x, c, axis, &options, y.view_mut(), last.view_mut()).unwrap();
                assert_eq!((&y, &last), (&got.outputs, &got.final_state), "{axis:?} {layout}");

                let (mut dx, mut dc, mut dh) = (poison(layout), poison(2 - layout), last);
                dh.fill(f64::NAN);
                let results = (dx.view_mut(), dc.view_mut(), dh.view_mut());
                let (dx_out, dc_out, dh_out) = results;
                let outputs = got.outputs.view();
                backward_along_into(d, c, outputs, axis, &options, dx_out, dc_out, dh_out).unwrap();
                assert_eq!((&dx, &dc), (&gradients.d_inputs, &gradients.d_coeffs));
                assert_eq!(dh, gradients.d_initial, "{axis:?} {layout}");
            }
        }
        // Without a step all of the states are written.
        let (x, mut y) = (Array2::<f64>::zeros((2, 0)), Array2::zeros((2, 0)));
        let (mut last, options) = (array![f64::NAN, f64::NAN], Options::default());
        let (c, out, state) = (x.view(), y.view_mut(), last.view_mut());
        forward_along_into(x.view(), c, Axis(1), &options, out, state).unwrap();
        assert_eq!(last, array![0.0, 0.0]);
        let (mut dx, mut dc) = (x.clone(), x.clone());
        let (dx, dc, mut dh) = (dx.view_mut(), dc.view_mut(), array![f64::NAN, f64::NAN]);
        let state = dh.view_mut();
        backward_along_into(x.view(), c, x.view(), Axis(1), &options, dx, dc, state).unwrap();
        assert_eq!(dh, array![0.0, 0.0]);
    }

    #[test]
    fn one_sequence_or_none() {
        let (x, c) = (array![1.0, 2.0, 3.0], array![0.0, 1.0, 0.5]);
        let got = forward_along(x.view(), c.view(), Axis(0), &Options::default()).unwrap();
        assert_eq!((got.outputs, got.final_state.into_scalar()), (array![1.0, 3.0, 4.5], 4.5));

        let empty = Array::<f64, _>::zeros((2, 0, 3));
        let before = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let options = Options { initial: Some(before.view().into()), ..Options::default() };
        let got = forward_along(empty.view(), empty.view(), Axis(1), &options).unwrap();
        assert_eq!((got.outputs.dim(), &got.final_state), ((2, 0, 3), &before));
        let got = forward_along(empty.view(), empty.view(), Axis(0), &Options::default()).unwrap();
        assert_eq!(got.final_state.dim(), (0, 3));
    }

    #[test]
    fn errors_name_the_shapes() {
        let (x, c) = (Array::<f32, _>::zeros((2, 3, 4)), Array::<f32, _>::zeros((2, 3, 5)));
        let message = |result: Result<_, Error>| match result {
            Ok(()) => String::from("no error"),
            Err(error) => error.to_string(),
        };
        let plain = Options::default();
        let along = |axis| forward_along(x.view(), x.view(), Axis(axis), &plain).map(drop);
        assert_eq!(message(along(2)), "no error");
        assert_eq!(message(along(3)), "no axis 3 in forward_along: arrays [2, 3, 4]");
        assert_eq!(
            message(forward_along(x.view(), c.view(), Axis(2), &plain).map(drop)),
            "shape mismatch in forward_along: inputs [2, 3, 4], coeffs [2, 3, 5]"
        );
        let before = Array2::zeros((2, 4));
        let options = Options { initial: Some(before.view().into()), ..Options::default() };
        assert_eq!(
            message(backward_along(x.view(), x.view(), x.view(), Axis(2), &options).map(drop)),
            "shape mismatch in backward_along: d_outputs [2, 3, 4], initial [2, 4]"
        );
        let (mut y, mut last) = (x.clone(), Array2::zeros((2, 4)));
        let (out, state) = (y.view_mut(), last.view_mut());
        assert_eq!(
            message(forward_along_into(x.view(), x.view(), Axis(2), &plain, out, state)),
            "shape mismatch in forward_along: states [2, 3], final_state [2, 4]"
        );
        let scalar = ndarray::arr0(1.0_f32).into_dyn();
        let result = forward_along(scalar.view(), scalar.view(), Axis(0), &Options::default());
        assert_eq!(message(result.map(drop)), "no axis 0 in forward_along: arrays []");
    }
}
