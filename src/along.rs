//! The recurrence along any axis of arrays with any number of dimensions.

use ndarray::{
    Array1, ArrayBase, ArrayView, ArrayView2, ArrayViewD, ArrayViewMut, ArrayViewMut2,
    ArrayViewMutD, Axis, Data, Dimension, Ix1, Ix2, IxDyn, RemoveAxis,
};

use crate::validate::{allocate, same_shape};
use crate::{Element, Engine, Error, Gradients, Options, Outputs};

/// Computes the recurrence along `axis` of arrays with any number of dimensions, on this machine's
/// CPU: along axis 2 of `[batch, channels, length]`, say, or along axis 1 of
/// `[batch, length, channels]`.
///
/// Shapes: `inputs` and `coeffs` alike; the initial and the final state have their shape without
/// `axis`. Any strides are accepted and nothing is copied as a whole. Otherwise as
/// [`forward`](crate::forward).
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
    let operation = "forward_along";
    let arrays = [("inputs", inputs.shape()), ("coeffs", coeffs.shape())];
    let states = shape_of_states::<T, D>(operation, &arrays, axis, options)?;
    let mut outputs = allocate(operation, inputs.raw_dim())?;
    let mut final_state = allocate(operation, states)?;
    let (y, last) = (outputs.view_mut(), final_state.view_mut());
    forward_along_into(inputs, coeffs, axis, options, y, last)?;
    Ok(Outputs { outputs, final_state })
}

/// Computes the outputs and the final state into arrays of the caller's, of any strides.
///
/// All of `outputs` and `final_state` is written, none is read. Otherwise as [`forward_along`].
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
    mut final_state: ArrayViewMut<T, D::Smaller>,
) -> Result<(), Error> {
    let operation = "forward_along";
    let arrays =
        [("inputs", inputs.shape()), ("coeffs", coeffs.shape()), ("outputs", outputs.shape())];
    let states = shape_of_states::<T, D>(operation, &arrays, axis, options)?;
    same_shape(operation, ("states", states.slice()), ("final_state", final_state.shape()))?;
    let has_none = outputs.is_empty();
    let engine = crate::cpu::Cpu::default();
    let rows = |rows: Rows<T, 2, 1>, options: &Options<T>| {
        let ([inputs, coeffs], [outputs]) = (rows.inputs, rows.results);
        engine.forward_into(inputs, coeffs, options, outputs)
    };
    let all = All {
        inputs: [inputs.into_dyn(), coeffs.into_dyn()],
        results: [outputs.into_dyn()],
        initial: options.initial.as_ref().map(|initial| initial.view().into_dyn()),
        states: final_state.view_mut().into_dyn(),
    };
    all.last(axis).each(&rows, &plain(options))?;
    if has_none {
        match &options.initial {
            Some(initial) => final_state.assign(initial),
            None => final_state.fill(T::zero()),
        }
    }
    Ok(())
}

/// Computes the gradients along `axis` of arrays with any number of dimensions, on this machine's
/// CPU.
///
/// `outputs` are those of [`forward_along`] with the same `coeffs`, `axis` and `options`. Otherwise
/// as [`backward`](crate::backward).
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
    let operation = "backward_along";
    let arrays = [
        ("d_outputs", d_outputs.shape()),
        ("coeffs", coeffs.shape()),
        ("outputs", outputs.shape()),
    ];
    let states = shape_of_states::<T, D>(operation, &arrays, axis, options)?;
    let mut d_inputs = allocate(operation, d_outputs.raw_dim())?;
    let mut d_coeffs = allocate(operation, d_outputs.raw_dim())?;
    let mut d_initial = allocate(operation, states)?;
    let (dx, dc, dh) = (d_inputs.view_mut(), d_coeffs.view_mut(), d_initial.view_mut());
    backward_along_into(d_outputs, coeffs, outputs, axis, options, dx, dc, dh)?;
    Ok(Gradients { d_inputs, d_coeffs, d_initial })
}

