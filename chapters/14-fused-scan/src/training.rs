//! Chapter 13's block, trained with the fused scan inside: everything else of it stays where it was.

use ch13_mamba::block::{Block, Scanner};
use ch13_mamba::task::Batch;
use ch13_mamba::training::loss_and_gradient;
use ch13_mamba::{Arguments, Gradients, Mixing, MixingArray, MixingView, Real};
use linrec::Error;
use linrec::device::{
    Buffer, Device, Exponential, ScanBackwardOptions, ScanCoupling, ScanCouplingGradient,
    ScanForwardOptions, ScanGradients, ScanInputs, ScanShape, SelectiveScan, Storage,
};
use ndarray::{Array, Array3, ArrayView, ArrayView3, Dimension, IntoDimension};

/// The library's scan, for arrays that are copied to its device and back.
#[derive(Debug, Clone)]
pub struct Fused(SelectiveScan<f32>);

impl Fused {
    /// On this device.
    pub fn new(device: &Device, exponential: Exponential) -> Fused {
        Fused(SelectiveScan::new(device, exponential))
    }
}

/// Arguments that were copied to a device.
struct Held {
    shape: ScanShape,
    u: Buffer<f32>,
    delta: Buffer<f32>,
    a: Buffer<f32>,
    b: Mixing<Buffer<f32>, Buffer<f32>>,
    c: Mixing<Buffer<f32>, Buffer<f32>>,
    d: Option<Buffer<f32>>,
    z: Option<Buffer<f32>>,
    delta_bias: Option<Buffer<f32>>,
    softplus: bool,
    initial: Option<Buffer<f32>>,
}

impl Held {
    fn new(device: &Device, arguments: &Arguments<f32>) -> Result<Held, Error> {
        let Arguments { u, delta, a, b, c, d, z, delta_bias, delta_softplus, initial } = *arguments;
        let (batch, channels, seq_len) = u.dim();
        let groups = match (b, c) {
            (Mixing::Varying(array), _) | (_, Mixing::Varying(array)) => array.dim().1,
            _ => 1,
        };
        let states = a.ncols();
        Ok(Held {
            shape: ScanShape { batch, channels, seq_len, states, groups },
            u: upload(device, u)?,
            delta: upload(device, delta)?,
            a: upload(device, a)?,
            b: upload_mixing(device, b)?,
            c: upload_mixing(device, c)?,
            d: d.map(|d| upload(device, d)).transpose()?,
            z: z.map(|z| upload(device, z)).transpose()?,
            delta_bias: delta_bias.map(|bias| upload(device, bias)).transpose()?,
            softplus: delta_softplus,
            initial: initial.map(|initial| upload(device, initial)).transpose()?,
        })
    }

    fn inputs(&self) -> ScanInputs<'_, f32> {
        ScanInputs {
            u: &self.u,
            delta: &self.delta,
            a: &self.a,
            b: coupling(&self.b),
            c: coupling(&self.c),
            d: self.d.as_ref(),
            z: self.z.as_ref(),
            delta_bias: self.delta_bias.as_ref(),
            softplus: self.softplus,
            initial: self.initial.as_ref(),
            restarts: None,
        }
    }
}

// ANCHOR: scanner
impl Scanner<f32> for Fused {
    fn outputs(&self, arguments: &Arguments<f32>) -> Result<Array3<f32>, Error> {
        let device = self.0.device();
        let held = Held::new(device, arguments)?;
        let mut out = empty(device, held.u.len())?;
        self.0.forward_into(&held.inputs(), &mut out, held.shape, ScanForwardOptions::default())?;
        array(&out, arguments.u.dim())
    }

