//! The scan of arrays in host memory: it copies them to the device and the results back.

use linrec::Error;
use linrec::device::{Buffer, Device, Storage};
use ndarray::{Array, Array1, Array3, ArrayView, ArrayView3, Dimension, IntoDimension};

use super::arrays::{Given, GradientScratch, Scratch};
use super::{Passes, Scan};
use crate::arguments::{Arguments, Mixing, MixingArray, MixingView, Sizes};
use crate::block::Scanner;
use crate::{Gradients, Output, Real};

/// The results of a forward pass, and its launches.
#[derive(Debug)]
pub struct Computed<S: Real> {
    /// `y` and the last state.
    pub output: Output<S>,
    /// The launches.
    pub passes: Passes,
}

/// The results of a backward pass, and its launches.
#[derive(Debug)]
pub struct Differentiated<S: Real> {
    /// The gradients.
    pub gradients: Gradients<S>,
    /// The launches.
    pub passes: Passes,
}

impl<S: Real + Storage<Accum = S>> Scan<S> {
    /// Computes [`selective_scan`](crate::selective_scan) on the device.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Scan::forward_into`].
    pub fn compute(&self, arguments: &Arguments<S>) -> Result<Computed<S>, Error> {
        let device = self.device();
        let held = Held::new(device, arguments)?;
        let given = held.given();
        let Sizes { batch, channels, states, .. } = held.sizes;
        let mut scratch = Scratch::new(device, held.sizes)?;
        let mut y = empty(device, "y", given.u.len())?;
        let mut last_state = empty(device, "last_state", batch * channels * states)?;
        let last = Some(&mut last_state);
        let passes = self.forward_into(&given, &mut scratch, &mut y, last, &device.stream())?;
        let output = Output {
            y: held.outputs(&y)?,
            last_state: array(&last_state, (batch, channels, states))?,
        };
        Ok(Computed { output, passes })
    }

    /// Computes [`selective_scan_backward`](crate::selective_scan_backward) on the device.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Scan::backward_into`].
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
        let mut scratch = GradientScratch::new(device, held.sizes)?;
        let mut d = held.room_for_gradients()?;
        let stream = device.stream();
        let passes =
            self.backward_into(&given, &d_y, d_last.as_ref(), &mut scratch, &mut d, &stream)?;
        Ok(Differentiated { gradients: held.gradients(&d)?, passes })
    }
}

impl<S: Real + Storage<Accum = S>> Scanner<S> for Scan<S> {
    fn outputs(&self, arguments: &Arguments<S>) -> Result<Array3<S>, Error> {
        Ok(self.compute(arguments)?.output.y)
    }

    fn gradients(
        &self,
        arguments: &Arguments<S>,
        d_y: ArrayView3<S>,
    ) -> Result<Gradients<S>, Error> {
        Ok(self.differentiate(arguments, d_y, None)?.gradients)
    }
}

/// Arguments in a device's memory, and the shapes in which results come back.
#[derive(Debug)]
pub struct Held<S> {
    device: Device,
    sizes: Sizes,
    u: Buffer<S>,
    delta: Buffer<S>,
    a: Buffer<S>,
    b: Mixing<Buffer<S>, Buffer<S>>,
    c: Mixing<Buffer<S>, Buffer<S>>,
    d: Option<Buffer<S>>,
    z: Option<Buffer<S>>,
    delta_bias: Option<Buffer<S>>,
    delta_softplus: bool,
    initial: Option<Buffer<S>>,
}

impl<S: Real + Storage> Held<S> {
    /// Copies the arguments to the device.
    ///
    /// # Errors
    ///
    /// Returns an error if they do not fit together, or the device has not enough memory.
    pub fn new(device: &Device, arguments: &Arguments<S>) -> Result<Self, Error> {
        let Arguments { u, delta, a, b, c, d, z, delta_bias, delta_softplus, initial } = *arguments;
        Ok(Held {
            device: device.clone(),
            sizes: arguments.sizes()?,
            u: upload(device, "u", u)?,
            delta: upload(device, "delta", delta)?,
            a: upload(device, "A", a)?,
            b: shared(device, "B", b)?,
            c: shared(device, "C", c)?,
            d: d.map(|d| upload(device, "D", d)).transpose()?,
            z: z.map(|z| upload(device, "z", z)).transpose()?,
            delta_bias: delta_bias.map(|bias| upload(device, "delta_bias", bias)).transpose()?,
            delta_softplus,
            initial: initial.map(|states| upload(device, "initial", states)).transpose()?,
        })
    }