/// Computes the gradients into arrays of the caller's, of any strides.
///
/// All of `d_inputs`, `d_coeffs` and `d_initial` is written, none is read. Otherwise as
/// [`backward_along`].
///
/// # Errors
///
/// If the shapes do not match or there is no such axis.
// Six arrays go in and out, and each is of the same kind; a struct would name them no better.
#[allow(clippy::too_many_arguments)]
pub fn backward_along_into<T: Element, D: RemoveAxis>(
    d_outputs: ArrayView<T, D>,
    coeffs: ArrayView<T, D>,
    outputs: ArrayView<T, D>,
    axis: Axis,
    options: &Options<T, D::Smaller>,
    d_inputs: ArrayViewMut<T, D>,
    d_coeffs: ArrayViewMut<T, D>,
    mut d_initial: ArrayViewMut<T, D::Smaller>,
) -> Result<(), Error> {
    let operation = "backward_along";
    let arrays = [
        ("d_outputs", d_outputs.shape()),
        ("coeffs", coeffs.shape()),
        ("outputs", outputs.shape()),
        ("d_inputs", d_inputs.shape()),
        ("d_coeffs", d_coeffs.shape()),
    ];
    let states = shape_of_states::<T, D>(operation, &arrays, axis, options)?;
    same_shape(operation, ("states", states.slice()), ("d_initial", d_initial.shape()))?;
    if d_inputs.is_empty() {
        d_initial.fill(T::zero());
    }
    let engine = crate::cpu::Cpu::default();
    let rows = |rows: Rows<T, 3, 2>, options: &Options<T>| {
        let ([d_outputs, coeffs, outputs], [d_inputs, d_coeffs]) = (rows.inputs, rows.results);
        engine.backward_into(d_outputs, coeffs, outputs, options, d_inputs, d_coeffs)
    };
    let all = All {
        inputs: [d_outputs.into_dyn(), coeffs.into_dyn(), outputs.into_dyn()],
        results: [d_inputs.into_dyn(), d_coeffs.into_dyn()],
        initial: options.initial.as_ref().map(|initial| initial.view().into_dyn()),
        states: d_initial.into_dyn(),
    };
    all.last(axis).each(&rows, &plain(options))
}

