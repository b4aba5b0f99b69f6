//! Adds the recurrence to burn as an operation with gradients of any order. As an example, a gate
//! learns how fast to forget.
//!
//! The operation is a trait that burn's backends implement, [`Recurrence`]: for plain tensors by
//! the library, and for `Autodiff` with a backward pass that consists of the same operation. Since
//! that holds for an `Autodiff` of an `Autodiff` as well, gradients have gradients. `main` compares
//! first and second derivatives with the library and with finite differences before it trains.
//!
//! ```console
//! cargo run --release --manifest-path examples/burn/Cargo.toml
//! ```

use std::error::Error;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind, binary};
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, FloatDType, Shape, Slice, TensorMetadata};
use burn_ndarray::{NdArray, NdArrayTensor};
use burn_tensor::{Distribution, Tensor, TensorPrimitive, activation};
use linrec::{Direction, Element, Options, forward_along};
use ndarray::{ArcArray, Array2, ArrayViewD, Axis, IxDyn};

/// A backend that computes the recurrence.
trait Recurrence: Backend {
    /// Computes `y[l] = y[l-1] c[l] + x[l]` along the last axis; inputs and coefficients have one
    /// shape.
    ///
    /// # Panics
    ///
    /// Panics as burn's operations do if the shapes or types differ, or if there is no axis.
    fn linrec(
        inputs: FloatTensor<Self>,
        coeffs: FloatTensor<Self>,
        direction: Direction,
    ) -> FloatTensor<Self>;
}

/// Computes the recurrence along the last axis.
fn linrec<B: Recurrence, const D: usize>(
    inputs: Tensor<B, D>,
    coeffs: Tensor<B, D>,
    direction: Direction,
) -> Tensor<B, D> {
    let [inputs, coeffs] = [inputs, coeffs].map(|tensor| tensor.into_primitive().tensor());
    Tensor::from_primitive(TensorPrimitive::Float(B::linrec(inputs, coeffs, direction)))
}

impl Recurrence for NdArray {
    fn linrec(inputs: NdArrayTensor, coeffs: NdArrayTensor, direction: Direction) -> NdArrayTensor {
        match (&inputs, &coeffs) {
            (NdArrayTensor::F32(x), NdArrayTensor::F32(c)) => {
                compute(x.view(), c.view(), direction).into()
            }
            (NdArrayTensor::F64(x), NdArrayTensor::F64(c)) => {
                compute(x.view(), c.view(), direction).into()
            }
            _ => panic!(
                "linrec: inputs and coefficients should both be f32, or both f64: they are {:?} and {:?}",
                inputs.dtype(),
                coeffs.dtype()
            ),
        }
    }
}

/// Computes the outputs without copying the tensors.
fn compute<T: Element>(
    inputs: ArrayViewD<T>,
    coeffs: ArrayViewD<T>,
    direction: Direction,
) -> ArcArray<T, IxDyn> {
    let options = Options { direction, ..Options::default() };
    let last = inputs.ndim().checked_sub(1).expect("linrec: sequences need an axis");
    match forward_along(inputs, coeffs, Axis(last), &options) {
        Ok(computed) => computed.outputs.into_shared(),
        Err(error) => panic!("linrec: {error}"),
    }
}

/// Adds gradients to any backend that computes the recurrence. That backend may have gradients
/// itself, so gradients of any order are possible.
impl<B: Recurrence, C: CheckpointStrategy> Recurrence for Autodiff<B, C> {
    fn linrec(
        inputs: FloatTensor<Self>,
        coeffs: FloatTensor<Self>,
        direction: Direction,
    ) -> FloatTensor<Self> {
        let nodes = [inputs.node.clone(), coeffs.node.clone()];
        let outputs = B::linrec(inputs.primitive, coeffs.primitive.clone(), direction);
        match Step.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => {
                step.finish((coeffs.primitive, outputs.clone(), direction), outputs)
            }
            OpsKind::UnTracked(step) => step.finish(outputs),
        }
    }
}

