//! The scan of arrays at hand: copied to the device, and back.

use linrec::Error;
use linrec::device::{Buffer, Device, Storage};
use ndarray::{Array, Array1, Array3, ArrayView, ArrayView3, Dimension, IntoDimension};

use super::arrays::{Given, GradientRoom, Room};
use super::{Passes, Scan};
use crate::arguments::{Arguments, Mixing, Sizes};
use crate::{Gradients, Output, Real};

/// What a forward pass gave, and what its launches were.
#[derive(Debug)]
pub struct Computed<S> {
    /// `y` and the last state.
    pub output: Output<S>,
    /// The launches.
    pub passes: Passes,
}

/// What a backward pass gave, and what its launches were.
#[derive(Debug)]
pub struct Differentiated<S> {
    /// The gradients.
    pub gradients: Gradients<S>,
    /// The launches.
    pub passes: Passes,
}

impl<S: Real + Storage<Accum = S>> Scan<S> {
    /// As [`selective_scan`](crate::selective_scan), on the device.
    ///
    /// # Errors
    ///
    /// As for [`Scan::forward_into`].
    pub fn compute(&self, arguments: &Arguments<S>) -> Result<Computed<S>, Error> {
        let device = self.device();
        let held = Held::new(device, arguments)?;
        let given = held.given();
        let Sizes { batch, channels, states, len, .. } = held.sizes;
        let mut room = Room::new(device, held.sizes)?;
        let mut y = empty(device, "y", given.u.len())?;
        let mut last_state = empty(device, "last_state", batch * channels * states)?;
        let last = Some(&mut last_state);
        let passes = self.forward_into(&given, &mut room, &mut y, last, &device.stream())?;
        let output = Output {
            y: array(&y, (batch, channels, len))?,
            last_state: array(&last_state, (batch, channels, states))?,
        };
        Ok(Computed { output, passes })
    }

    /// As [`selective_scan_backward`](crate::selective_scan_backward), on the device.
    ///
    /// # Errors
    ///
    /// As for [`Scan::backward_into`].
    pub fn differentiate(
        &self,
        arguments: &Arguments<S>,
        d_y: ArrayView3<S>,
        d_last_state: Option<ArrayView3<S>>,
    ) -> Result<Differentiated<S>, Error> {
        let device = self.device();
        let held = Held::new(device, arguments)?;
        let given = held.given();
        let d_y = upload(device, "d_y", d_y)?;
        let d_last = d_last_state.map(|d| upload(device, "d_last_state", d)).transpose()?;
        let mut room = GradientRoom::new(device, held.sizes)?;
        let mut d = super::Gradients::new(device, &given)?;
        for buffer in d.all() {
            buffer.poison()?;
        }
        let stream = device.stream();
        let passes =
            self.backward_into(&given, &d_y, d_last.as_ref(), &mut room, &mut d, &stream)?;
        let Sizes { batch, channels, groups, states, len } = held.sizes;
        let (own, shared) = ((batch, channels, len), (batch, groups, states, len));
        let gradients = Gradients {
            d_u: array(&d.d_u, own)?,
            d_delta: array(&d.d_delta, own)?,
            d_a: array(&d.d_a, (channels, states))?,
            d_b: array(&d.d_b, shared)?,
            d_c: array(&d.d_c, shared)?,
            d_d: d.d_d.map_or(Ok(Array1::zeros(channels)), |d| array(&d, channels))?,
            d_z: d.d_z.map_or(Ok(Array3::zeros(own)), |d| array(&d, own))?,
            d_delta_bias: array(&d.d_delta_bias, channels)?,
        };
        Ok(Differentiated { gradients, passes })
    }
}

/// Arguments that were copied to a device.
struct Held<S> {
    sizes: Sizes,
    u: Buffer<S>,
    delta: Buffer<S>,
    a: Buffer<S>,
    b: Buffer<S>,
    c: Buffer<S>,
    d: Option<Buffer<S>>,
    z: Option<Buffer<S>>,
    delta_bias: Option<Buffer<S>>,
    delta_softplus: bool,
}

impl<S: Real + Storage> Held<S> {
    fn new(device: &Device, arguments: &Arguments<S>) -> Result<Self, Error> {
        let Arguments { u, delta, a, b, c, d, z, delta_bias, delta_softplus } = *arguments;
        Ok(Held {
            sizes: arguments.sizes()?,
            u: upload(device, "u", u)?,
            delta: upload(device, "delta", delta)?,
            a: upload(device, "A", a)?,
            b: upload(device, "B", b)?,
            c: upload(device, "C", c)?,
            d: d.map(|d| upload(device, "D", d)).transpose()?,
            z: z.map(|z| upload(device, "z", z)).transpose()?,
            delta_bias: delta_bias.map(|bias| upload(device, "delta_bias", bias)).transpose()?,
            delta_softplus,
        })
    }

    fn given(&self) -> Given<'_, S> {
        Given {
            sizes: self.sizes,
            u: &self.u,
            delta: &self.delta,
            a: &self.a,
            b: Mixing::Varying(&self.b),
            c: Mixing::Varying(&self.c),
            d: self.d.as_ref(),
            z: self.z.as_ref(),
            delta_bias: self.delta_bias.as_ref(),
            delta_softplus: self.delta_softplus,
            initial: None,
        }
    }
}

/// The array's elements in standard order.
fn upload<S: Real + Storage, D: Dimension>(
    device: &Device,
    name: &str,
    array: ArrayView<S, D>,
) -> Result<Buffer<S>, Error> {
    let elements: Vec<S> = array.iter().copied().collect();
    let mut buffer = device.allocate_named(name, elements.len())?;
    buffer.upload(&elements)?;
    Ok(buffer)
}

/// A result of which every element is NaN until it is written.
fn empty<S: Storage>(device: &Device, name: &str, len: usize) -> Result<Buffer<S>, Error> {
    let mut buffer = device.allocate_named(name, len)?;
    buffer.poison()?;
    Ok(buffer)
}

/// A buffer's elements as an array; the buffer was made for this shape.
fn array<S: Storage, D: IntoDimension>(
    buffer: &Buffer<S>,
    shape: D,
) -> Result<Array<S, D::Dim>, Error> {
    let shape = shape.into_dimension();
    let (asked, len) = (shape.slice().to_vec(), buffer.len());
    Array::from_shape_vec(shape, buffer.download()?).map_err(|_| Error::ShapeMismatch {
        operation: "selective scan",
        arrays: vec![("shape", asked), ("buffer", vec![len])],
    })
}
