//! Chapter 13's block, trained with the fused scan inside; the rest of the block is unchanged.

use ch13_mamba::block::{Block, Scanner};
use ch13_mamba::on_device::{Given, Held};
use ch13_mamba::task::Batch;
use ch13_mamba::training::loss_and_gradient;
use ch13_mamba::{Arguments, Gradients, Mixing, Real, Sizes};
use linrec::Error;
use linrec::device::{
    Buffer, Device, Exponential, ScanBackwardOptions, ScanCoupling, ScanCouplingGradient,
    ScanForwardOptions, ScanGradients, ScanInputs, ScanShape, SelectiveScan,
};
use ndarray::{Array3, ArrayView3};

/// The library's scan for arrays in host memory, which it copies to its device and back.
#[derive(Debug, Clone)]
pub struct Fused(SelectiveScan<f32>);

impl Fused {
    /// Makes the scan on a device.
    pub fn new(device: &Device, exponential: Exponential) -> Fused {
        Fused(SelectiveScan::new(device, exponential))
    }
}

// ANCHOR: scanner
impl Scanner<f32> for Fused {
    fn outputs(&self, arguments: &Arguments<f32>) -> Result<Array3<f32>, Error> {
        let held = Held::new(self.0.device(), arguments)?;
        let (inputs, shape) = inputs_of(held.given());
        let mut out = self.0.device().allocate(inputs.u.len())?;
        out.poison()?;
        self.0.forward_into(&inputs, &mut out, shape, ScanForwardOptions::default())?;
        held.outputs(&out)
    }

    fn gradients(
        &self,
        arguments: &Arguments<f32>,
        d_y: ArrayView3<f32>,
    ) -> Result<Gradients<f32>, Error> {
        let device = self.0.device();
        let held = Held::new(device, arguments)?;
        let (inputs, shape) = inputs_of(held.given());
        // The outputs are known already. This pass is needed for the states that it leaves.
        let mut checkpoints = device.allocate(shape.checkpoints_len().unwrap_or(0))?;
        let mut out = device.allocate(inputs.u.len())?;
        let options =
            ScanForwardOptions { checkpoints: Some(&mut checkpoints), ..Default::default() };
        self.0.forward_into(&inputs, &mut out, shape, options)?;

        let mut d = held.room_for_gradients()?;
        let gradients = ScanGradients {
            u: &mut d.d_u,
            delta: &mut d.d_delta,
            a: &mut d.d_a,
            b: coupling_gradient(inputs.b, &mut d.d_b),
            c: coupling_gradient(inputs.c, &mut d.d_c),
            d: d.d_d.as_mut(),
            z: d.d_z.as_mut(),
            delta_bias: Some(&mut d.d_delta_bias),
            initial: Some(&mut d.d_initial),
        };
        let d_y = device.upload(&d_y.iter().copied().collect::<Vec<_>>())?;
        let options = ScanBackwardOptions::default();
        self.0.backward_into(&inputs, &d_y, &checkpoints, gradients, shape, options)?;
        held.gradients(&d)
    }
}
// ANCHOR_END: scanner

/// Converts chapter 13's arguments to the library's.
fn inputs_of(given: Given<'_, f32>) -> (ScanInputs<'_, f32>, ScanShape) {
    let Given { sizes, u, delta, a, b, c, d, z, delta_bias, delta_softplus, initial } = given;
    let Sizes { batch, channels, groups, states, len } = sizes;
    let shape = ScanShape { batch, channels, seq_len: len, states, groups };
    let coupling = |mixing| match mixing {
        Mixing::Varying(buffer) => ScanCoupling::Varying(buffer),
        Mixing::Fixed(buffer) => ScanCoupling::Constant(buffer),
    };
    let (b, c, softplus) = (coupling(b), coupling(c), delta_softplus);
    let inputs =
        ScanInputs { u, delta, a, b, c, d, z, delta_bias, softplus, initial, restarts: None };
    (inputs, shape)
}

/// Wraps the gradient with respect to `B` or `C` in the variant of its argument.
fn coupling_gradient<'a>(
    of: ScanCoupling<f32>,
    gradient: &'a mut Buffer<f32>,
) -> ScanCouplingGradient<'a, f32> {
    match of {
        ScanCoupling::Varying(_) => ScanCouplingGradient::Varying(gradient),
        ScanCoupling::Constant(_) => ScanCouplingGradient::Constant(gradient),
    }
}

/// Computes the loss of a block and its gradient with respect to all weights with two scanners.
/// Returns both losses, and the largest difference of gradients relative to the largest.
///
/// # Errors
///
/// Returns an error if a scan fails.
pub fn compare<T: Real>(
    block: &Block<T>,
    batch: &Batch,
    one: &impl Scanner<T>,
    other: &impl Scanner<T>,
) -> Result<([f64; 2], f64), Error> {
    let (one_loss, one) = loss_and_gradient(one, block, batch)?;
    let (other_loss, other) = loss_and_gradient(other, block, batch)?;
    let (one, other) = (one.flat(), other.flat());
    let largest = one.iter().fold(0.0, |largest: f64, slope| largest.max(slope.abs()));
    let differences = one.iter().zip(&other).map(|(one, other)| (one - other).abs());
    // NaN counts as the worst.
    let worst = differences.fold(0.0, |worst, found| if found <= worst { worst } else { found });
    Ok(([one_loss, other_loss], worst / largest))
}