    fn gradients(
        &self,
        arguments: &Arguments<f32>,
        d_y: ArrayView3<f32>,
    ) -> Result<Gradients<f32>, Error> {
        let device = self.0.device();
        let held = Held::new(device, arguments)?;
        let (inputs, shape) = (held.inputs(), held.shape);
        // The outputs are known already. What is wanted of this pass are the states that it leaves.
        let mut checkpoints = empty(device, shape.checkpoints_len().unwrap_or(0))?;
        let mut out = empty(device, held.u.len())?;
        let options =
            ScanForwardOptions { checkpoints: Some(&mut checkpoints), ..Default::default() };
        self.0.forward_into(&inputs, &mut out, shape, options)?;

        let like = |buffer: &Buffer<f32>| empty(device, buffer.len());
        let [mut u, mut delta, mut z] = [like(&held.u)?, like(&held.u)?, like(&held.u)?];
        let mut a = like(&held.a)?;
        let [b, c] = [&held.b, &held.c].map(|of| match of {
            Mixing::Varying(of) => like(of).map(Mixing::Varying),
            Mixing::Fixed(of) => like(of).map(Mixing::Fixed),
        });
        let (mut b, mut c) = (b?, c?);
        let [mut d, mut delta_bias] =
            [empty(device, shape.channels)?, empty(device, shape.channels)?];
        let mut initial = empty(device, shape.batch * shape.channels * shape.states)?;
        let gradients = ScanGradients {
            u: &mut u,
            delta: &mut delta,
            a: &mut a,
            b: coupling_gradient(&mut b),
            c: coupling_gradient(&mut c),
            d: Some(&mut d),
            z: held.z.is_some().then_some(&mut z),
            delta_bias: Some(&mut delta_bias),
            initial: Some(&mut initial),
        };
        let (d_y, options) = (upload(device, d_y)?, ScanBackwardOptions::default());
        self.0.backward_into(&inputs, &d_y, &checkpoints, gradients, shape, options)?;
        // ANCHOR_END: scanner
        let ScanShape { batch, channels, seq_len, states, groups } = shape;
        let own = (batch, channels, seq_len);
        let mixing = |gradient: &Mixing<_, _>| -> Result<MixingArray<f32>, Error> {
            Ok(match gradient {
                Mixing::Varying(d) => array(d, (batch, groups, states, seq_len))?.into(),
                Mixing::Fixed(d) => array(d, (channels, states))?.into(),
            })
        };
        let given = |is_given: bool, gradient: &Buffer<f32>| match is_given {
            true => array(gradient, own),
            false => Ok(Array3::zeros(own)),
        };
        Ok(Gradients {
            d_u: array(&u, own)?,
            d_delta: array(&delta, own)?,
            d_a: array(&a, (channels, states))?,
            d_b: mixing(&b)?,
            d_c: mixing(&c)?,
            d_d: match held.d {
                Some(_) => array(&d, channels)?,
                None => Array::zeros(channels),
            },
            d_z: given(held.z.is_some(), &z)?,
            d_delta_bias: array(&delta_bias, channels)?,
            d_initial: array(&initial, (batch, channels, states))?,
        })
    }
}

/// The loss of a block and its gradient by all weights, by two who compute its scan: both losses, and the largest
/// difference of gradients as a part of the largest.
///
/// # Errors
///
/// Those of the scans.
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

/// `B` or `C`, copied to a device.
fn upload_mixing(
    device: &Device,
    mixing: MixingView<f32>,
) -> Result<Mixing<Buffer<f32>, Buffer<f32>>, Error> {
    Ok(match mixing {
        Mixing::Varying(array) => Mixing::Varying(upload(device, array)?),
        Mixing::Fixed(array) => Mixing::Fixed(upload(device, array)?),
    })
}

fn coupling(mixing: &Mixing<Buffer<f32>, Buffer<f32>>) -> ScanCoupling<'_, f32> {
    match mixing {
        Mixing::Varying(buffer) => ScanCoupling::Varying(buffer),
        Mixing::Fixed(buffer) => ScanCoupling::Constant(buffer),
    }
}

fn coupling_gradient(
    mixing: &mut Mixing<Buffer<f32>, Buffer<f32>>,
) -> ScanCouplingGradient<'_, f32> {
    match mixing {
        Mixing::Varying(buffer) => ScanCouplingGradient::Varying(buffer),
        Mixing::Fixed(buffer) => ScanCouplingGradient::Constant(buffer),
    }
}

/// The array's elements in standard order.
fn upload<D: Dimension>(device: &Device, array: ArrayView<f32, D>) -> Result<Buffer<f32>, Error> {
    device.upload(&array.iter().copied().collect::<Vec<f32>>())
}

/// A result of which every element is NaN until it is written.
fn empty<S: Storage>(device: &Device, len: usize) -> Result<Buffer<S>, Error> {
    let mut buffer = device.allocate(len)?;
    buffer.poison()?;
    Ok(buffer)
}

/// A buffer's elements as an array; the buffer was made for this shape.
fn array<D: IntoDimension>(buffer: &Buffer<f32>, shape: D) -> Result<Array<f32, D::Dim>, Error> {
    let shape = shape.into_dimension();
    let (asked, len) = (shape.slice().to_vec(), buffer.len());
    Array::from_shape_vec(shape, buffer.download()?).map_err(|_| Error::ShapeMismatch {
        operation: "selective scan",
        arrays: vec![("shape", asked), ("buffer", vec![len])],
    })
}
