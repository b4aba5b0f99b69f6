//! Adds the recurrence to candle as an operation with gradients. As an example, a gate learns how
//! fast to forget.
//!
//! ```console
//! cargo run --release --manifest-path examples/candle/Cargo.toml
//! ```

use candle_core::backend::BackendStorage;
use candle_core::{
    CpuStorage, CustomOp2, DType, Device, Error, Layout, Result, Shape, Tensor, Var, WithDType,
    bail,
};
use linrec::{Direction, Element, Options, forward_along};
use ndarray::{ArrayViewD, Axis, IxDyn, ShapeBuilder};

/// Computes `y[l] = y[l-1] c[l] + x[l]` along the last axis on the CPU; inputs and coefficients
/// have one shape.
struct Recurrence(Direction);

/// Computes the recurrence along the last axis.
fn linrec(inputs: &Tensor, coeffs: &Tensor, direction: Direction) -> Result<Tensor> {
    inputs.apply_op2(coeffs, Recurrence(direction))
}

impl CustomOp2 for Recurrence {
    fn name(&self) -> &'static str {
        "linrec"
    }

    fn cpu_fwd(
        &self,
        inputs: &CpuStorage,
        inputs_layout: &Layout,
        coeffs: &CpuStorage,
        coeffs_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let layouts = [inputs_layout, coeffs_layout];
        match inputs.dtype() {
            DType::F32 => self.compute::<f32>([inputs, coeffs], layouts),
            DType::F64 => self.compute::<f64>([inputs, coeffs], layouts),
            other => bail!("linrec computes with f32 and f64, and this is {other:?}"),
        }
    }

    /// Uses the operation itself in the other direction. The gradient of the inputs is a walk from
    /// the end that takes each step's coefficient from the next step; the gradient of the
    /// coefficients is its product with the previous output.
    fn bwd(
        &self,
        _inputs: &Tensor,
        coeffs: &Tensor,
        outputs: &Tensor,
        d_outputs: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let Recurrence(direction) = *self;
        let back = match direction {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        };
        let d_inputs = linrec(d_outputs, &shifted(coeffs, back)?, back)?;
        let d_coeffs = (&d_inputs * shifted(outputs, direction)?)?;
        Ok((Some(d_inputs), Some(d_coeffs)))
    }
}

impl Recurrence {
    fn compute<T: Element + WithDType>(
        &self,
        arrays: [&CpuStorage; 2],
        layouts: [&Layout; 2],
    ) -> Result<(CpuStorage, Shape)> {
        let shape = layouts[0].shape().clone();
        let Some(last) = shape.rank().checked_sub(1) else { bail!("sequences need an axis") };
        let inputs = view(arrays[0].as_slice::<T>()?, layouts[0])?;
        let coeffs = view(arrays[1].as_slice::<T>()?, layouts[1])?;
        let options = Options { direction: self.0, ..Options::default() };
        let computed = forward_along(inputs, coeffs, Axis(last), &options).map_err(Error::wrap)?;
        let outputs = computed.outputs.iter().copied().collect();
        Ok((T::to_cpu_storage_owned(outputs), shape))
    }
}

/// Views a tensor's elements in place, with its strides.
fn view<'a, T>(elements: &'a [T], layout: &Layout) -> Result<ArrayViewD<'a, T>> {
    let shape = IxDyn(layout.dims()).strides(IxDyn(layout.stride()));
    ArrayViewD::from_shape(shape, &elements[layout.start_offset()..]).map_err(Error::wrap)
}

/// Shifts sequences by one step in a direction and fills with zeros.
fn shifted(sequences: &Tensor, direction: Direction) -> Result<Tensor> {
    let last = sequences.rank() - 1;
    let len = sequences.dim(last)?;
    if len == 0 {
        return Ok(sequences.clone());
    }
    let nothing = sequences.narrow(last, 0, 1)?.zeros_like()?;
    match direction {
        Direction::Forward => Tensor::cat(&[&nothing, &sequences.narrow(last, 0, len - 1)?], last),
        Direction::Reverse => Tensor::cat(&[&sequences.narrow(last, 1, len - 1)?, &nothing], last),
    }
}

fn main() -> Result<()> {
    let device = Device::Cpu;
    compare(&device)?;

    // The targets: averages of noise that keep 0.9, 0.7 and 0.5 of themselves in each step.
    let noise = Tensor::randn(0f32, 1.0, (3, 500), &device)?;
    let kept = Tensor::new(&[[0.9f32], [0.7], [0.5]], &device)?.broadcast_as((3, 500))?;
    let wanted = linrec(&noise, &kept, Direction::Forward)?;
    let gates = Var::zeros((3, 1), DType::F32, &device)?;
    for step in 0..=400 {
        let coeffs = (gates.neg()?.exp()? + 1.0)?.recip()?;
        let outputs = linrec(&noise, &coeffs.broadcast_as((3, 500))?, Direction::Forward)?;
        let loss = (outputs - &wanted)?.sqr()?.mean_all()?;
        if step % 100 == 0 {
            let found = coeffs.flatten_all()?.to_vec1::<f32>()?;
            println!(
                "step {step:3}: loss {:.6}, coefficients {found:.3?}",
                loss.to_scalar::<f32>()?
            );
        }
        let gradients = loss.backward()?;
        if let Some(slope) = gradients.get(&gates) {
            gates.set(&(gates.as_tensor() - (slope * 0.5)?)?)?;
        }
    }
    Ok(())
}

/// Compares the gradients with the library's backward pass, for a tensor whose rows are not
/// contiguous.
fn compare(device: &Device) -> Result<()> {
    let shape = (4, 300);
    let inputs = Var::randn_f64(0.0, 1.0, shape, DType::F64, device)?;
    let coeffs = Var::rand_f64(0.98, 1.0, (300, 4), DType::F64, device)?;
    let weights = Tensor::randn(0f64, 1.0, shape, device)?;
    let outputs = linrec(&inputs, &coeffs.t()?, Direction::Reverse)?;
    let gradients = (&outputs * &weights)?.sum_all()?.backward()?;
    let array = |tensor: &Tensor| -> Result<ndarray::Array2<f64>> {
        let elements = tensor.flatten_all()?.to_vec1::<f64>()?;
        ndarray::Array2::from_shape_vec(shape, elements).map_err(Error::wrap)
    };
    let options = Options { direction: Direction::Reverse, ..Options::default() };
    let (g, c, y) = (array(&weights)?, array(&coeffs.t()?)?, array(&outputs)?);
    let exact = linrec::backward(g.view(), c.view(), y.view(), &options).map_err(Error::wrap)?;
    let (Some(d_inputs), Some(d_coeffs)) = (gradients.get(&inputs), gradients.get(&coeffs)) else {
        bail!("there is no gradient")
    };
    let of = [(array(d_inputs)?, exact.d_inputs), (array(&d_coeffs.t()?)?, exact.d_coeffs)];
    for (got, exact) in of {
        let largest = exact.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        let off = (&got - &exact).iter().fold(0.0_f64, |most, gap| most.max(gap.abs())) / largest;
        println!("gradient, distance from the library's: {off:.1e} of the largest");
        if off > 1e-12 {
            bail!("the gradients differ");
        }
    }
    Ok(())
}