/// Checks all shapes; returns that of the states.
fn shape_of_states<T: Element, D: RemoveAxis>(
    operation: &'static str,
    arrays: &[(&'static str, &[usize])],
    axis: Axis,
    options: &Options<T, D::Smaller>,
) -> Result<D::Smaller, Error> {
    let (name, shape) = arrays[0];
    if axis.index() >= shape.len() {
        return Err(Error::NoSuchAxis { operation, axis: axis.index(), shape: shape.to_vec() });
    }
    let named = |all: &[(&'static str, &[usize])]| {
        all.iter().map(|&(name, shape)| (name, shape.to_vec())).collect()
    };
    if arrays.iter().any(|array| array.1 != shape) {
        return Err(Error::ShapeMismatch { operation, arrays: named(arrays) });
    }
    let mut states = D::Smaller::zeros(shape.len() - 1);
    let others = (0..shape.len()).filter(|&other| other != axis.index());
    for (size, other) in states.slice_mut().iter_mut().zip(others) {
        *size = shape[other];
    }
    if let Some(initial) = &options.initial
        && initial.raw_dim() != states
    {
        let arrays = named(&[(name, shape), ("initial", initial.shape())]);
        return Err(Error::ShapeMismatch { operation, arrays });
    }
    Ok(states)
}

/// The options without the state, which goes with its rows.
fn plain<T: Element, D: Dimension>(options: &Options<T, D>) -> Options<'static, T> {
    Options { direction: options.direction, initial: None, log_coeffs: options.log_coeffs }
}

/// The arrays of a pass: `I` are read and `R` are written.
struct All<'a, 'r, T, const I: usize, const R: usize> {
    inputs: [ArrayViewD<'a, T>; I],
    results: [ArrayViewMutD<'r, T>; R],
    initial: Option<ArrayViewD<'a, T>>,
    states: ArrayViewMutD<'r, T>,
}

/// The arrays of a pass as rows, `[num_seqs, seq_len]`: `I` are read and `R` are written.
struct Rows<'a, 'r, T, const I: usize, const R: usize> {
    inputs: [ArrayView2<'a, T>; I],
    results: [ArrayViewMut2<'r, T>; R],
}

impl<'a, 'r, T: Element, const I: usize, const R: usize> All<'a, 'r, T, I, R> {
    /// Puts the axis of the sequences behind all others.
    fn last(mut self, axis: Axis) -> Self {
        for i in axis.index() + 1..self.inputs[0].ndim() {
            self.inputs.iter_mut().for_each(|array| array.swap_axes(i - 1, i));
            self.results.iter_mut().for_each(|array| array.swap_axes(i - 1, i));
        }
        self
    }

    /// Hands all sequences to `pass`, as many at a time as the strides allow.
    fn each(
        mut self,
        pass: &impl Fn(Rows<T, I, R>, &Options<T>) -> Result<Array1<T>, Error>,
        options: &Options<T>,
    ) -> Result<(), Error> {
        if self.inputs[0].is_empty() {
            return Ok(());
        }
        match self.states.ndim() {
            // A single sequence is a row.
            0 => {
                let row = self
                    .map(|array| array.insert_axis(Axis(0)), |array| array.insert_axis(Axis(0)));
                row.each(pass, options)
            }
            1 => self.rows(pass, options),
            _ if self.first_two_are_one() => {
                self.map(merge_first_two, merge_first_two).each(pass, options)
            }
            _ => (0..self.states.len_of(Axis(0))).try_for_each(|i| {
                let part = self.views().map(
                    |array| array.index_axis_move(Axis(0), i),
                    |array| array.index_axis_move(Axis(0), i),
                );
                part.each(pass, options)
            }),
        }
    }

    /// Whether in all arrays the first two axes are one, as far as memory goes.
    fn first_two_are_one(&self) -> bool {
        let is_one = |shape: &[usize], strides: &[isize]| {
            shape[0] == 1 || shape[1] == 1 || strides[0] == shape[1] as isize * strides[1]
        };
        self.inputs.iter().chain(&self.initial).all(|array| is_one(array.shape(), array.strides()))
            && self.results.iter().all(|array| is_one(array.shape(), array.strides()))
            && is_one(self.states.shape(), self.states.strides())
    }

    /// Views of the same arrays.
    fn views(&mut self) -> All<'_, '_, T, I, R> {
        All {
            inputs: self.inputs.each_ref().map(|array| array.view()),
            results: self.results.each_mut().map(|array| array.view_mut()),
            initial: self.initial.as_ref().map(|array| array.view()),
            states: self.states.view_mut(),
        }
    }

    /// All arrays in another form: those that are read, and those that are written.
    fn map(
        self,
        read: impl Fn(ArrayViewD<'a, T>) -> ArrayViewD<'a, T>,
        written: impl Fn(ArrayViewMutD<'r, T>) -> ArrayViewMutD<'r, T>,
    ) -> Self {
        All {
            inputs: self.inputs.map(&read),
            results: self.results.map(&written),
            initial: self.initial.map(read),
            states: written(self.states),
        }
    }

    /// Computes rows of `[num_seqs, seq_len]`.
    fn rows(
        self,
        pass: &impl Fn(Rows<T, I, R>, &Options<T>) -> Result<Array1<T>, Error>,
        options: &Options<T>,
    ) -> Result<(), Error> {
        let initial = self.initial.map(|array| fixed::<_, Ix1>(array).into());
        let options =
            Options { direction: options.direction, initial, log_coeffs: options.log_coeffs };
        let rows = Rows {
            inputs: self.inputs.map(fixed::<_, Ix2>),
            results: self.results.map(fixed::<_, Ix2>),
        };
        let states = pass(rows, &options)?;
        fixed::<_, Ix1>(self.states).assign(&states);
        Ok(())
    }
}

/// The first two axes of an array as one, where its strides make them one.
fn merge_first_two<S: Data>(mut array: ArrayBase<S, IxDyn>) -> ArrayBase<S, IxDyn> {
    array.merge_axes(Axis(0), Axis(1));
    array.index_axis_move(Axis(0), 0)
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

    /// Numbers with small integers, so that every order of evaluation gives the same bits.
    fn numbers(shape: Ix4, seed: usize) -> Array4<f64> {
        let mut next = seed;
        Array::from_shape_simple_fn(shape, || {
            next = next * 31 % 97;
            (next % 3) as f64 - 1.0
        })
    }

    /// A copy of `array`: laid out as it is (0), with the first axis the fastest in memory (1), or
    /// as every second element of something larger (2), two of its axes backwards.
    fn laid_out(array: &Array4<f64>, layout: usize) -> Array4<f64> {
        match layout {
            0 => array.clone(),
            1 => {
                let mut other = Array::zeros(array.raw_dim().f());
                other.assign(array);
                other
            }
            _ => {
                // Every second element of something larger, backwards.
                let larger: Vec<usize> = array.shape().iter().map(|size| 2 * size).collect();
                let mut larger = ArrayD::from_elem(larger, f64::NAN);
                larger.slice_mut(s![..;-2, ..;2, ..;-2, ..;2]).assign(array);
                larger.slice_move(s![..;-2, ..;2, ..;-2, ..;2])
            }
        }
    }

    /// The sequence along an axis that the others' indices choose.
    fn sequences<D: RemoveAxis>(array: ArrayView<f64, D>, axis: Axis) -> Vec<Array1<f64>> {
        array.lanes(axis).into_iter().map(|lane| lane.to_owned()).collect()
    }

    fn row(sequence: &Array1<f64>) -> Array2<f64> {
        sequence.clone().insert_axis(Axis(0))
    }

    #[test]
    fn every_axis_in_every_layout_is_what_the_loop_makes_of_each_sequence() {
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
    fn one_sequence_and_none() {
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
    fn what_does_not_fit_is_named() {
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