// ANCHOR: backward
/// The backward step of a recurrence.
#[derive(Debug)]
struct Step;

impl<B: Recurrence> Backward<B, 2> for Step {
    /// The coefficients, the outputs, and the direction in which they were computed.
    type State = (FloatTensor<B>, FloatTensor<B>, Direction);

    /// Uses the operation itself in the other direction. The gradient of the inputs is a walk from
    /// the end that takes each step's coefficient from the next step; the gradient of the
    /// coefficients is its product with the previous output.
    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (coeffs, outputs, direction) = ops.state;
        let back = match direction {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        };
        let d_inputs = |gradient| B::linrec(gradient, shifted::<B>(coeffs.clone(), back), back);
        binary::<B, _, _>(ops.parents, ops.node, gradients, d_inputs, |gradient| {
            B::float_mul(d_inputs(gradient), shifted::<B>(outputs, direction))
        });
    }
}
// ANCHOR_END: backward

/// Shifts sequences by one step in a direction and fills with zeros.
fn shifted<B: Backend>(sequences: FloatTensor<B>, direction: Direction) -> FloatTensor<B> {
    let shape = sequences.shape();
    let last = shape.num_dims() - 1;
    let Some(kept) = shape[last].checked_sub(1) else { return sequences };
    let mut first = shape.to_vec();
    first[last] = 1;
    let device = B::float_device(&sequences);
    let zeros = B::float_zeros(Shape::from(first), &device, FloatDType::from(sequences.dtype()));
    let part = |tensor, from: usize| {
        let mut slices = vec![Slice::full(); last];
        slices.push(Slice::from(from..from + kept));
        B::float_slice(tensor, &slices)
    };
    let parts = match direction {
        Direction::Forward => vec![zeros, part(sequences, 0)],
        Direction::Reverse => vec![part(sequences, 1), zeros],
    };
    B::float_cat(parts, last)
}

type Cpu = Autodiff<NdArray>;

fn main() -> Result<(), Box<dyn Error>> {
    let device = Default::default();
    Cpu::seed(&device, 18);
    compare()?;

    // The targets: averages of noise that keep 0.9, 0.7 and 0.5 of themselves in each step.
    let noise = Tensor::<Cpu, 2>::random([3, 500], Distribution::Normal(0.0, 1.0), &device);
    let kept = Tensor::<Cpu, 2>::from_floats([[0.9], [0.7], [0.5]], &device).expand([3, 500]);
    let wanted = linrec(noise.clone(), kept, Direction::Forward);
    let mut gates = Tensor::<Cpu, 2>::zeros([3, 1], &device);
    for step in 0..=40 {
        gates = gates.detach().require_grad();
        let coeffs = activation::sigmoid(gates.clone());
        let outputs = linrec(noise.clone(), coeffs.clone().expand([3, 500]), Direction::Forward);
        let loss = (outputs - wanted.clone()).powi_scalar(2).mean();
        if step % 10 == 0 {
            let found = coeffs.into_data().to_vec::<f32>().map_err(|error| format!("{error:?}"))?;
            println!(
                "step {step:2}: loss {:.6}, coefficients {found:.3?}",
                loss.clone().into_scalar()
            );
        }
        let gradients = loss.backward();
        let slope = gates.grad(&gradients).ok_or("there is no gradient")?;
        gates = gates - Tensor::from_inner(slope * 0.5);
    }
    Ok(())
}

