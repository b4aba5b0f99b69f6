//! Chapter 13's block, trained with the fused scan inside: everything else of it stays where it was.

use ch13_mamba::block::{Block, Scanner};
use ch13_mamba::task::Batch;
use ch13_mamba::training::loss_and_gradient;
use ch13_mamba::{Arguments, Gradients, Mixing, MixingView, Real};
use linrec::Error;
use linrec::device::{
    Buffer, Device, Exponential, ScanBackwardOptions, ScanForwardOptions, ScanGradients,
    ScanInputs, ScanShape, SelectiveScan, Storage,
};
use ndarray::{
    Array, Array3, ArrayView, ArrayView1, ArrayView3, ArrayView4, Dimension, IntoDimension,
};

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
    b: Buffer<f32>,
    c: Buffer<f32>,
    d: Option<Buffer<f32>>,
    z: Option<Buffer<f32>>,
    delta_bias: Option<Buffer<f32>>,
    softplus: bool,
    initial: Option<Buffer<f32>>,
}

impl Held {
    fn new(device: &Device, arguments: &Arguments<f32>) -> Result<Held, Error> {
        let Arguments { u, delta, a, b, c, d, z, delta_bias, delta_softplus, initial } = *arguments;
        let (b, c) = (varying(b)?, varying(c)?);
        let (batch, channels, seq_len) = u.dim();
        let (_, groups, states, _) = b.dim();
        Ok(Held {
            shape: ScanShape { batch, channels, seq_len, states, groups },
            u: upload(device, u)?,
            delta: upload(device, delta)?,
            a: upload(device, a)?,
            b: upload(device, b)?,
            c: upload(device, c)?,
            d: d.map(|d: ArrayView1<f32>| upload(device, d)).transpose()?,
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
            b: &self.b,
            c: &self.c,
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
        let [mut a, mut b, mut c] = [like(&held.a)?, like(&held.b)?, like(&held.c)?];
        let [mut d, mut delta_bias] =
            [empty(device, shape.channels)?, empty(device, shape.channels)?];
        let mut initial = empty(device, shape.batch * shape.channels * shape.states)?;
        let gradients = ScanGradients {
            u: &mut u,
            delta: &mut delta,
            a: &mut a,
            b: &mut b,
            c: &mut c,
            d: Some(&mut d),
            z: held.z.is_some().then_some(&mut z),
            delta_bias: Some(&mut delta_bias),
            initial: Some(&mut initial),
        };
        let (d_y, options) = (upload(device, d_y)?, ScanBackwardOptions::default());
        self.0.backward_into(&inputs, &d_y, &checkpoints, gradients, shape, options)?;
        // ANCHOR_END: scanner
        let ScanShape { batch, channels, seq_len, states, groups } = shape;
        let (own, coupling) = ((batch, channels, seq_len), (batch, groups, states, seq_len));
        let given = |is_given: bool, gradient: &Buffer<f32>| match is_given {
            true => array(gradient, own),
            false => Ok(Array3::zeros(own)),
        };
        Ok(Gradients {
            d_u: array(&u, own)?,
            d_delta: array(&delta, own)?,
            d_a: array(&a, (channels, states))?,
            d_b: array(&b, coupling)?.into(),
            d_c: array(&c, coupling)?.into(),
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

/// `B` or `C` of a kernel that takes them for each step only.
fn varying(mixing: MixingView<'_, f32>) -> Result<ArrayView4<'_, f32>, Error> {
    match mixing {
        Mixing::Varying(array) => Ok(array),
        Mixing::Fixed(_) => Err(Error::Unsupported {
            engine: "the fused scan".to_owned(),
            what: "B or C that is the same at every step".to_owned(),
        }),
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