    /// Borrows the arrays for the kernels.
    pub fn given(&self) -> Given<'_, S> {
        Given {
            sizes: self.sizes,
            u: &self.u,
            delta: &self.delta,
            a: &self.a,
            b: self.b.as_ref(),
            c: self.c.as_ref(),
            d: self.d.as_ref(),
            z: self.z.as_ref(),
            delta_bias: self.delta_bias.as_ref(),
            delta_softplus: self.delta_softplus,
            initial: self.initial.as_ref(),
        }
    }

    /// Copies outputs back, `[batch, channels, len]`.
    ///
    /// # Errors
    ///
    /// Returns an error if the length does not fit the shape, or if the device fails.
    pub fn outputs(&self, y: &Buffer<S>) -> Result<Array3<S>, Error> {
        let Sizes { batch, channels, len, .. } = self.sizes;
        array(y, (batch, channels, len))
    }

    /// Allocates gradients in which every element is NaN until it is written.
    ///
    /// # Errors
    ///
    /// Returns an error if the device has not enough memory.
    pub fn room_for_gradients(&self) -> Result<super::Gradients<S>, Error> {
        let mut d = super::Gradients::new(&self.device, &self.given())?;
        for buffer in d.all() {
            buffer.poison()?;
        }
        Ok(d)
    }

    /// Copies gradients back, each in the shape of its argument.
    ///
    /// # Errors
    ///
    /// Returns an error if a length does not fit its shape, or if the device fails.
    pub fn gradients(&self, d: &super::Gradients<S>) -> Result<Gradients<S>, Error> {
        let Sizes { batch, channels, groups, states, len } = self.sizes;
        let (own, all) = ((batch, channels, len), (batch, channels, states));
        let mixing = |of: &Mixing<_, _>, d: &Buffer<S>| -> Result<MixingArray<S>, Error> {
            Ok(match of {
                Mixing::Varying(_) => array(d, (batch, groups, states, len))?.into(),
                Mixing::Fixed(_) => array(d, (channels, states))?.into(),
            })
        };
        Ok(Gradients {
            d_u: array(&d.d_u, own)?,
            d_delta: array(&d.d_delta, own)?,
            d_a: array(&d.d_a, (channels, states))?,
            d_b: mixing(&self.b, &d.d_b)?,
            d_c: mixing(&self.c, &d.d_c)?,
            d_d: d.d_d.as_ref().map_or(Ok(Array1::zeros(channels)), |d| array(d, channels))?,
            d_z: d.d_z.as_ref().map_or(Ok(Array3::zeros(own)), |d| array(d, own))?,
            d_delta_bias: array(&d.d_delta_bias, channels)?,
            d_initial: array(&d.d_initial, all)?,
        })
    }
}

/// Uploads the array's elements in standard order.
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

/// Uploads `B` or `C` in standard order.
fn shared<S: Real + Storage>(
    device: &Device,
    name: &str,
    mixing: MixingView<S>,
) -> Result<Mixing<Buffer<S>, Buffer<S>>, Error> {
    Ok(match mixing {
        Mixing::Varying(array) => Mixing::Varying(upload(device, name, array)?),
        Mixing::Fixed(array) => Mixing::Fixed(upload(device, name, array)?),
    })
}

/// Allocates a result in which every element is NaN until it is written.
fn empty<S: Storage>(device: &Device, name: &str, len: usize) -> Result<Buffer<S>, Error> {
    let mut buffer = device.allocate_named(name, len)?;
    buffer.poison()?;
    Ok(buffer)
}

/// Copies a buffer back as an array; the buffer was made for this shape.
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