/// Compares the gradients with the library's backward pass, and a second derivative with finite
/// differences.
fn compare() -> Result<(), Box<dyn Error>> {
    let device = Default::default();
    let shape = [4, 300];
    let random = |low, high| {
        let values = Tensor::<NdArray, 2>::random(shape, Distribution::Uniform(low, high), &device);
        values.cast(FloatDType::F64)
    };
    let (inputs, coeffs) = (random(-1.0, 1.0), random(0.98, 1.0));
    let (weights, direction) = (random(-1.0, 1.0), Direction::Reverse);

    let (dx, dc) = gradients::<NdArray>(&inputs, &coeffs, &weights, direction)?;
    let array = |tensor: &Tensor<NdArray, 2>| -> Result<Array2<f64>, Box<dyn Error>> {
        let values = tensor.to_data().to_vec::<f64>().map_err(|error| format!("{error:?}"))?;
        Ok(Array2::from_shape_vec(shape, values)?)
    };
    let outputs = linrec(inputs.clone(), coeffs.clone(), direction);
    let (g, c, y) = (array(&weights)?, array(&coeffs)?, array(&outputs)?);
    let options = Options { direction, ..Options::default() };
    let exact = linrec::backward(g.view(), c.view(), y.view(), &options)?;
    for (got, exact) in [(array(&dx)?, exact.d_inputs), (array(&dc)?, exact.d_coeffs)] {
        let largest = exact.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        let off = (&got - &exact).iter().fold(0.0_f64, |most, gap| most.max(gap.abs())) / largest;
        println!("gradient, distance from the library's: {off:.1e} of the largest");
        if off > 1e-12 {
            return Err("the gradients differ".into());
        }
    }

    // The weighted gradient with respect to the coefficients, differentiated along a line: by burn,
    // and from two points on the line.
    let (again, line) = (random(-1.0, 1.0), random(-1.0, 1.0));
    let weighted = |coeffs: &Tensor<NdArray, 2>| -> Result<f64, Box<dyn Error>> {
        let (_, dc) = gradients::<NdArray>(&inputs, coeffs, &weights, direction)?;
        scalar(dc * again.clone())
    };
    let tracked = Tensor::<Cpu, 2>::from_inner(coeffs.clone()).require_grad();
    let constant = |tensor: &Tensor<NdArray, 2>| Tensor::<Cpu, 2>::from_inner(tensor.clone());
    let (_, dc) = gradients::<Cpu>(&constant(&inputs), &tracked, &constant(&weights), direction)?;
    let of = (dc * constant(&again)).sum().backward();
    let slope = tracked.grad(&of).ok_or("there is no gradient of the gradient")?;
    let parts = slope * line.clone();
    let (scale, slope) = (scalar(parts.clone().abs())?, scalar(parts)?);
    // By Taylor's theorem, a finite difference is off by about step², and by rounding errors
    // divided by step.
    let step = 1e-5;
    let [up, down] = [step, -step].map(|step| weighted(&(coeffs.clone() + line.clone() * step)));
    let differences = (up? - down?) / (2.0 * step);
    println!("gradient of the gradient along a line: {slope:.6}, by differences {differences:.6}");
    if (slope - differences).abs() > 1e-6 * scale {
        return Err("the gradients of the gradient differ".into());
    }
    Ok(())
}

/// Returns the gradients of the sum of weighted outputs with respect to inputs and coefficients, on
/// the tensors' backend.
fn gradients<B: Recurrence>(
    inputs: &Tensor<B, 2>,
    coeffs: &Tensor<B, 2>,
    weights: &Tensor<B, 2>,
    direction: Direction,
) -> Result<(Tensor<B, 2>, Tensor<B, 2>), Box<dyn Error>> {
    let [x, c] = [inputs, coeffs]
        .map(|tensor| Tensor::<Autodiff<B>, 2>::from_inner(tensor.clone()).require_grad());
    let outputs = linrec(x.clone(), c.clone(), direction);
    let of = (outputs * Tensor::from_inner(weights.clone())).sum().backward();
    match (x.grad(&of), c.grad(&of)) {
        (Some(dx), Some(dc)) => Ok((dx, dc)),
        _ => Err("there is no gradient".into()),
    }
}

/// The sum of a tensor's elements.
fn scalar(tensor: Tensor<NdArray, 2>) -> Result<f64, Box<dyn Error>> {
    let sum = tensor.sum().into_data().to_vec::<f64>().map_err(|error| format!("{error:?}"))?;
    Ok(sum[0])
}
